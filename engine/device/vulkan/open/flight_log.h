// Remembers what a device was at: its last replays, for the message when it is lost.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// Any thread; replays begin in the order in which they are submitted.
class FlightLog {
 public:
  /// A replay that is about to be submitted. Forgets those before the last one that `completed` says is done.
  void begin(std::shared_ptr<const Plan> plan, std::uint64_t completed);
  /// The newest replay has been submitted up to and with that step of its plan; the timeline reaches `ticket`
  /// when that much is done.
  void submitted(std::uint64_t ticket, std::size_t last_step);
  /// The newest replay has been submitted whole.
  void end();
  /// The newest replay could not be submitted, for a reason that leaves the device usable.
  void cancel();

  /// "last completed: evaluation 4 (its last step was softmax); in flight: evaluation 5 (12 steps, exp to
  /// softmax; done up to step 3, matmul)". Evaluations are counted from 1 since the device was opened.
  std::string describe(std::uint64_t completed) const;

 private:
  struct Part {
    std::uint64_t ticket;
    std::size_t last_step;
  };
  struct Flight {
    std::uint64_t number;
    std::shared_ptr<const Plan> plan;
    std::vector<Part> parts;
    bool whole = false;

    bool is_done(std::uint64_t completed) const { return whole && parts.back().ticket <= completed; }
  };

  mutable std::mutex mutex_;
  std::deque<Flight> flights_;
  std::uint64_t count_ = 0;
};

}  // namespace caldera::vulkan
