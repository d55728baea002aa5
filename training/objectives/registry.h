// Makes objectives by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "training/objectives/objective.h"
#include "training/objectives/objective_options.h"

namespace caldera {

/// The names of all objectives, in the registry's order.
std::vector<std::string> objective_names();

/// The options of the objective with this name. Throws ValueError for a name that is not known.
const std::vector<ObjectiveOption>& options_of_objective(const std::string& name);

/// Returns `options` with every number and word that they leave out. Throws ValueError as make_objective
/// does.
ObjectiveOptions completed_options(const ObjectiveOptions& options);

/// Throws ValueError for a name that is not known (naming those that are), and for an option that the
/// objective does not have or that is outside of its domain.
std::unique_ptr<Objective> make_objective(const ObjectiveOptions& options = {});

}  // namespace caldera
