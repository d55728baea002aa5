// OptimizerKind: describes an optimiser to the registry. Private to training/optim/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "training/optim/optimizer.h"
#include "training/optim/optimizer_options.h"

namespace caldera::detail {

struct OptimizerKind {
  std::string name;
  std::vector<std::string> more;  ///< the names of its options beside learning rate and weight decay
  /// Throws ValueError for an option outside of its domain.
  std::unique_ptr<Optimizer> (*make)(std::vector<Parameter> parameters, const OptimizerOptions& options);
};

}  // namespace caldera::detail
