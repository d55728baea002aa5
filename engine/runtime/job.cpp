#include "engine/runtime/job.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "engine/base/error.h"
#include "engine/check/stepwise/step_check.h"
#include "engine/device/backend.h"
#include "engine/device/control/plan_executable.h"
#include "engine/graph/histories.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/settings.h"

namespace caldera {
namespace {

/// What a plan's arena is for, for people.
std::string describe_intermediates(const Plan& plan) {
  std::string text = fmt::format("intermediates of a plan of {} steps", plan.steps.size());
  const Step* largest = nullptr;
  std::int64_t most = 0;
  for (const Step& step : plan.steps) {
    for (std::size_t k = step.operands.size() - static_cast<std::size_t>(step.output_count());
         k < step.operands.size(); ++k) {
      const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(step.operands[k].buffer)];
      if (buffer.role != BufferRole::arena || buffer.bytes <= most) continue;
      most = buffer.bytes;
      largest = &step;
    }
  }
  if (largest != nullptr)
    text += fmt::format(" (the largest: {} bytes of {} over {})", most, largest->name(),
                        largest->dims.to_string());
  return text;
}

/// Which outputs of the plan depend on none of these steps. A buffer holds one value: what is written to it
/// by a step that failed, or from what such a step has written, is not there.
std::vector<bool> outputs_without(const Plan& plan, const std::vector<std::size_t>& failed) {
  std::vector<bool> is_bad(plan.buffers.size(), false);
  std::vector<bool> has_failed(plan.steps.size(), false);
  for (const std::size_t step : failed) has_failed[step] = true;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const bool reads_bad =
        std::any_of(step.operands.begin(), step.operands.end(),
                    [&](const Operand& operand) { return is_bad[static_cast<std::size_t>(operand.buffer)]; });
    if (!has_failed[i] && !reads_bad) continue;
    for (std::size_t k = step.first_output(); k < step.operands.size(); ++k)
      is_bad[static_cast<std::size_t>(step.operands[k].buffer)] = true;
  }
  const auto outputs = is_bad.begin() + plan.input_count;
  std::vector<bool> is_there(outputs, outputs + plan.output_count);
  is_there.flip();
  return is_there;
}

/// The number of the evaluation that is about to be submitted.
std::uint64_t next_evaluation() {
  static std::atomic<std::uint64_t> evaluations{0};
  return ++evaluations;
}

/// Backend::submit, with the checks that the settings ask for.
Ticket submit_once(Backend& backend, const Job& job, std::uint64_t evaluation) {
  const StepChecks& check = settings().check;
  if (!check.on || (check.evaluation != 0 && check.evaluation != evaluation))
    return submit_plan(backend, *job.executable, job.bindings);
  return submit_checked(backend, *job.executable, job.bindings, evaluation, check.step);
}

}  // namespace

bool Job::sets(const std::shared_ptr<Event>& event) const {
  return event == done || std::find(output_events.begin(), output_events.end(), event) != output_events.end();
}

void Job::end(std::exception_ptr error, bool has_begun) {
  std::vector<bool> is_there(output_events.size(), error == nullptr);
  if (error != nullptr) {
    try {
      std::rethrow_exception(error);
    } catch (const FailedSteps& failure) {
      error = failure.error;
      if (!output_events.empty()) is_there = outputs_without(executable->plan(), failure.steps);
    } catch (...) {  // nothing is known of the outputs
    }
  }
  // What the job held goes before its completion is seen, so that memory is free when a waiter looks.
  copies.clear();
  storages.clear();
  depends.clear();
  executable.reset();
  if (error == nullptr)
    settlement.succeed();
  else
    settlement.fail(is_there, has_begun, done);
  for (std::size_t k = 0; k < output_events.size(); ++k) output_events[k]->set(is_there[k] ? nullptr : error);
  done->set(error);
}

bool Job::renew() noexcept {
  constexpr std::size_t kWorthKeeping = 1024;
  const bool is_over =
      executable == nullptr && copies.empty() && storages.empty() && depends.empty() && settlement.is_empty();
  if (!is_over || bindings.slots.capacity() > kWorthKeeping || bindings.scalars.capacity() > kWorthKeeping)
    return false;
  bindings.slots.clear();
  bindings.scalars.clear();
  bindings.step_times = nullptr;
  bindings.is_cancelled = nullptr;
  done.reset();
  output_events.clear();
  record.reset();
  return true;
}

void drop_idle_plans(Backend& backend) { plan_cache().drop_unused(backend.info().device); }

Ticket submit_job(Backend& backend, const Job& job) {
  const std::uint64_t evaluation = settings().check.on ? next_evaluation() : 0;
  try {
    return submit_once(backend, job, evaluation);
  } catch (const OutOfMemoryError&) {
    drop_idle_plans(backend);
  }
  try {
    return submit_once(backend, job, evaluation);
  } catch (const OutOfMemoryError&) {
    give_up_histories();
  }
  try {
    return submit_once(backend, job, evaluation);
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(describe_intermediates(job.executable->plan()) + ": " + error.what());
  }
}

}  // namespace caldera
