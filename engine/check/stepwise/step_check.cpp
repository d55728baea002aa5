#include "engine/check/stepwise/step_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/check/reference/reference_control.h"
#include "engine/check/stepwise/deviation.h"
#include "engine/check/stepwise/dispatch_plan.h"
#include "engine/check/stepwise/report.h"
#include "engine/device/control/plan_executable.h"

namespace caldera {
namespace {

using check::DispatchPlan;
using reference::PlanMemory;

/// Where the plan of a part runs: a body within a loop or branch.
struct Within {
  std::size_t number = 0;  // of the step of the whole plan
  std::string text;
  bool compares = true;
};

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
    run_plan(plan_, memory_, nullptr);
    for (std::size_t b = static_cast<std::size_t>(plan_.input_count); b < bound_buffers(); ++b) {
      const Bindings::Slot& slot = bindings_.slots[b];
      if (!memory_.buffers[b].empty())
        backend_.upload(*slot.storage, static_cast<std::size_t>(slot.byte_offset), memory_.buffers[b].data(),
                        memory_.buffers[b].size());
    }
    if (failed_) throw FailedSteps(*failed_);
    return last_;
  }

 private:
  using Buffers = std::vector<std::vector<std::byte>>;

  /// Inputs and outputs, which come first.
  std::size_t bound_buffers() const {
    return static_cast<std::size_t>(plan_.input_count) + static_cast<std::size_t>(plan_.output_count);
  }

  /// Whether a dispatch is to be compared.
  bool compares(const DispatchPlan& dispatch, const Within* within) const {
    if (within != nullptr) return within->compares;
    return !only_ || (*only_ >= dispatch.first && *only_ < dispatch.end());
  }

  void run_plan(const Plan& plan, PlanMemory& memory, const Within* within) {
    for (std::size_t first = 0; first < plan.steps.size();) {
      const DispatchPlan dispatch = check::cut_dispatch(plan, first);
      if (plan.steps[first].if_a<ControlStep>() != nullptr)
        run_control_step(plan, dispatch, memory, within);
      else
        run_dispatch(plan, dispatch, memory, within);
      first = dispatch.end();
    }
  }

  /// What the device makes of the dispatch's buffers; those that it only reads stay empty.
  Buffers computed(const DispatchPlan& dispatch, const Buffers& before,
                   const std::vector<std::uint64_t>& scalars, std::vector<std::size_t>& failed) {
    Bindings bindings;
    bindings.scalars = scalars;
    bindings.is_cancelled = bindings_.is_cancelled;
    std::vector<StoragePtr> storages;
    for (const std::vector<std::byte>& buffer : before) {
      storages.push_back(backend_.allocate(std::max<std::size_t>(1, buffer.size())));
      if (!buffer.empty()) backend_.upload(*storages.back(), 0, buffer.data(), buffer.size());
      bindings.slots.push_back({storages.back().get(), 0});
    }
    const auto executable = prepare_plan(backend_, dispatch.plan);
    last_ = submit_plan(backend_, *executable, bindings);
    try {
      backend_.wait(last_);
    } catch (const FailedSteps& failure) {
      failed = failure.steps;
      if (!failed_) failed_ = FailedSteps{failure.error, {}};
    }
    Buffers after(before.size());
    for (std::size_t b = static_cast<std::size_t>(dispatch.plan->input_count); b < after.size(); ++b) {
      after[b].resize(before[b].size());
      if (!after[b].empty()) backend_.download(*storages[b], 0, after[b].data(), after[b].size());
    }
    return after;
  }

  static PlanMemory memory_of(const DispatchPlan& dispatch, const PlanMemory& memory) {
    PlanMemory own{.buffers = {}, .scalars = memory.scalars};
    for (const std::size_t b : dispatch.buffers) own.buffers.push_back(memory.buffers[b]);
    return own;
  }

  void run_dispatch(const Plan& plan, const DispatchPlan& dispatch, PlanMemory& memory,
                    const Within* within) {
    const PlanMemory before = memory_of(dispatch, memory);
    std::vector<std::size_t> failed;
    Buffers after = computed(dispatch, before.buffers, memory.scalars, failed);
    for (const std::size_t step : failed)
      failed_->steps.push_back(within != nullptr ? within->number : dispatch.first + step);
    if (compares(dispatch, within)) check_dispatch(plan, dispatch, before, after, failed, within);
    for (std::size_t b = static_cast<std::size_t>(dispatch.plan->input_count); b < after.size(); ++b)
      memory.buffers[dispatch.buffers[b]] = std::move(after[b]);
  }

  void check_dispatch(const Plan& plan, const DispatchPlan& dispatch, const PlanMemory& before,
                      const Buffers& after, const std::vector<std::size_t>& failed, const Within* within) {
    const auto deviation = check::first_deviation(*dispatch.plan, before, after, failed);
    const bool is_asked_for = only_ && within == nullptr;
    if (!deviation && !is_asked_for) return;
    const std::size_t step = deviation ? deviation->step : static_cast<std::size_t>(*only_) - dispatch.first;
    check::CheckedStep checked{.evaluation = evaluation_,
                               .number = dispatch.first + step,
                               .step_count = plan.steps.size(),
                               .plan = *dispatch.plan,
                               .step = step,
                               .code = backend_.code_writer()};
    if (within != nullptr) {
      checked.within = fmt::format(", {}, step {} of {}", within->text, checked.number, checked.step_count);
      checked.number = within->number;
      checked.step_count = plan_.steps.size();
    }
    const std::string message =
        deviation ? summary(checked, *deviation)
                  : fmt::format("evaluation {}, step {} of {}: {} is within its bounds", evaluation_,
                                checked.number, checked.step_count, dispatch.plan->steps[step].name());
    fmt::print(stderr, "caldera: {}\n{}", message, details(checked, before));
    if (deviation) throw CheckError(message);
  }

