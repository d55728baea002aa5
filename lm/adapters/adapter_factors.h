// AdapterFactors: an adapter as its files have it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lm/adapters/lora_options.h"

namespace caldera {

/// Holds an adapter that is on no model yet.
struct AdapterFactors {
  LoRAOptions options;
  std::string base_model = {};       // as base_model_name_or_path has it: a note to people
  std::vector<std::string> targets;  // the model's names
  /// "<path of a projection>.lora_A.weight", lora_B, "lora_magnitude_vector"; parameters that the adapter has
  /// itself, under the model's names.
  std::map<std::string, std::vector<float>> factors;
};

}  // namespace caldera
