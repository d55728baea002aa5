#include "engine/device/control/script.h"

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
    Control item{.step = s, .parts = {}, .turns = std::make_unique<TurnCache>(backend_, *control)};
    for (const ControlPlan& part : control->parts)
      item.parts.push_back(std::make_unique<Script>(backend_, part.plan));
    items_.emplace_back(std::move(item));
  }
  end_stretch(plan_->steps.size());
}

std::size_t Script::bytes() const {
  std::size_t bytes = 0;
  for (const Item& item : items_) {
    if (const auto* stretch = std::get_if<Stretch>(&item)) {
      bytes += stretch->executable->bytes() + stretch->executable->plan().steps.size() * sizeof(Step);
    } else {
      const auto& control = std::get<Control>(item);
      for (const auto& part : control.parts) bytes += part->bytes();
      bytes += control.turns->bytes();
    }
  }
  return bytes;
}

ScriptRun::ScriptRun(const Script& script, const std::atomic<bool>* is_cancelled)
    : script_(script), is_cancelled_(is_cancelled) {
  buffers.resize(script.plan().buffers.size());
  bindings_.resize(script.items().size());
  parts_.resize(script.items().size());
  for (std::size_t i = 0; i < script.items().size(); ++i) {
    if (const auto* stretch = std::get_if<Script::Stretch>(&script.items()[i])) {
      bindings_[i].slots.resize(stretch->buffers.size());
    } else {
      for (const auto& part : std::get<Script::Control>(script.items()[i]).parts)
        parts_[i].push_back(std::make_unique<ScriptRun>(*part, is_cancelled));
    }
  }
}

void ScriptRun::set_arena(Bindings::Slot base) {
  const Plan& plan = script_.plan();
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].role == BufferRole::arena)
      buffers[b] = {base.storage, base.byte_offset + plan.buffers[b].arena_offset};
  }
}

Ticket ScriptRun::run() {
  Backend& backend = script_.backend();
  Ticket last = 0;
  for (std::size_t i = 0; i < bindings_.size(); ++i) {
    const Script::Item& item = script_.items()[i];
    if (const auto* stretch = std::get_if<Script::Stretch>(&item)) {
      Bindings& bindings = bindings_[i];
      for (std::size_t k = 0; k < stretch->buffers.size(); ++k)
        bindings.slots[k] = buffers[static_cast<std::size_t>(stretch->buffers[k])];
      bindings.scalars = scalars;
      last = backend.submit(*stretch->executable, bindings);
    } else {
      const auto& control = std::get<Script::Control>(item);
      const ControlContext context{.backend = backend,
                                   .plan = script_.plan(),
                                   .step = script_.plan().steps[control.step],
                                   .run = *this,
                                   .parts = parts_[i],
                                   .turns = *control.turns,
                                   .is_cancelled = is_cancelled_};
      last = ControlRun(context).run(last);
    }
  }
  return last;
}

}  // namespace caldera
