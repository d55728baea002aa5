#include "engine/device/vulkan/open/flight_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace caldera::vulkan {

void FlightLog::begin(std::shared_ptr<const Plan> plan, std::uint64_t completed) {
  const std::lock_guard lock(mutex_);
  while (flights_.size() > 1 && flights_[1].is_done(completed)) flights_.pop_front();
  flights_.push_back({++count_, std::move(plan), {}});
}

void FlightLog::submitted(std::uint64_t ticket, std::size_t last_step) {
  const std::lock_guard lock(mutex_);
  flights_.back().parts.push_back({ticket, last_step});
}

void FlightLog::end() {
  const std::lock_guard lock(mutex_);
  flights_.back().whole = true;
}

void FlightLog::cancel() {
  const std::lock_guard lock(mutex_);
  flights_.pop_back();
  --count_;
}

std::string FlightLog::describe(std::uint64_t completed) const {
  const std::lock_guard lock(mutex_);
  std::string last = "none", running;
  for (const Flight& flight : flights_) {
    const std::vector<Step>& steps = flight.plan->steps;
    if (flight.is_done(completed)) {
      last = fmt::format("evaluation {} (its last step was {})", flight.number, steps.back().name());
      continue;
    }
    running +=
        fmt::format("{}evaluation {} ({} step{}, {} to {}", running.empty() ? "" : ", ", flight.number,
                    steps.size(), steps.size() == 1 ? "" : "s", steps.front().name(), steps.back().name());
    const auto past = std::ranges::find_if(flight.parts, [&](const Part& p) { return p.ticket > completed; });
    if (past != flight.parts.begin()) {
      const std::size_t step = std::prev(past)->last_step;
      running += fmt::format("; done up to step {}, {}", step, steps[step].name());
    }
    running += ")";
  }
  return fmt::format("last completed: {}; in flight: {}", last, running.empty() ? "none" : running);
}

}  // namespace caldera::vulkan
