#include "engine/device/control/binomial.h"

#include <algorithm>
#include <limits>

namespace caldera {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

/// C(n, k), or kMost if it is larger than turns are counted.
std::int64_t choose(std::int64_t n, std::int64_t k) {
  if (k < 0 || k > n) return 0;
  k = std::min(k, n - k);
  std::int64_t value = 1;
  for (std::int64_t i = 1; i <= k; ++i) {
    if (value > kMost / (n - k + i)) return kMost;
    value = value * (n - k + i) / i;  // divides: a binomial coefficient
  }
  return value;
}

/// How often a turn is run forward at most.
std::int64_t repetitions(std::int64_t turns, std::int64_t snapshots) {
  std::int64_t r = 0;
  while (choose(snapshots + r, snapshots) < turns) ++r;
  return r;
}

}  // namespace

std::int64_t binomial_leap(std::int64_t turns, std::int64_t snapshots) {
  const std::int64_t r = repetitions(turns, snapshots);
  return std::max<std::int64_t>(
      1, std::min(choose(snapshots + r - 1, snapshots), turns - choose(snapshots + r - 2, snapshots - 1)));
}

std::int64_t binomial_advances(std::int64_t turns, std::int64_t snapshots) {
  const std::int64_t r = repetitions(turns, snapshots);
  return r * turns - choose(snapshots + r, snapshots + 1);
}

}  // namespace caldera
