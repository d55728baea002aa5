#include "training/objectives/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/base/error.h"
#include "training/objectives/objective_kind.h"

// A line an objective: F(NAME) stands for `detail::ObjectiveKind NAME_objective()` of objectives/NAME.cpp.
#define CALDERA_OBJECTIVES(F) \
  F(next_token)               \
  F(dpo)                      \
  F(orpo)                     \
  F(kto)                      \
  F(distillation)             \
  F(embedding)                \
  F(reward)                   \
  F(classification)           \
  F(grpo)

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

const detail::ObjectiveKind& kind_of(const std::string& name) {
  const auto kind = std::ranges::find(kinds(), name, &detail::ObjectiveKind::name);
  if (kind == kinds().end())
    throw ValueError(
        fmt::format("there is no objective '{}' (valid: {})", name, fmt::join(objective_names(), ", ")));
  return *kind;
}

}  // namespace

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const detail::ObjectiveKind& kind : kinds()) names.push_back(kind.name);
  return names;
}

const std::vector<ObjectiveOption>& options_of_objective(const std::string& name) {
  return kind_of(name).options;
}

ObjectiveOptions completed_options(const ObjectiveOptions& options) {
  return detail::completed_options(kind_of(options.name), options);
}

std::unique_ptr<Objective> make_objective(const ObjectiveOptions& options) {
  const ObjectiveOptions complete = completed_options(options);
  return kind_of(options.name).make(complete);
}

}  // namespace caldera
