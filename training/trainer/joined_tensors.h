// Joins tensors for messages: several as one, which is worth its latency. Private to training/trainer/.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera::detail {

/// Divides [0, size) into ranges of tensors that go as one message, the last tensors in the first range: a
/// backward pass has those first. Each range has one dtype, and up to eight have equal bytes.
std::vector<std::pair<std::size_t, std::size_t>> message_ranges(std::span<const LazyTensor> tensors);

/// Returns them one behind the other, as a vector.
LazyTensor joined(std::span<const LazyTensor> tensors);
/// Replaces each by its part of what joined() made of them.
void separate(const LazyTensor& whole, std::span<LazyTensor> tensors);

}  // namespace caldera::detail
