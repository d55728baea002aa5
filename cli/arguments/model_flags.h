// Declares the flags that several commands share: those of models, of sampling and of adapters.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "training/generate/sampler.h"
#include "training/lora/lora.h"

namespace caldera::cli {

/// --model, which must be given.
Option declare_model(Arguments& args, std::string& folder);
/// --adapter.
Option declare_adapter(Arguments& args, std::string& folder);

/// --temperature, --top-k, --top-p, --min-p, --repetition-penalty; --seed is the command's.
void declare_sampling(Arguments& args, SamplingOptions& options);

/// --rank, --alpha, --dropout, --target-modules.
void declare_lora(Arguments& args, LoRAOptions& options, std::vector<std::string>& targets);
/// Returns the model's layers that --target-modules names (see resolve_lora_targets). Throws UsageError.
std::vector<std::string> resolve_targets(CausalLM& model, const std::vector<std::string>& targets);

}  // namespace caldera::cli
