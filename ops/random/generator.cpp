#include "ops/random/generator.h"

#include <mutex>

#include "engine/base/splitmix64.h"

namespace caldera {
namespace {

std::mutex generator_mutex;
std::uint64_t generator_state = 0;

}  // namespace

void manual_seed(std::uint64_t seed) {
  const std::scoped_lock lock(generator_mutex);
  // Neighbouring seeds begin far apart: their sequences would be each other's, one call later or earlier.
  generator_state = splitmix64(seed);
}

std::uint64_t next_seed() {
  const std::scoped_lock lock(generator_mutex);
  generator_state += kSplitMix64Step;
  return splitmix64(generator_state);
}

}  // namespace caldera
