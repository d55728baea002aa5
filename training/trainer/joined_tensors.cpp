#include "training/trainer/joined_tensors.h"

#include <algorithm>
#include <cstdint>

#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"

namespace caldera::detail {
namespace {

constexpr std::int64_t kRanges = 8;
constexpr std::int64_t kLeastBytes = std::int64_t{64} << 10;
constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;

std::int64_t message_bytes(const LazyTensor& x) {
  return x.numel() * static_cast<std::int64_t>(size_of(x.dtype()));
}

}  // namespace

std::int64_t least_message_bytes(std::int64_t total) {
  return std::clamp(total / kRanges, kLeastBytes, kMostBytes);
}

std::vector<std::pair<std::size_t, std::size_t>> message_ranges(std::span<const LazyTensor> tensors) {
  std::int64_t total = 0;
  for (const LazyTensor& x : tensors) total += message_bytes(x);
  const std::int64_t enough = least_message_bytes(total);
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  std::size_t end = tensors.size();
  std::int64_t held = 0;
  for (std::size_t i = tensors.size(); i-- > 0;) {
    held += message_bytes(tensors[i]);
    if (i > 0 && held < enough && tensors[i - 1].dtype() == tensors[i].dtype()) continue;
    ranges.emplace_back(i, end);
    end = i;
    held = 0;
  }
  return ranges;
}

LazyTensor joined(std::span<const LazyTensor> tensors) {
  std::vector<LazyTensor> flat;
  for (const LazyTensor& x : tensors) flat.push_back(reshape(x, {x.numel()}));
  return flat.size() == 1 ? flat.front() : concatenate(flat, 0);
}

void separate(const LazyTensor& whole, std::span<LazyTensor> tensors) {
  std::int64_t at = 0;
  for (LazyTensor& x : tensors) {
    const Shape shape = x.shape();
    const std::int64_t n = x.numel();
    x = reshape(slice(whole, 0, at, at + n), shape);
    at += n;
  }
}

}  // namespace caldera::detail
