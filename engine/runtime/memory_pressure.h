// Room for what is evaluated: how the runtime makes it when a device is out of memory, and what it says when
// there is none. Internal to the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/device/backend.h"
#include "engine/graph/node.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/stream.h"

namespace caldera {

/// A device had no memory for a value, at a place where nobody may wait for it: under graph_mutex().
struct OutOfRoom {
  std::shared_ptr<OpenDevice> device;
  std::string message;  // of the error, if there is no help
};

/// Memory for the value of `node`, at least a byte. Throws OutOfRoom; nothing has changed then.
StoragePtr allocate_value(const std::shared_ptr<OpenDevice>& target, const Node& node);

/// Whether a device has memory to spare for what nobody asked for, beside a replay that takes `bytes`: twice
/// as much is left of its limit, or of what it has where there is none.
bool has_room_to_spare(const OpenDevice& device, std::int64_t bytes);

/// The ways of making room on a device, in the order in which they are tried: waiting until its stream has
/// let go of what it holds; dropping the plans that only the cache holds; giving up the histories of values
/// that were computed. Not to be called by the stream itself, nor under graph_mutex().
inline constexpr int kWaysOfMakingRoom = 3;
void make_room(const OpenDevice& device, int way);

/// A value of the host's: memory, for which all room is made that can be, and the bytes brought there, for
/// which a device whose memory the host cannot reach needs some more. `what` names the value.
StoragePtr place_value(const OpenDevice& target, const void* data, std::size_t bytes, const char* what,
                       DType dtype, const Shape& shape);

/// The bytes of a node that has its value brought to the host, with the same patience.
void fetch_value(const Node& node, void* out);

}  // namespace caldera
