// Script: a plan with steps that run plans, prepared for a device that knows only steps: the device gets the
// stretches between them as plans, and the host runs the loops and branches.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/control/control_run.h"
#include "engine/device/control/turn_cache.h"

namespace caldera {

/// Several threads may run it at once. `backend` must outlive it.
class Script {
 public:
  /// Throws as Backend::prepare does.
  Script(Backend& backend, std::shared_ptr<const Plan> plan);

  struct Stretch {
    std::unique_ptr<Executable> executable;
    std::vector<std::int32_t> buffers;  // of the plan, by slot of the executable
  };
  struct Control {
    std::size_t step = 0;
    std::vector<std::unique_ptr<Script>> parts;
    std::unique_ptr<TurnCache> turns;
    std::vector<std::int32_t> buffers;  // of the plan, that it reads or writes
    bool is_read = true;                // the result of an exchange, later
  };
  using Item = std::variant<Stretch, Control>;

  Backend& backend() const { return backend_; }
  const Plan& plan() const { return *plan_; }
  const std::vector<Item>& items() const { return items_; }
  /// Estimates what it keeps, as Executable::bytes does.
  std::size_t bytes() const;

 private:
  Backend& backend_;
  std::shared_ptr<const Plan> plan_;
  std::vector<Item> items_;
};

/// One run of a script, or several one after the other with other bindings. One thread at a time.
class ScriptRun final : public PlanRun {
 public:
  /// `is_cancelled`: Bindings::is_cancelled.
  ScriptRun(const Script& script, const std::atomic<bool>* is_cancelled);

  void set_arena(Bindings::Slot base) override;
  Ticket run() override;

 private:
  /// Returns where the operand's first element is.
  Bindings::Slot slot_of(const Operand& operand) const;

  const Script& script_;
  const std::atomic<bool>* is_cancelled_;
  std::vector<Bindings> bindings_;                            // by item; of stretches
  std::vector<std::vector<std::unique_ptr<PlanRun>>> parts_;  // by item; of control steps
};

}  // namespace caldera
