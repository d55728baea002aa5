#include "training/rl/spaces/random.h"

#include <cmath>
#include <numbers>

#include "lm/nn/module.h"

namespace caldera::rl {

Random Random::stream(std::uint64_t seed, std::uint64_t stream) { return Random(mix_seed(seed, stream)); }

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace caldera::rl
