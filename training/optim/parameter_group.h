// ParameterGroup: parameters that are trained at a rate of their own.
#pragma once

#include <optional>
#include <string>

namespace caldera {

/// LoRA+ (Hayou et al. 2024) is {.pattern = "lora_B", .learning_rate_factor = 16}.
struct ParameterGroup {
  std::string pattern;                   ///< a regular expression, found in the parameter's name
  double learning_rate_factor = 1;       ///< times the optimiser's rate, whatever the schedule makes of it
  std::optional<double> weight_decay{};  ///< else the optimiser's
};

}  // namespace caldera
