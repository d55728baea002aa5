// Script: a plan with steps that run plans, prepared for a device that knows only steps: the device gets the
// stretches between them as plans, and the host runs the loops and branches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "engine/device/backend.h"

namespace caldera {

/// Immutable once made. `backend` must outlive it.
class Script {
 public:
  Script(Backend& backend, std::shared_ptr<const Plan> plan);

  struct Stretch {
    std::unique_ptr<Executable> executable;
    std::vector<std::int32_t> buffers;  // of the plan, by slot of the executable
  };
  struct Control {
    std::size_t step = 0;
    std::vector<std::unique_ptr<Script>> parts;
  };
  using Item = std::variant<Stretch, Control>;

  Backend& backend() const { return backend_; }
  const Plan& plan() const { return *plan_; }
  const std::vector<Item>& items() const { return items_; }
  /// As Executable::bytes.
  std::size_t bytes() const;

 private:
  Backend& backend_;
  std::shared_ptr<const Plan> plan_;
  std::vector<Item> items_;
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
  std::vector<Bindings> bindings_;             // by item; of stretches
  std::vector<std::vector<ScriptRun>> parts_;  // by item; of control steps
};

}  // namespace caldera
