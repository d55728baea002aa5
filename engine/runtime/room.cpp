#include "engine/runtime/room.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "engine/runtime/capture.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/runtime.h"
#include "engine/tensor/error.h"

namespace caldera {
namespace {

/// Plans keep memory of the device: argument tables.
void drop_idle_plans(Backend& backend) { plan_cache().drop_unused(backend.info().device); }

template <class Describe>
StoragePtr allocate_with_room(const OpenDevice& target, std::size_t bytes, const Describe& describe) {
  const std::size_t wanted = std::max<std::size_t>(1, bytes);
  try {
    return target.backend->allocate(wanted);
  } catch (const OutOfMemoryError&) {
    target.stream->synchronize();
  }
  try {
    return target.backend->allocate(wanted);
  } catch (const OutOfMemoryError&) {
    drop_idle_plans(*target.backend);
  }
  try {
    return target.backend->allocate(wanted);
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(describe() + ": " + error.what());
  }
}

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

StoragePtr allocate_value(const OpenDevice& target, const Node& node) {
  return allocate_with_room(target, bytes_of(node), [&] {
    return fmt::format("{}: {} of shape {}", node.op().name, name(node.dtype()), node.shape().to_string());
  });
}

StoragePtr allocate_value(const OpenDevice& target, std::size_t bytes, const char* what, DType dtype,
                          const Shape& shape) {
  return allocate_with_room(
      target, bytes, [&] { return fmt::format("{}: {} of shape {}", what, name(dtype), shape.to_string()); });
}

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

void set_memory_limit(Device device, std::uint64_t bytes) {
  const std::shared_ptr<OpenDevice> open = open_device(device);
  open->backend->set_memory_limit(bytes);
  if (bytes == 0 || open->backend->counters().reserved_bytes <= bytes) return;
  open->stream->synchronize();
  drop_idle_plans(*open->backend);
  open->backend->set_memory_limit(bytes);
}

}  // namespace caldera
