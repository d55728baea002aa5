// ControlRun: one run of a loop or branch. Internal to scripts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/control/turn_cache.h"

namespace caldera {

/// A run of a plan: where its buffers are, and its numbers.
class PlanRun {
 public:
  PlanRun() = default;
  PlanRun(const PlanRun&) = delete;
  PlanRun& operator=(const PlanRun&) = delete;
  virtual ~PlanRun() = default;

  std::vector<Bindings::Slot> buffers;  // by buffer of the plan
  std::vector<std::uint64_t> scalars;

  /// Puts the arena where `base` is.
  virtual void set_arena(Bindings::Slot base) = 0;
  /// Queues all of it; waits for the device where a loop or branch depends on what it computes. Returns the
  /// last ticket; 0 if nothing was queued. Throws what Backend::submit and wait throw.
  virtual Ticket run() = 0;
};

/// A control step within a run of its plan.
struct ControlContext {
  Backend& backend;
  const Plan& plan;
  const Step& step;
  const PlanRun& run;  // of the plan
  std::span<const std::unique_ptr<PlanRun>> parts;
  TurnCache& turns;
  const std::atomic<bool>* is_cancelled = nullptr;  // Bindings::is_cancelled
};

/// Holds where everything of the step is. For one run.
class ControlRun {
 public:
  explicit ControlRun(const ControlContext& context);

  /// Runs the step behind what was queued as `before`. Returns the last ticket.
  Ticket run(Ticket before);

 private:
  using Slot = Bindings::Slot;
  using Set = std::vector<Slot>;  // one value of each carry, or of each state

  Slot operand(std::size_t k) const;
  Slot in_scratch(std::int64_t bytes) const;
  Set inputs(std::uint32_t first, std::uint32_t count) const;
  Set results(std::uint32_t count) const;
  /// A set in scratch of values like inputs [first, first + count).
  Set set_in_scratch(std::int64_t at, std::uint32_t first, std::uint32_t count) const;

  void bind(std::size_t part, std::uint32_t parameter, Slot slot);
  void bind_carries(std::size_t part, const Set& carries);
  void bind_slices(std::size_t part, std::int64_t turn);
  void bind_result(std::size_t part, std::size_t k, Slot slot);
  void bind_results(std::size_t part, const Set& set);
  void run_part(std::size_t part);
  /// Throws CancelledError if somebody asked for the end.
  void check_cancelled() const;
  /// Runs turns [first, first + count) of a part from the carries `from`, which may be `to` where the count
  /// is even; the last ones come to be in `to`. `other` holds those between.
  void run_turns(std::size_t part, std::int64_t first, std::int64_t count, const Set& from, const Set& to,
                 const Set& other);
  void run_turn(std::size_t part, std::int64_t turn, const Set& from, const Set& to);
  /// `count`, a power of two, at once.
  void run_unrolled(std::size_t part, std::int64_t first, std::int64_t count, const Set& from, const Set& to,
                    const Set& other);
  std::int64_t place_of(std::int64_t turn) const { return layout_.is_backwards ? turns_ - 1 - turn : turn; }
  Slot at(ControlStep::Place place) const;
  /// Returns where parameter `p` of a turn is, a slice or of a list, and where it puts result `k`.
  Slot slice_at(std::uint32_t p, std::int64_t turn) const;
  Slot result_at(std::size_t part, std::uint32_t k, std::int64_t turn) const;

  void branch();
  void loop_known();
  void loop_unknown();
  void loop_masked();
  bool test();
  bool read_flag();
  void reversal();
  /// Reverses turns [begin, end), the carries of the first of which are `at`.
  void reverse(std::int64_t begin, std::int64_t end, const Set& at, std::int64_t snapshots);
  void reverse_without(std::int64_t begin, std::int64_t end, const Set& at);
  void advance(std::int64_t turn, std::int64_t turns, const Set& from, const Set& to) {
    run_turns(0, turn, turns, from, to, to.data() == sets_[0].data() ? sets_[1] : sets_[0]);
  }
  void back(std::int64_t turn, const Set& at);
  /// Reads an integer that the device has computed.
  std::int64_t read_selector();

  const ControlContext& context_;
  Backend& backend_;
  const Step& step_;
  const ControlStep& control_;
  const ControlLayout& layout_;
  std::int64_t turns_ = -1;
  Ticket last_ = 0;

  // A reversal's.
  std::vector<Set> sets_;  // two to compute with, then snapshots
  Set states_, spare_, out_;
};

}  // namespace caldera
