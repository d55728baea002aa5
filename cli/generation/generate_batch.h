// Continues many prompts at once, for `caldera generate --batch`.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lm/generate/batch_generator.h"
#include "lm/models/causal_lm.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera::cli {

/// The prompts of a file: a line each, or, where it ends in .jsonl, a string or an object with "prompt" a
/// line. Empty lines are passed over. Throws FileError naming the line.
std::vector<std::string> read_prompts(const std::filesystem::path& path);

/// The answers in the order of the prompts, as {"results": [{"prompt_ids", "ids", "text", "finish_reason",
/// "reused_tokens"}], "generated_tokens", "tokens_per_second"}. `like` has what the requests have in common.
/// Throws what a request failed with.
nlohmann::ordered_json generate_batch(CausalLM& model, const Tokenizer& tokenizer,
                                      const std::vector<std::string>& prompts, const GenerateRequest& like,
                                      const BatchLimits& limits);

}  // namespace caldera::cli
