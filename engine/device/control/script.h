// Script: a plan with steps that run plans, prepared for a device that knows only steps: the device gets the
// stretches between them as plans, and the host runs the loops and branches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/control/unroll.h"

namespace caldera {

/// May be run by several threads at once. `backend` must outlive it.
class Script {
 public:
  Script(Backend& backend, std::shared_ptr<const Plan> plan);

  struct Stretch {
    std::unique_ptr<Executable> executable;
    std::vector<std::int32_t> buffers;  // of the plan, by slot of the executable
  };
  /// Turns of a part of a control step, as the device gets them at once.
  struct Turns {
    std::unique_ptr<Executable> executable;
    std::vector<UnrolledTurns::Slot> slots;
  };
  struct Control {
    std::size_t step = 0;
    std::vector<std::unique_ptr<Script>> parts;
    /// By part and number of turns; made when they are first needed.
    std::map<std::pair<std::size_t, std::int64_t>, Turns> turns = {};
    std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();
  };
  using Item = std::variant<Stretch, Control>;

  Backend& backend() const { return backend_; }
  const Plan& plan() const { return *plan_; }
  const std::vector<Item>& items() const { return items_; }
  Control& control(std::size_t item) const { return std::get<Control>(items_[item]); }
  /// The most turns of a part that the device gets at once: a power of two; 1 where it computes as it is
  /// called, or where the part runs plans of its own.
  std::int64_t most_turns(const Control& control, std::size_t part) const;
  /// Makes `turns` turns of a part ready. From any thread.
  Turns& turns_of(Control& control, std::size_t part, std::int64_t turns) const;
  /// As Executable::bytes.
  std::size_t bytes() const;

 private:
  Backend& backend_;
  std::shared_ptr<const Plan> plan_;
  mutable std::vector<Item> items_;  // what is unrolled comes later
};

/// One run of a script, or several one after the other with other bindings. One thread at a time.
class ScriptRun {
 public:
  explicit ScriptRun(const Script& script);
  ScriptRun(ScriptRun&&) = default;
  ScriptRun(const ScriptRun&) = delete;
  ScriptRun& operator=(const ScriptRun&) = delete;
  ~ScriptRun() = default;

  /// Where buffer `b` of the plan is: to be set for each before a run.
  Bindings::Slot& buffer(std::size_t b) { return buffers_[b]; }
  std::vector<std::uint64_t>& scalars() { return scalars_; }
  /// Bindings::is_cancelled, of all loops inside too.
  void set_cancel_flag(const std::atomic<bool>* flag);
  /// Puts the arena where `base` is.
  void set_arena(Bindings::Slot base);
  /// Queues all of it; waits for the device where a loop or branch depends on what it computes. Throws what
  /// Backend::submit and wait throw.
  Ticket run();

 private:
  friend class ControlRun;

  const Script* script_;
  std::vector<Bindings::Slot> buffers_;
  std::vector<std::uint64_t> scalars_;
  const std::atomic<bool>* is_cancelled_ = nullptr;
  std::vector<Bindings> bindings_;             // by item; of stretches
  std::vector<std::vector<ScriptRun>> parts_;  // by item; of control steps
};

}  // namespace caldera
