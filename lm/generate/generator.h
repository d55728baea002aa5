// Continues a prompt token by token, and keeps the keys and values of earlier positions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lm/formats/config/generation_config.h"
#include "lm/generate/feeder.h"
#include "lm/generate/generate_options.h"
#include "lm/generate/sampling/sampler.h"
#include "lm/models/causal_lm.h"

namespace caldera {

/// The tokens that end a text of this model, in order: what its configuration, its generation_config.json
/// (load_generation_config) and its tokenizer (Tokenizer::eos_id) call the end. Models made for conversations
/// often name the end of a turn in one of them alone.
std::vector<std::int32_t> stop_tokens(const ModelConfig& config, const GenerationConfig& generation = {},
                                      std::optional<std::int32_t> eos_id = {});

/// Continues `prompt`, in evaluation mode; the model's own mode is restored. The same arguments give the same
/// tokens on one device. Throws ValueError for an empty prompt, one with more tokens than the model has
/// positions, an id outside of the vocabulary, or options outside of their domains.
Generation generate(CausalLM& model, std::span<const std::int32_t> prompt, const GenerateOptions& options);

/// Whether generate() submits the step after a token ahead of reading the token: greedy decoding on other
/// devices than the CPU, without a receiver of logits.
bool goes_ahead(const CausalLM& model, const GenerateOptions& options);

}  // namespace caldera
