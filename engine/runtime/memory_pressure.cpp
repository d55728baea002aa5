#include "engine/runtime/memory_pressure.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/runtime/devices.h"
#include "engine/runtime/graph_key.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/runtime.h"
#include "engine/tensor/error.h"

namespace caldera {
namespace {

/// Plans keep memory of the device: argument tables.
void drop_idle_plans(Backend& backend) { plan_cache().drop_unused(backend.info().device); }

/// The result of `attempt`, which is made again after each way of making room.
template <class Attempt, class Describe>
auto with_room(const OpenDevice& target, const Attempt& attempt, const Describe& describe) {
  try {
    return attempt();
  } catch (const OutOfMemoryError&) {
    target.stream->synchronize();
  }
  try {
    return attempt();
  } catch (const OutOfMemoryError&) {
    drop_idle_plans(*target.backend);
  }
  try {
    return attempt();
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(describe() + ": " + error.what());
  }
}

template <class Describe>
StoragePtr allocate_with_room(const OpenDevice& target, std::size_t bytes, const Describe& describe) {
  const std::size_t wanted = std::max<std::size_t>(1, bytes);
  return with_room(
      target, [&] { return target.backend->allocate(wanted); }, describe);
}

std::string describe_value(std::string_view what, DType dtype, const Shape& shape) {
  return fmt::format("{}: {} of shape {}", what, name(dtype), shape.to_string());
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
  return allocate_with_room(target, bytes_of(node),
                            [&] { return describe_value(node.op().name, node.dtype(), node.shape()); });
}

StoragePtr place_value(const OpenDevice& target, const void* data, std::size_t bytes, const char* what,
                       DType dtype, const Shape& shape) {
  const auto describe = [&] { return describe_value(what, dtype, shape); };
  StoragePtr storage = allocate_with_room(target, bytes, describe);
  if (bytes > 0)
    with_room(
        target, [&] { target.backend->upload(*storage, 0, data, bytes); }, describe);
  return storage;
}

void fetch_value(const OpenDevice& source, const Node& node, void* out) {
  const Value& value = node.value();
  with_room(
      source,
      [&] {
        source.backend->download(*value.storage, static_cast<std::size_t>(value.byte_offset), out,
                                 bytes_of(node));
      },
      [&] { return describe_value(node.op().name, node.dtype(), node.shape()); });
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
