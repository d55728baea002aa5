#include "training/data/shuffle.h"

#include <numeric>
#include <utility>

#include "engine/base/splitmix64.h"

namespace caldera {
namespace {

class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return splitmix64(state_ += kSplitMix64Step); }
  /// Uniform in [0, bound): values from the incomplete last multiple of `bound` are drawn again.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t reject = (0 - bound) % bound;  // 2^64 mod bound
    std::uint64_t value = next();
    while (value < reject) value = next();
    return value % bound;
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::vector<std::int64_t> shuffled(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  // Seed and epoch pass through the mixer one after the other, so that (1, 0) and (0, 1) are unrelated.
  SplitMix64 random(SplitMix64(seed).next() + epoch);
  random = SplitMix64(random.next());
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace caldera
