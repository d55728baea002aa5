// Continues many prompts at once, for `caldera generate --batch`.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/generation/decoding_flags.h"
#include "lm/generate/batch/batch_generator.h"
#include "lm/models/causal_lm.h"

namespace caldera::cli {

/// The prompts of a file, or of standard input for "-": a line each, or, where it ends in .jsonl, a string or
/// an object with "prompt" a line. Empty lines are passed over. Throws FileError naming the line.
std::vector<std::string> read_prompts(const std::filesystem::path& path);

/// The answers in the order of the prompts, as {"results": [{"prompt_ids", "ids", "text", "finish_reason",
/// "reused_tokens", "drafted_tokens", "accepted_tokens", "logprobs"}], "generated_tokens",
/// "tokens_per_second"}, "logprobs" where they are asked for. `like` has what the requests have in common, a
/// tokenizer among it; `decoding` gives each what is its own. Throws what a request failed with.
nlohmann::ordered_json generate_batch(CausalLM& model, const std::vector<std::string>& prompts,
                                      const GenerateRequest& like, const DecodingFlags& decoding,
                                      const BatchLimits& limits);

}  // namespace caldera::cli
