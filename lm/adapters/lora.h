// LoRA (Hu et al. 2021) and its kin: low-rank adapters next to frozen linear layers, in PEFT's conventions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lm/adapters/adapter_factors.h"
#include "lm/adapters/lora_linear.h"
#include "lm/adapters/lora_options.h"

namespace caldera {

class CausalLM;
class StagedFiles;

/// The names of the modules of `model` that LoRA can be attached to, as visit_projections reports them, each
/// once: "q_proj", "k_proj", ...
std::vector<std::string> lora_target_modules(CausalLM& model);

/// `targets` with "all-linear" replaced by all of these (the head is not among them, and must be named:
/// "lm_head"), in the model's order,
/// then what names a part of the model: ends of paths and regular expressions (is_lora_target()); each once.
/// Throws ValueError listing the model's names for one that no module has, or an empty list.
std::vector<std::string> resolve_lora_targets(CausalLM& model, const std::vector<std::string>& targets);

/// The paths of the modules that the targets mean, but for those that the options leave out, each with its
/// own options; in the model's order.
std::vector<std::pair<std::string, LoRAOptions>> lora_modules(CausalLM& model, const LoRAOptions& options,
                                                              const std::vector<std::string>& targets);

/// Returns the names of the parameters that the options have trained themselves (modules_to_save, bias).
/// Throws ValueError for a module that the model has not, and for biases trained with DoRA.
std::vector<std::string> lora_saved_parameters(CausalLM& model, const LoRAOptions& options,
                                               const std::vector<std::string>& targets);

/// Freezes the model, then wraps the target projections of every layer. The new factors are trainable, and so
/// are the parameters that the options name (modules_to_save, bias), in f32. Returns the number of modules
/// wrapped. Throws ValueError (and changes nothing) for bad options, an unknown target or saved module,
/// options that leave out every module, biases trained with DoRA, a rank above min(in, out) of a module, or a
/// model that has an adapter already.
std::size_t apply_lora(CausalLM& model, const LoRAOptions& options, const std::vector<std::string>& targets,
                       std::uint64_t seed);

/// Writes adapter_config.json and adapter_model.safetensors as PEFT reads them. An adapter that is there is
/// replaced in one step, with what else is in its folder kept: a kill at any moment leaves the old or the new
/// one. `base_model` is recorded as base_model_name_or_path. Creates the folder. Throws ValueError when the
/// model has no adapter, FileError when writing fails.
void save_adapter(CausalLM& model, const std::filesystem::path& dir, const std::string& base_model = {});
/// Writes them together with other files: the caller commits `files`.
void save_adapter(CausalLM& model, const std::filesystem::path& dir, StagedFiles& files,
                  const std::string& base_model = {});

/// Reads the adapter in `dir`, a folder of PEFT or of mlx-lm, or a file of GGUF, and checks that it fits the
/// model. Throws FileError naming the tensors that are missing, unexpected or of the wrong shape.
AdapterFactors read_adapter(CausalLM& model, const std::filesystem::path& dir);

/// Applies the adapter in `dir` to a model without one, with the rank, alpha, dropout and targets that the
/// adapter itself names, and returns the number of modules. Throws FileError naming the tensors that are
/// missing, unexpected or of the wrong shape; the model is then unchanged.
std::size_t load_adapter(CausalLM& model, const std::filesystem::path& dir);

}  // namespace caldera
