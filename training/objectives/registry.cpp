#include "training/objectives/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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

using Kind = ObjectiveOption::Kind;

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

const ObjectiveOption& option_of(const detail::ObjectiveKind& kind, const std::string& name, bool number) {
  const auto fits = [&](const ObjectiveOption& option) {
    return option.name == name && (option.kind == Kind::number) == number;
  };
  const auto option = std::ranges::find_if(kind.options, fits);
  if (option != kind.options.end()) return *option;
  std::vector<std::string> valid;
  for (const ObjectiveOption& own : kind.options) valid.push_back(own.name);
  throw ValueError(fmt::format("{}: there is no option '{}' (valid: {})", kind.name, name,
                               valid.empty() ? "none" : fmt::format("{}", fmt::join(valid, ", "))));
}

void check_number(const detail::ObjectiveKind& kind, const ObjectiveOption& option, double value) {
  const bool above = option.low_is_out ? value > option.low : value >= option.low;
  if (std::isfinite(value) && above && value <= option.high && (!option.whole || value == std::floor(value)))
    return;
  const std::string upper = std::isinf(option.high) ? "" : fmt::format(" and at most {}", option.high);
  throw ValueError(fmt::format("{}: {} is {}; give a {}number {} {}{}", kind.name, option.name, value,
                               option.whole ? "whole " : "", option.low_is_out ? "above" : "of at least",
                               option.low, upper));
}

void check_word(const detail::ObjectiveKind& kind, const ObjectiveOption& option, const std::string& value) {
  if (option.kind == Kind::text || std::ranges::find(option.words, value) != option.words.end()) return;
  throw ValueError(fmt::format("{}: {} is '{}' (valid: {})", kind.name, option.name, value,
                               fmt::join(option.words, ", ")));
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
  const detail::ObjectiveKind& kind = kind_of(options.name);
  for (const auto& [name, value] : options.more) check_number(kind, option_of(kind, name, true), value);
  for (const auto& [name, value] : options.words) check_word(kind, option_of(kind, name, false), value);
  ObjectiveOptions complete = options;
  for (const ObjectiveOption& option : kind.options) {
    if (option.kind == Kind::number)
      complete.more.try_emplace(option.name, option.otherwise);
    else
      complete.words.try_emplace(option.name, option.words.empty() ? "" : option.words.front());
  }
  return complete;
}

std::unique_ptr<Objective> make_objective(const ObjectiveOptions& options) {
  const ObjectiveOptions complete = completed_options(options);
  return kind_of(options.name).make(complete);
}

}  // namespace caldera
