#include "engine/check/stepwise/step_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "engine/base/error.h"
#include "engine/check/stepwise/deviation.h"
#include "engine/check/stepwise/dispatch_plan.h"
#include "engine/check/stepwise/report.h"

namespace caldera {
namespace {

using check::DispatchPlan;
using reference::PlanMemory;

/// One replay, its buffers in memory of the host.
class CheckedRun {
 public:
  CheckedRun(Backend& backend, const Executable& executable, const Bindings& bindings,
             std::uint64_t evaluation, std::optional<std::uint64_t> only)
      : backend_(backend),
        plan_(executable.plan()),
        bindings_(bindings),
        evaluation_(evaluation),
        only_(only) {
    memory_.scalars = bindings.scalars;
    const std::size_t bound = bound_buffers();
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      memory_.buffers.emplace_back(static_cast<std::size_t>(plan_.buffers[b].bytes));
      if (b < bound && !memory_.buffers[b].empty()) {
        const Bindings::Slot& slot = bindings.slots[b];
        backend.download(*slot.storage, static_cast<std::size_t>(slot.byte_offset), memory_.buffers[b].data(),
                         memory_.buffers[b].size());
      }
    }
  }

  Ticket run() {
    Ticket last = 0;
    for (std::size_t first = 0; first < plan_.steps.size();) {
      const DispatchPlan dispatch = check::cut_dispatch(plan_, first);
      last = run_dispatch(dispatch);
      first = dispatch.end();
    }
    for (std::size_t b = static_cast<std::size_t>(plan_.input_count); b < bound_buffers(); ++b) {
      const Bindings::Slot& slot = bindings_.slots[b];
      if (!memory_.buffers[b].empty())
        backend_.upload(*slot.storage, static_cast<std::size_t>(slot.byte_offset), memory_.buffers[b].data(),
                        memory_.buffers[b].size());
    }
    if (failed_) throw FailedSteps(*failed_);
    return last;
  }

 private:
  /// Inputs and outputs, which come first.
  std::size_t bound_buffers() const {
    return static_cast<std::size_t>(plan_.input_count) + static_cast<std::size_t>(plan_.output_count);
  }

  Ticket run_dispatch(const DispatchPlan& dispatch) {
    PlanMemory before{.buffers = {}, .scalars = memory_.scalars};
    Bindings bindings;
    std::vector<StoragePtr> storages;
    bindings.scalars = bindings_.scalars;
    for (const std::size_t b : dispatch.buffers) {
      before.buffers.push_back(memory_.buffers[b]);
      storages.push_back(backend_.allocate(std::max<std::size_t>(1, memory_.buffers[b].size())));
      if (!memory_.buffers[b].empty())
        backend_.upload(*storages.back(), 0, memory_.buffers[b].data(), memory_.buffers[b].size());
      bindings.slots.push_back({storages.back().get(), 0});
    }
    const auto executable = backend_.prepare(dispatch.plan);
    std::vector<std::size_t> failed;
    const Ticket ticket = backend_.submit(*executable, bindings);
    try {
      backend_.wait(ticket);
    } catch (const FailedSteps& failure) {
      failed = failure.steps;
      if (!failed_) failed_ = FailedSteps{failure.error, {}};
      for (const std::size_t step : failed) failed_->steps.push_back(dispatch.first + step);
    }
    std::vector<std::vector<std::byte>> after(before.buffers.size());
    for (std::size_t b = static_cast<std::size_t>(dispatch.plan->input_count); b < after.size(); ++b) {
      after[b].resize(before.buffers[b].size());
      if (!after[b].empty()) backend_.download(*storages[b], 0, after[b].data(), after[b].size());
    }
    check_dispatch(dispatch, before, after, failed);
    for (std::size_t b = static_cast<std::size_t>(dispatch.plan->input_count); b < after.size(); ++b)
      memory_.buffers[dispatch.buffers[b]] = std::move(after[b]);
    return ticket;
  }

  void check_dispatch(const DispatchPlan& dispatch, const PlanMemory& before,
                      const std::vector<std::vector<std::byte>>& after,
                      const std::vector<std::size_t>& failed) {
    if (only_ && (*only_ < dispatch.first || *only_ >= dispatch.end())) return;
    const auto deviation = check::first_deviation(*dispatch.plan, before, after, failed);
    if (!deviation && !only_) return;
    const std::size_t step = deviation ? deviation->step : static_cast<std::size_t>(*only_) - dispatch.first;
    const check::CheckedStep checked{.evaluation = evaluation_,
                                     .number = dispatch.first + step,
                                     .step_count = plan_.steps.size(),
                                     .plan = *dispatch.plan,
                                     .step = step,
                                     .code = backend_.code_writer()};
    const std::string message =
        deviation ? summary(checked, *deviation)
                  : fmt::format("evaluation {}, step {} of {}: {} is within its bounds", evaluation_,
                                checked.number, checked.step_count, dispatch.plan->steps[step].name());
    fmt::print(stderr, "caldera: {}\n{}", message, details(checked, before));
    if (deviation) throw CheckError(message);
  }

  Backend& backend_;
  const Plan& plan_;
  const Bindings& bindings_;
  const std::uint64_t evaluation_;
  const std::optional<std::uint64_t> only_;  // the step that is checked; none: all
  PlanMemory memory_;
  std::optional<FailedSteps> failed_;
};

}  // namespace

Ticket submit_checked(Backend& backend, Executable& executable, const Bindings& bindings,
                      std::uint64_t evaluation, std::optional<std::uint64_t> step) {
  if (backend.info().device.kind == DeviceKind::null || executable.plan().steps.empty())
    return backend.submit(executable, bindings);
  return CheckedRun(backend, executable, bindings, evaluation, step).run();
}

}  // namespace caldera