  /// The steps of each turn one by one, and then the whole of it as it is run otherwise.
  void run_control_step(const Plan& plan, const DispatchPlan& dispatch, PlanMemory& memory,
                        const Within* within) {
    constexpr int kMostRuns = 64;
    const Step& step = plan.steps[dispatch.first];
    const auto& control = step.as<ControlStep>();
    const bool is_compared = compares(dispatch, within);
    const PlanMemory before = memory_of(dispatch, memory);
    std::vector<int> runs(control.parts.size(), 0);
    const auto run_part = [&](const Plan& of_part, PlanMemory& inner) {
      if (bindings_.is_cancelled != nullptr && bindings_.is_cancelled->load(std::memory_order_relaxed))
        throw CancelledError(std::string(control.kind()) + ": ended before its next turns, as was asked for");
      const auto part = static_cast<std::size_t>(
          std::ranges::find(control.parts, &of_part, [](const ControlPlan& p) { return p.plan.get(); }) -
          control.parts.begin());
      const int run = runs[part]++;
      const Within inside{
          .number = within != nullptr ? within->number : dispatch.first,
          .text = fmt::format("{}{} {}, part {}, run {}", within != nullptr ? within->text + ", step " : "",
                              within != nullptr ? std::to_string(dispatch.first) : "in", control.kind(), part,
                              run),
          .compares = is_compared && run < kMostRuns};
      run_plan(of_part, inner, &inside);
    };
    reference::run_control(reference::StepMemory(plan, memory, step), control, run_part);
    if (!is_compared || failed_ || control.layout.kind == ControlKind::exchange) return;
    // Several turns in one go of a loop without a count are a program of their own, whose roundings differ.
    constexpr std::size_t kPartsWithoutThat = 3;
    if (control.parts.size() <= kPartsWithoutThat || control.layout.kind != ControlKind::loop ||
        control.layout.has_known_turns())
      check_whole(plan, dispatch, before, memory, within);
    if (only_ && within == nullptr)
      fmt::print(stderr, "caldera: evaluation {}, step {} of {}: {} is within its bounds, step by step\n",
                 evaluation_, dispatch.first, plan.steps.size(), step.name());
  }

  /// Compares what the step gives as it is run otherwise with what its turns gave one by one (`memory`).
  void check_whole(const Plan& plan, const DispatchPlan& dispatch, const PlanMemory& before,
                   const PlanMemory& memory, const Within* within) {
    std::vector<std::size_t> failed;
    const Buffers after = computed(dispatch, before.buffers, memory.scalars, failed);
    const Step& step = dispatch.plan->steps.front();
    const auto& control = step.as<ControlStep>();
    PlanMemory turn_by_turn = memory_of(dispatch, memory);
    const reference::StepMemory expected(*dispatch.plan, turn_by_turn, step);
    for (std::size_t k = 0; k < control.results.size(); ++k) {
      const std::size_t operand = control.inputs.size() + k;
      const auto buffer = static_cast<std::size_t>(step.operands[operand].buffer);
      const auto difference =
          check::gross_difference(control.results[k].dtype, after[buffer], expected.bytes(operand),
                                  expected.element(operand, {}), control.results[k].elements);
      if (!difference) continue;
      const std::string message = fmt::format(
          "evaluation {}, step {} of {}{}: {} on {}: result {}, element {}: {}, but {} turn by turn; the "
          "steps of its turns are right, what runs them is not",
          evaluation_, within != nullptr ? within->number : dispatch.first, plan_.steps.size(),
          within != nullptr ? ", " + within->text : "", step.name(), plan.device.to_string(), k,
          difference->element, reference::to_text(control.results[k].dtype, difference->got),
          reference::to_text(control.results[k].dtype, difference->want));
      fmt::print(stderr, "caldera: {}\n", message);
      throw CheckError(message);
    }
  }

  Backend& backend_;
  const Plan& plan_;
  const Bindings& bindings_;
  const std::uint64_t evaluation_;
  const std::optional<std::uint64_t> only_;  // the step that is checked; none: all
  PlanMemory memory_;
  Ticket last_ = 0;
  std::optional<FailedSteps> failed_;
};

}  // namespace

Ticket submit_checked(Backend& backend, Executable& executable, const Bindings& bindings,
                      std::uint64_t evaluation, std::optional<std::uint64_t> step) {
  if (backend.info().device.kind == DeviceKind::null || executable.plan().steps.empty())
    return submit_plan(backend, executable, bindings);
  return CheckedRun(backend, executable, bindings, evaluation, step).run();
}

}  // namespace caldera
