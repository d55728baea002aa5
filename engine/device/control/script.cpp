#include "engine/device/control/script.h"

#include <algorithm>

#include "engine/device/control/control_run.h"
#include "engine/device/control/stretch.h"

namespace caldera {

Script::Script(Backend& backend, std::shared_ptr<const Plan> plan)
    : backend_(backend), plan_(std::move(plan)) {
  std::size_t first = 0;
  const auto end_stretch = [&](std::size_t last) {
    if (last == first) return;
    BoundStretch stretch = stretch_of(*plan_, first, last);
    items_.emplace_back(Stretch{backend_.prepare(std::move(stretch.plan)), std::move(stretch.buffers)});
  };
  for (std::size_t s = 0; s < plan_->steps.size(); ++s) {
    const auto* control = plan_->steps[s].if_a<ControlStep>();
    if (control == nullptr) continue;
    end_stretch(s);
    first = s + 1;
    Control item{.step = s, .parts = {}};
    for (const ControlPlan& part : control->parts)
      item.parts.push_back(std::make_unique<Script>(backend_, part.plan));
    items_.emplace_back(std::move(item));
  }
  end_stretch(plan_->steps.size());
}

std::int64_t Script::most_turns(const Control& control, std::size_t part) const {
  // What a submit costs is little beside so many steps; a table of arguments for more takes megabytes.
  constexpr std::int64_t kMostSteps = 4096, kMostTurns = 512;
  if (!backend_.runs_ahead() || has_control(control.parts[part]->plan())) return 1;
  const auto steps = static_cast<std::int64_t>(control.parts[part]->plan().steps.size());
  std::int64_t turns = 1;
  while (2 * turns <= kMostTurns && 2 * turns * std::max<std::int64_t>(1, steps) <= kMostSteps) turns *= 2;
  return turns;
}

Script::Turns& Script::turns_of(Control& control, std::size_t part, std::int64_t turns) const {
  const std::scoped_lock lock(*control.mutex);
  Turns& made = control.turns[{part, turns}];
  if (made.executable == nullptr) {
    UnrolledTurns unrolled = unroll(plan_->steps[control.step].as<ControlStep>(), part, turns);
    made = {backend_.prepare(std::move(unrolled.plan)), std::move(unrolled.slots)};
  }
  return made;
}

std::size_t Script::bytes() const {
  std::size_t bytes = 0;
  for (const Item& item : items_) {
    if (const auto* stretch = std::get_if<Stretch>(&item)) {
      bytes += stretch->executable->bytes() + stretch->executable->plan().steps.size() * sizeof(Step);
    } else {
      const auto& control = std::get<Control>(item);
      for (const auto& part : control.parts) bytes += part->bytes();
      const std::scoped_lock lock(*control.mutex);
      for (const auto& [key, turns] : control.turns) bytes += turns.executable->bytes();
    }
  }
  return bytes;
}

ScriptRun::ScriptRun(const Script& script) : script_(&script), buffers_(script.plan().buffers.size()) {
  bindings_.resize(script.items().size());
  parts_.resize(script.items().size());
  for (std::size_t i = 0; i < script.items().size(); ++i) {
    if (const auto* stretch = std::get_if<Script::Stretch>(&script.items()[i])) {
      bindings_[i].slots.resize(stretch->buffers.size());
    } else {
      for (const auto& part : std::get<Script::Control>(script.items()[i]).parts)
        parts_[i].emplace_back(*part);
    }
  }
}

void ScriptRun::set_cancel_flag(const std::atomic<bool>* flag) {
  is_cancelled_ = flag;
  for (std::vector<ScriptRun>& parts : parts_) {
    for (ScriptRun& part : parts) part.set_cancel_flag(flag);
  }
}

void ScriptRun::set_arena(Bindings::Slot base) {
  const Plan& plan = script_->plan();
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].role == BufferRole::arena)
      buffers_[b] = {base.storage, base.byte_offset + plan.buffers[b].arena_offset};
  }
}

Ticket ScriptRun::run() {
  Backend& backend = script_->backend();
  Ticket last = 0;
  for (std::size_t i = 0; i < bindings_.size(); ++i) {
    const Script::Item& item = script_->items()[i];
    if (const auto* stretch = std::get_if<Script::Stretch>(&item)) {
      Bindings& bindings = bindings_[i];
      for (std::size_t k = 0; k < stretch->buffers.size(); ++k)
        bindings.slots[k] = buffers_[static_cast<std::size_t>(stretch->buffers[k])];
      bindings.scalars = scalars_;
      last = backend.submit(*stretch->executable, bindings);
    } else {
      const Ticket ticket = ControlRun(*this, script_->control(i), parts_[i]).run(last);
      if (ticket != 0) last = ticket;
    }
  }
  return last;
}

}  // namespace caldera
