#include "training/optim/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "engine/base/error.h"

namespace caldera {
namespace {

constexpr std::array<std::string_view, 3> kNames{"constant", "linear", "cosine"};

}  // namespace

std::string_view name(ScheduleKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

ScheduleKind parse_schedule(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<ScheduleKind>(i);
  throw ValueError(fmt::format("unknown schedule '{}' (valid: constant, linear, cosine)", name));
}

double Schedule::learning_rate(std::int64_t step) const {
  if (step < warmup_steps) return peak * static_cast<double>(step) / static_cast<double>(warmup_steps);
  if (kind == ScheduleKind::constant) return peak;
  const auto span = static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup_steps));
  if (kind == ScheduleKind::linear)
    return peak * std::max(0.0, static_cast<double>(total_steps - step) / span);
  const double progress = std::min(1.0, static_cast<double>(step - warmup_steps) / span);
  return peak * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

void Schedule::validate() const {
  if (!(peak >= 0) || !std::isfinite(peak))
    throw ValueError(fmt::format("schedule: the learning rate {} must be finite and not negative", peak));
  if (warmup_steps < 0) throw ValueError(fmt::format("schedule: warmup_steps {} is negative", warmup_steps));
  if (total_steps < 0) throw ValueError(fmt::format("schedule: total_steps {} is negative", total_steps));
}

}  // namespace caldera
