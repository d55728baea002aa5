// Random graphs whose nodes are strewn over three devices, against the plain f64 reference.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/engine/multi_device/two_devices.h"
#include "tests/support/plans/random_graph.h"

namespace caldera::testing {
namespace {

class RandomCuts : public TwoDevices {};
INSTANTIATE_TEST_SUITE_P(Fusion, RandomCuts, ::testing::Bool(), fusion_name);

TEST_P(RandomCuts, AgreeWithTheReference) {
  constexpr std::uint32_t kGraphs = 40;
  for (std::uint32_t seed = 1; seed <= kGraphs && !HasFailure(); ++seed) {
    const RandomGraph graph(seed, DType::f32);
    std::mt19937 random(seed);
    // From one move in twenty nodes to a move at nearly every node.
    const int percent = seed % 2 == 0 ? 5 : 60;
    Device current = cpu();
    const auto place = [&](int) {
      if (std::uniform_int_distribution<int>(0, 99)(random) < percent)
        current = all()[std::uniform_int_distribution<std::size_t>(0, 2)(random)];
      return current;
    };
    const RandomGraph::Tensors outputs = graph.build(place);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + graph.to_string());
    if (seed % 3 == 0) {
      for (const LazyTensor& output : outputs) output.eval();
    } else {
      eval(outputs);
    }
    for (std::size_t k = 0; k < outputs.size(); ++k)
      EXPECT_TRUE(agrees(outputs[k], graph.node(graph.outputs()[k]).value, 1e-3)) << "output " << k;
  }
}

}  // namespace
}  // namespace caldera::testing
