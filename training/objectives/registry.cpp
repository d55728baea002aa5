#include "training/objectives/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/base/error.h"
#include "training/objectives/objective_kind.h"

// A line an objective: F(NAME) stands for `detail::ObjectiveKind NAME_objective()` of objectives/NAME.cpp.
#define CALDERA_OBJECTIVES(F) F(next_token)

namespace caldera {

#define CALDERA_DECLARE_OBJECTIVE(name) detail::ObjectiveKind name##_objective();
CALDERA_OBJECTIVES(CALDERA_DECLARE_OBJECTIVE)
#undef CALDERA_DECLARE_OBJECTIVE

namespace {

const std::vector<detail::ObjectiveKind>& kinds() {
#define CALDERA_CALL_OBJECTIVE(name) name##_objective(),
  static const std::vector<detail::ObjectiveKind> kKinds{CALDERA_OBJECTIVES(CALDERA_CALL_OBJECTIVE)};
#undef CALDERA_CALL_OBJECTIVE
  return kKinds;
}

}  // namespace

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const detail::ObjectiveKind& kind : kinds()) names.push_back(kind.name);
  return names;
}

std::unique_ptr<Objective> make_objective(const ObjectiveOptions& options) {
  const auto kind = std::ranges::find(kinds(), options.name, &detail::ObjectiveKind::name);
  if (kind == kinds().end())
    throw ValueError(fmt::format("there is no objective '{}' (valid: {})", options.name,
                                 fmt::join(objective_names(), ", ")));
  for (const auto& [option, value] : options.more)
    if (std::ranges::find(kind->more, option) == kind->more.end())
      throw ValueError(
          fmt::format("{}: there is no option '{}' (valid: {})", kind->name, option,
                      kind->more.empty() ? "none" : fmt::format("{}", fmt::join(kind->more, ", "))));
  return kind->make(options);
}

}  // namespace caldera
