// Joins tensors for messages: several as one, which is worth its latency. Private to training/trainer/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera::detail {

/// Returns the least bytes of a message, of `total` bytes that go in several: an eighth, within 64 KiB and 16
/// MiB. Enough are on the way while the rest is computed, and each is worth its latency.
std::int64_t least_message_bytes(std::int64_t total);

/// Divides [0, size) into ranges of tensors that go as one message, the last tensors in the first range: a
/// backward pass has those first. Each range has one dtype, and but for the last least_message_bytes() or
/// more.
std::vector<std::pair<std::size_t, std::size_t>> message_ranges(std::span<const LazyTensor> tensors);

/// Returns them one behind the other, as a vector.
LazyTensor joined(std::span<const LazyTensor> tensors);
/// Replaces each by its part of what joined() made of them.
void separate(const LazyTensor& whole, std::span<LazyTensor> tensors);

}  // namespace caldera::detail
