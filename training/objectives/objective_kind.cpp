#include "training/objectives/objective_kind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace caldera::detail {
namespace {

using Kind = ObjectiveOption::Kind;

const ObjectiveOption& option_of(const ObjectiveKind& kind, const std::string& name, bool number) {
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

void check_number(const ObjectiveKind& kind, const ObjectiveOption& option, double value) {
  const bool above = option.low_is_out ? value > option.low : value >= option.low;
  if (std::isfinite(value) && above && value <= option.high && (!option.whole || value == std::floor(value)))
    return;
  const std::string upper = std::isinf(option.high) ? "" : fmt::format(" and at most {}", option.high);
  throw ValueError(fmt::format("{}: {} is {}; give a {}number {} {}{}", kind.name, option.name, value,
                               option.whole ? "whole " : "", option.low_is_out ? "above" : "of at least",
                               option.low, upper));
}

void check_word(const ObjectiveKind& kind, const ObjectiveOption& option, const std::string& value) {
  if (option.kind == Kind::text || std::ranges::find(option.words, value) != option.words.end()) return;
  throw ValueError(fmt::format("{}: {} is '{}' (valid: {})", kind.name, option.name, value,
                               fmt::join(option.words, ", ")));
}

}  // namespace

ObjectiveOptions completed_options(const ObjectiveKind& kind, const ObjectiveOptions& options) {
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

}  // namespace caldera::detail
