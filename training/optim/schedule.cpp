#include "training/optim/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "engine/base/error.h"

namespace caldera {
namespace {

constexpr std::array<std::string_view, 6> kNames{
    "constant", "linear", "cosine", "polynomial", "cosine_with_restarts", "wsd"};

/// Half a period of the cosine, from 1 to 0.
double half_cosine(double progress) { return 0.5 * (1 + std::cos(std::numbers::pi * progress)); }

}  // namespace

std::string_view name(ScheduleKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::vector<std::string> schedule_names() { return {kNames.begin(), kNames.end()}; }

ScheduleKind parse_schedule(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<ScheduleKind>(i);
  throw ValueError(fmt::format("unknown schedule '{}' (valid: {})", name, fmt::join(kNames, ", ")));
}

double Schedule::height(std::int64_t step) const {
  if (step >= total_steps) return 0;
  const double left = static_cast<double>(total_steps - step);
  const auto span = static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup_steps));
  const double progress = static_cast<double>(step - warmup_steps) / span;
  switch (kind) {
    case ScheduleKind::constant:
      return 1;
    case ScheduleKind::linear:
      return left / span;
    case ScheduleKind::cosine:
      return half_cosine(progress);
    case ScheduleKind::polynomial:
      return std::pow(left / span, shape.power);
    case ScheduleKind::cosine_with_restarts: {
      const double cycle = progress * static_cast<double>(shape.cycles);
      return half_cosine(cycle - std::floor(cycle));
    }
    case ScheduleKind::wsd: {
      const double decay = std::ceil(shape.decay * static_cast<double>(total_steps));
      return left >= decay ? 1 : half_cosine(1 - left / decay);
    }
  }
  return 1;
}

double Schedule::learning_rate(std::int64_t step) const {
  if (step < warmup_steps) return peak * static_cast<double>(step) / static_cast<double>(warmup_steps);
  if (kind == ScheduleKind::constant) return peak;
  return peak * (shape.end + (1 - shape.end) * height(step));
}

void Schedule::validate() const {
  if (!(peak >= 0) || !std::isfinite(peak))
    throw ValueError(fmt::format("schedule: the learning rate {} must be finite and not negative", peak));
  if (warmup_steps < 0) throw ValueError(fmt::format("schedule: warmup_steps {} is negative", warmup_steps));
  if (total_steps < 0) throw ValueError(fmt::format("schedule: total_steps {} is negative", total_steps));
  if (!(shape.power > 0) || !std::isfinite(shape.power))
    throw ValueError(fmt::format("schedule: the power {} must be positive", shape.power));
  if (shape.cycles < 1) throw ValueError(fmt::format("schedule: {} cycles; at least 1", shape.cycles));
  if (!(shape.decay > 0 && shape.decay <= 1))
    throw ValueError(
        fmt::format("schedule: the decay {} must be a share of the steps, in (0, 1]", shape.decay));
  if (!(shape.end >= 0 && shape.end <= 1))
    throw ValueError(fmt::format("schedule: the end {} must be a share of the peak, in [0, 1]", shape.end));
}

}  // namespace caldera
