// Makes optimisers by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "training/optim/optimizer.h"
#include "training/optim/optimizer_options.h"

namespace caldera {

/// The names of all optimisers, in the registry's order.
std::vector<std::string> optimizer_names();

/// Throws ValueError for a name that is not known (naming those that are), an option that the optimiser does
/// not have, and one outside of its domain; see also Optimizer.
/// `others` are parameters that another optimiser has (Optimizer::set_groups).
std::unique_ptr<Optimizer> make_optimizer(std::vector<Parameter> parameters, const OptimizerOptions& options,
                                          std::span<const Parameter> others = {});

}  // namespace caldera
