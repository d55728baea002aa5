// The choice of each layer's option against all combinations of them.
#include "training/memory/layer_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

namespace caldera::testing {
namespace {

using Layers = std::vector<std::vector<LayerOption>>;
using Chosen = std::vector<std::size_t>;

std::int64_t peak_of(const Layers& layers, const Chosen& chosen) {
  std::int64_t peak = 0, kept = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    peak = std::max(peak, kept + layers[i][chosen[i]].working_bytes);
    kept += layers[i][chosen[i]].kept_bytes;
  }
  return peak;
}

double seconds_of(const Layers& layers, const Chosen& chosen) {
  double seconds = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) seconds += layers[i][chosen[i]].seconds;
  return seconds;
}

/// All combinations, one after the other.
template <class Visit>
void for_each_choice(const Layers& layers, const Visit& visit) {
  Chosen chosen(layers.size(), 0);
  while (true) {
    visit(chosen);
    std::size_t i = 0;
    while (i < layers.size() && ++chosen[i] == layers[i].size()) chosen[i++] = 0;
    if (i == layers.size()) return;
  }
}

TEST(LayerProblem, IsAsCheapAsTheCheapestOfAllCombinations) {
  std::mt19937 random(7);
  const auto number = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int feasible = 0;
  for (int round = 0; round < 300; ++round) {
    Layers layers(static_cast<std::size_t>(number(1, 5)));
    for (std::vector<LayerOption>& options : layers) {
      options.resize(static_cast<std::size_t>(number(1, 4)));
      for (LayerOption& option : options)
        option = {
            .kept_bytes = number(0, 40), .working_bytes = number(5, 60), .seconds = number(0, 20) * 0.25};
    }
    const std::int64_t limit = number(10, 150);
    double least = std::numeric_limits<double>::infinity();
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for_each_choice(layers, [&](const Chosen& chosen) {
      const std::int64_t peak = peak_of(layers, chosen);
      lowest = std::min(lowest, peak);
      if (peak <= limit) least = std::min(least, seconds_of(layers, chosen));
    });
    const std::optional<Chosen> chosen = cheapest_options(layers, limit);
    ASSERT_EQ(chosen.has_value(), least < std::numeric_limits<double>::infinity()) << round;
    EXPECT_EQ(peak_of(layers, smallest_options(layers)), lowest) << round;
    if (!chosen) continue;
    ++feasible;
    EXPECT_LE(peak_of(layers, *chosen), limit) << round;
    EXPECT_DOUBLE_EQ(seconds_of(layers, *chosen), least) << round;
  }
  EXPECT_GT(feasible, 100);
}

TEST(LayerProblem, OfManyLayersIsQuick) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<LayerOption> options;
  for (int i = 0; i < 10; ++i)
    options.push_back(
        {.kept_bytes = 1'000'003 * (10 - i), .working_bytes = 30'000'001 - i, .seconds = i * i * 0.01});
  ASSERT_TRUE(cheapest_options(Layers(12, options), 80'000'000));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  const Layers layers(128, options);
  const std::optional<Chosen> chosen = cheapest_options(layers, 600'000'000);
  ASSERT_TRUE(chosen);
  EXPECT_LE(peak_of(layers, *chosen), 600'000'000);
  EXPECT_GT(peak_of(layers, *chosen), 580'000'000);
}

}  // namespace
}  // namespace caldera::testing
