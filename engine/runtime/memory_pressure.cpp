#include "engine/runtime/memory_pressure.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/graph/histories.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/job.h"
#include "engine/runtime/runtime.h"

namespace caldera {
namespace {

/// The result of `attempt`, which is made again after each way of making room.
template <class Attempt, class Describe>
auto with_room(const OpenDevice& target, const Attempt& attempt, const Describe& describe) {
  for (int way = 0; way < kWaysOfMakingRoom; ++way) {
    try {
      return attempt();
    } catch (const OutOfMemoryError&) {
      make_room(target, way);
    }
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

}  // namespace

void make_room(const OpenDevice& device, int way) {
  switch (way) {
    case 0:
      device.stream->synchronize();
      break;
    case 1:
      drop_idle_plans(*device.backend);
      break;
    default:
      give_up_histories();
  }
}

bool has_room_to_spare(const OpenDevice& device, std::int64_t bytes) {
  const DeviceCounters now = device.backend->counters();
  const std::uint64_t bound = now.limit_bytes != 0 ? now.limit_bytes : device.backend->info().memory_bytes;
  return bound == 0 ||
         (now.live_bytes <= bound && 2 * static_cast<std::uint64_t>(bytes) <= bound - now.live_bytes);
}

StoragePtr allocate_value(const std::shared_ptr<OpenDevice>& target, const Node& node) {
  try {
    return target->backend->allocate(std::max<std::size_t>(1, bytes_of(node)));
  } catch (const OutOfMemoryError& error) {
    throw OutOfRoom{target, describe_value(node.op().name, node.dtype(), node.shape()) + ": " + error.what()};
  }
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

void fetch_value(const Node& node, void* out) {
  const Value value = value_of(node).value();
  if (value.ready) value.ready->wait();  // its memory may have been given away meanwhile
  const std::shared_ptr<OpenDevice> source = open_device(value.storage->device());
  with_room(
      *source,
      [&] {
        source->backend->download(*value.storage, static_cast<std::size_t>(value.byte_offset), out,
                                  bytes_of(node));
      },
      [&] { return describe_value(node.op().name, node.dtype(), node.shape()); });
}

void set_memory_limit(Device device, std::uint64_t bytes) {
  const std::shared_ptr<OpenDevice> open = open_device(device);
  open->backend->set_memory_limit(bytes);
  if (bytes == 0 || open->backend->counters().reserved_bytes <= bytes) return;
  open->stream->synchronize();
  drop_idle_plans(*open->backend);
  open->backend->set_memory_limit(bytes);
}

void trim(Device device) {
  give_up_histories();
  trim_small_memory();
  for (const auto& open : open_devices()) {
    if (open->backend->info().device == device) open->backend->trim();
  }
}

void trim() {
  give_up_histories();
  trim_small_memory();
  for (const auto& open : open_devices()) open->backend->trim();
}

}  // namespace caldera
