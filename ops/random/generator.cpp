#include "ops/random/generator.h"

#include <mutex>

namespace caldera {
namespace {

std::mutex generator_mutex;
std::uint64_t generator_state = 0;

/// The output of SplitMix64 (Steele, Lea and Flood 2014): a bijection, so that no two states give one seed.
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace

void manual_seed(std::uint64_t seed) {
  const std::scoped_lock lock(generator_mutex);
  // Neighbouring seeds begin far apart: their sequences would be each other's, one call later or earlier.
  generator_state = mixed(seed);
}

std::uint64_t next_seed() {
  const std::scoped_lock lock(generator_mutex);
  generator_state += 0x9e3779b97f4a7c15U;
  return mixed(generator_state);
}

}  // namespace caldera
