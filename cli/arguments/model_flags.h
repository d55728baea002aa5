// Declares the flags that several commands share: those of models, of sampling and of adapters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "lm/adapters/lora.h"
#include "lm/generate/sampling/sampler.h"

namespace caldera::cli {

/// --model, which must be given.
Option declare_model(Arguments& args, std::string& folder);
/// --adapter.
Option declare_adapter(Arguments& args, std::string& folder);

/// --dtype, of three types: f32, f16, bf16.
Option declare_dtype(Arguments& args, std::string& dtype,
                     const std::string& help = "What weights are kept and computed in");
/// --dtype of commands that run a model: these, or auto.
Option declare_dtype_or_auto(Arguments& args, std::string& dtype);
/// --activations: rounded or exact.
Option declare_activations(Arguments& args, std::string& activations);
/// --cache-type: f32, f16 or q8_0; not given: what the model computes in.
Option declare_cache_type(Arguments& args, std::string& type);
/// --seed.
Option declare_seed(Arguments& args, std::uint64_t& seed, const std::string& help = "Seed of the sampling");
/// --pooling, of models that give embeddings.
Option declare_pooling(Arguments& args, std::string& pooling);

/// --temperature, --top-k, --top-p, --min-p, --repetition-penalty.
void declare_sampling(Arguments& args, SamplingOptions& options);
/// Declares --mirostat and what goes with it.
void declare_mirostat(Arguments& args, Mirostat& options);
/// Refuses --mirostat where no token is drawn. Throws UsageError.
void check_mirostat(const SamplingOptions& options);

/// --rank, --alpha, --dropout, --target-modules.
void declare_lora(Arguments& args, LoRAOptions& options, std::vector<std::string>& targets);
/// Returns the model's layers that --target-modules names (see resolve_lora_targets). Throws UsageError.
std::vector<std::string> resolve_targets(CausalLM& model, const std::vector<std::string>& targets);

}  // namespace caldera::cli
