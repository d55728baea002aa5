// Says what an objective's file tells the registry. Private to training/objectives/.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "training/objectives/objective.h"
#include "training/objectives/objective_options.h"

namespace caldera::detail {

struct ObjectiveKind {
  std::string name;
  std::vector<ObjectiveOption> options;
  /// Gets options that have passed the registry's checks: every number and word of `options` is there.
  std::function<std::unique_ptr<Objective>(const ObjectiveOptions&)> make;
};

/// Returns `options` with every number and word that they leave out. Throws ValueError for an option that the
/// kind does not have or that is outside of its domain.
ObjectiveOptions completed_options(const ObjectiveKind& kind, const ObjectiveOptions& options);

}  // namespace caldera::detail
