#include "training/vision/data/samplers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/error.h"
#include "training/rl/spaces/random.h"

namespace caldera::vision {
namespace {

rl::Random of_epoch(std::uint64_t seed, std::int64_t epoch) {
  return rl::Random::stream(seed, static_cast<std::uint64_t>(epoch));
}

std::vector<std::int64_t> counted(std::int64_t count) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<std::int64_t> shuffled_by(rl::Random random, std::int64_t count) {
  std::vector<std::int64_t> order = counted(count);
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.below(i + 1))]);
  return order;
}

}  // namespace

std::vector<std::int64_t> shuffled_order(std::int64_t count, std::uint64_t seed) {
  return shuffled_by(rl::Random(seed), count);
}

Sampler in_order(std::int64_t count) {
  return [count](std::int64_t /*epoch*/) { return counted(count); };
}

Sampler shuffled(std::int64_t count, std::uint64_t seed) {
  return [count, seed](std::int64_t epoch) { return shuffled_by(of_epoch(seed, epoch), count); };
}

Sampler weighted(std::vector<double> weights, std::int64_t count, std::uint64_t seed) {
  double sum = 0;
  for (double& weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight))
      throw ValueError(fmt::format("weighted: a weight is {}, want 0 or more", weight));
    sum += weight;
    weight = sum;  // up to here
  }
  if (!(sum > 0) || !std::isfinite(sum)) throw ValueError("weighted: the weights have no finite sum above 0");
  return [sums = std::move(weights), count, seed](std::int64_t epoch) {
    rl::Random random = of_epoch(seed, epoch);
    std::vector<std::int64_t> drawn;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = std::ranges::upper_bound(sums, random.uniform() * sums.back());
      drawn.push_back(std::min<std::int64_t>(at - sums.begin(), static_cast<std::int64_t>(sums.size()) - 1));
    }
    return drawn;
  };
}

std::vector<double> class_balance(const ImageDataset& data) {
  std::vector<double> counts(static_cast<std::size_t>(data.classes())), weights;
  for (std::int64_t i = 0; i < data.size(); ++i) ++counts[static_cast<std::size_t>(data.label(i))];
  for (std::int64_t i = 0; i < data.size(); ++i)
    weights.push_back(1 / counts[static_cast<std::size_t>(data.label(i))]);
  return weights;
}

}  // namespace caldera::vision
