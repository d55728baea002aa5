// Shows what a training run would be given, and trains nothing.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/training/training_run.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera::cli {

/// Returns what --dry-run shows: "examples" (the first three: "text", and "learned", the text of the tokens
/// that count), "lengths" (of all sequences: "min", "median", "max"), "histogram" (pairs of a length and how
/// many have at most that and more than the one before), "sequences", "predictions", "rows_an_epoch",
/// "steps", "padding" (share of the first epoch's inputs), "memory" (of a step on the longest batch:
/// "predicted_peak_bytes", "checkpointed_layers", "recomputed"; null for an objective whose rows the model
/// writes). Plans a step, for which the model needs its weights and its adapter.
nlohmann::ordered_json describe_dry_run(const ObjectiveModels& models, const TrainingFlags& flags,
                                        const TrainingData& data, const Tokenizer& tokenizer);

/// Prints it for people: tokens that count in green where standard output is a terminal, else between « and
/// ».
void print_dry_run(const ObjectiveModels& models, const TrainingFlags& flags, const TrainingData& data,
                   const Tokenizer& tokenizer);

}  // namespace caldera::cli
