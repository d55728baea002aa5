// OptimizerOptions: select an optimiser by name, and configure it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "training/optim/parameter_group.h"

namespace caldera {

struct OptimizerOptions {
  std::string name = "adamw";           ///< of the registry: see optimizer_names()
  std::optional<double> learning_rate;  ///< else the optimiser's own default
  std::optional<double> weight_decay;   ///< else the optimiser's own default
  /// Options that not every optimiser has, by name: {"momentum", 0.9}. A flag is on unless it is 0.
  std::map<std::string, double> more{};
  std::vector<ParameterGroup> groups{};  ///< parameters with rates of their own

  double number(const std::string& option, double otherwise) const {
    const auto found = more.find(option);
    return found == more.end() ? otherwise : found->second;
  }
};

}  // namespace caldera
