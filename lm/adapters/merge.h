// Adapters merged into the weights that they are beside, and models written with them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/tensor/device.h"
#include "lm/base/weighted_path.h"
#include "lm/formats/convert/convert.h"

namespace caldera {

class CausalLM;

/// Adds `weight` times the adapter's part to the weights, and gives the model back its projections as they
/// were before apply_lora(); quantised weights become floats. Returns the number of modules. Throws
/// ValueError where the model has no adapter, and for DoRA with a weight other than 1.
std::size_t merge_adapter(CausalLM& model, double weight = 1);

struct FuseOptions {
  std::vector<WeightedPath> adapters;  ///< and how much of each; merged one after the other
  ModelFormat to = ModelFormat::safetensors;
  /// One of weight_types(to); empty: that of the model, where `to` has it, else the type of its floats.
  std::string type = {};
};

struct Fused {
  std::filesystem::path out;
  std::size_t merged_modules = 0;  ///< of all adapters
  std::string type;                ///< that matrices are stored as
  std::string model_type;          ///< that most of the model's matrices have
  /// Between the model with the adapter beside it (with several, or a part of one: merged in f32) and the one
  /// that was written, over a few tokens: what rounding to `type` did.
  double largest_logit_difference = 0;
};

/// Writes the model at `path` with adapters merged at `out`: a folder, or a file of GGUF, with its
/// configuration, tokenizer and chat template. Weights are merged in f32 on `device`. Throws FileError and
/// ValueError as load_adapter(), merge_adapter() and convert_model() do, and leaves nothing behind then.
Fused fuse_model(const std::filesystem::path& path, const std::filesystem::path& out,
                 const FuseOptions& options, Device device = Device::cpu());

}  // namespace caldera
