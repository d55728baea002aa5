#include "engine/runtime/job.h"

#include <fmt/core.h>

#include <string>

#include "engine/device/backend.h"
#include "engine/runtime/plan_cache.h"
#include "engine/tensor/error.h"

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

}  // namespace

void drop_idle_plans(Backend& backend) { plan_cache().drop_unused(backend.info().device); }

Ticket submit_job(Backend& backend, const Job& job) {
  try {
    return backend.submit(*job.executable, job.bindings);
  } catch (const OutOfMemoryError&) {
    drop_idle_plans(backend);
  }
  try {
    return backend.submit(*job.executable, job.bindings);
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(describe_intermediates(job.executable->plan()) + ": " + error.what());
  }
}

}  // namespace caldera
