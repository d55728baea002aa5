// Random: the random numbers of environments and agents on the host.
#pragma once

#include <cstdint>

namespace caldera::rl {

/// Draws numbers by splitmix64 (Steele et al. 2014). Its whole state is one integer, which a checkpoint
/// saves. A value type; one thread at a time.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(seed) {}
  /// Makes an independent stream: number `stream` of this seed.
  static Random stream(std::uint64_t seed, std::uint64_t stream);

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  /// Returns a number in [0, 1), of 53 random bits.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Returns a number of mean 0 and deviation 1, by the method of Box and Muller, which takes two draws.
  double normal();
  /// Returns an integer in [0, count), each as likely to 2^-11 of its probability up to 2^42.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(uniform() * static_cast<double>(count));
  }

  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

}  // namespace caldera::rl
