// Room for what is evaluated: how the runtime makes it when a device is out of memory, and what it says when
// there is none. Internal to the runtime.
#pragma once

#include <cstddef>

#include "engine/device/backend.h"
#include "engine/graph/node.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/stream.h"

namespace caldera {

/// Memory for the value of `node`, at least a byte. When the device is out of memory: waits until its stream
/// has let go of what it holds, then drops the plans that only the cache holds, and tries again after each.
/// Throws OutOfMemoryError that names the operation, type and shape; nothing has changed then. Not to be
/// called by the stream itself.
StoragePtr allocate_value(const OpenDevice& target, const Node& node);

/// A value of the host's: memory as above, and the bytes brought there, for which a device whose memory the
/// host cannot reach needs some more. `what` names the value.
StoragePtr place_value(const OpenDevice& target, const void* data, std::size_t bytes, const char* what,
                       DType dtype, const Shape& shape);

/// The bytes of a node that has its value brought to the host, with the same patience.
void fetch_value(const OpenDevice& source, const Node& node, void* out);

}  // namespace caldera
