#include "training/data/stream/permutation.h"

#include "engine/base/splitmix64.h"
#include "training/data/shuffle.h"

namespace caldera::detail {
namespace {

constexpr std::int64_t kKept = std::int64_t{1} << 16;

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch)
    : size_(static_cast<std::uint64_t>(size)) {
  // The halves of a short one have too few values for all orders to be as likely.
  if (size <= kKept) {
    kept_ = shuffled(size, seed, epoch);
    return;
  }
  while (half_bits_ < 31 && (std::uint64_t{1} << (2 * half_bits_)) < size_) ++half_bits_;
  // Seed and epoch pass through the mixer one after the other, so that (1, 0) and (0, 1) are unrelated.
  std::uint64_t state = splitmix64(splitmix64(seed + kSplitMix64Step) + epoch + kSplitMix64Step);
  for (std::uint64_t& key : keys_) key = splitmix64(state += kSplitMix64Step);
}

std::int64_t Permutation::operator[](std::int64_t position) const {
  if (!kept_.empty()) return kept_[static_cast<std::size_t>(position)];
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<std::uint64_t>(position);
  do {
    std::uint64_t left = value >> half_bits_, right = value & mask;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t mixed = left ^ (splitmix64(right ^ key) & mask);
      left = right;
      right = mixed;
    }
    value = left << half_bits_ | right;
  } while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace caldera::detail
