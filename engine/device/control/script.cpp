#include "engine/device/control/script.h"

#include "engine/device/control/exchanges.h"
#include "engine/device/control/stretch.h"

namespace caldera {

namespace {

/// Whether a later step or the caller reads the result of step `s`, an exchange.
bool is_read_behind(const Plan& plan, std::size_t s) {
  const std::int32_t result = plan.steps[s].operands.back().buffer;
  if (result < plan.input_count + plan.output_count) return true;
  for (std::size_t later = s + 1; later < plan.steps.size(); ++later)
    for (const Operand& operand : plan.steps[later].operands)
      if (operand.buffer == result) return true;
  return false;
}

}  // namespace

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
    Control item{
        .step = s, .parts = {}, .turns = std::make_unique<TurnCache>(backend_, *control), .buffers = {}};
    for (const Operand& operand : plan_->steps[s].operands)
      if (operand.buffer >= 0) item.buffers.push_back(operand.buffer);
    if (control->layout.kind == ControlKind::exchange) item.is_read = is_read_behind(*plan_, s);
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

Bindings::Slot ScriptRun::slot_of(const Operand& operand) const {
  const auto buffer = static_cast<std::size_t>(operand.buffer);
  const auto size = static_cast<std::int64_t>(size_of(script_.plan().buffers[buffer].dtype));
  std::int64_t first = operand.offset;
  if (operand.position >= 0)
    first += shift_by(script_.plan().positions[static_cast<std::size_t>(operand.position)], scalars);
  return {buffers[buffer].storage, buffers[buffer].byte_offset + first * size};
}

Ticket ScriptRun::run() {
  Backend& backend = script_.backend();
  Ticket last = 0;
  Exchanges exchanges(backend);
  for (std::size_t i = 0; i < bindings_.size(); ++i) {
    const Script::Item& item = script_.items()[i];
    if (const auto* stretch = std::get_if<Script::Stretch>(&item)) {
      Bindings& bindings = bindings_[i];
      exchanges.finish(stretch->buffers);
      for (std::size_t k = 0; k < stretch->buffers.size(); ++k)
        bindings.slots[k] = buffers[static_cast<std::size_t>(stretch->buffers[k])];
      bindings.scalars = scalars;
      last = backend.submit(*stretch->executable, bindings);
    } else {
      const auto& control = std::get<Script::Control>(item);
      exchanges.finish(control.buffers);
      const ControlContext context{.backend = backend,
                                   .plan = script_.plan(),
                                   .step = script_.plan().steps[control.step],
                                   .run = *this,
                                   .parts = parts_[i],
                                   .turns = *control.turns,
                                   .is_cancelled = is_cancelled_};
      const Step& step = context.step;
      if (step.as<ControlStep>().layout.kind == ControlKind::exchange)
        exchanges.begin(step, slot_of(step.operands[0]),
                        control.is_read ? slot_of(step.operands[1]) : Bindings::Slot{},
                        step.operands[1].buffer, last);
      else
        last = ControlRun(context).run(last);
    }
  }
  exchanges.finish_all();
  return last;
}

}  // namespace caldera
