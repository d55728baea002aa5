// Random graphs against the plain reference: fused, unfused, in one evaluation and in stages, every plan
// proved. CALDERA_FUZZ_SEED runs one seed, CALDERA_FUZZ_COUNT another number of them.
#include "tests/support/plans/random_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class RandomGraphs : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, RandomGraphs, ::testing::ValuesIn(tested_devices()), device_test_name);

long from_environment(const char* name, long fallback) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? fallback : std::strtol(text, nullptr, 10);
}

/// What nodes are built upon is 4 at most, so errors stay near rounding; a misplaced element is off by
/// about 1.
double tolerance(DType real, Device device) {
  if (real == DType::f64) return 1e-9;
  return device.kind == DeviceKind::cpu ? 2e-4 : 1e-3;
}

void check(const RandomGraph& graph, Device device, double allowed, bool staged) {
  const RandomGraph::Tensors outputs = graph.build(device);
  if (staged) {
    for (const LazyTensor& output : outputs) output.eval();
  } else {
    eval(outputs);
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    EXPECT_TRUE(agrees(outputs[k], graph.node(graph.outputs()[k]).value, allowed)) << "output " << k;
  }
}

/// The same with some of the nodes held: what of them comes with the outputs has its value too. Returns how
/// many.
int check_held(const RandomGraph& graph, Device device, double allowed, std::uint32_t seed) {
  RandomGraph::Tensors outputs;
  RandomGraph::Tensors data;
  std::vector<std::pair<int, LazyTensor>> held;
  {
    const RandomGraph::Tensors nodes = graph.build_nodes([device](int) { return device; });
    for (int output : graph.outputs()) outputs.push_back(nodes[static_cast<std::size_t>(output)]);
    std::mt19937 random(seed);
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
      const LazyTensor& node = nodes[static_cast<std::size_t>(i)];
      const bool is_output =
          std::find(graph.outputs().begin(), graph.outputs().end(), i) != graph.outputs().end();
      if (node.is_evaluated())
        data.push_back(node);
      else if (!is_output && random() % 2 == 0)
        held.emplace_back(i, node);
    }
  }
  eval(outputs);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    EXPECT_TRUE(agrees(outputs[k], graph.node(graph.outputs()[k]).value, allowed)) << "output " << k;
  }
  int found = 0;
  for (const auto& [i, node] : held) {
    if (!node.is_evaluated()) continue;
    ++found;
    EXPECT_TRUE(agrees(node, graph.node(i).value, allowed)) << "node " << i;
  }
  return found;
}

TEST_P(RandomGraphs, AgreeWithTheReference) {
  const Device device = GetParam();
  const long one = from_environment("CALDERA_FUZZ_SEED", -1);
  const long first = one >= 0 ? one : 1;
  const long count =
      one >= 0 ? 1 : from_environment("CALDERA_FUZZ_COUNT", device.kind == DeviceKind::cpu ? 500 : 50);
  int found = 0;
  for (long seed = first; seed < first + count && !HasFailure(); ++seed) {
    // f64 tells a misplaced element from a rounding error better; f32 is what most programs use. GPUs lack
    // many functions in f64.
    const bool wide = seed % 2 == 0 && device.kind == DeviceKind::cpu;
    const DType real = wide ? DType::f64 : DType::f32;
    const RandomGraph graph(static_cast<std::uint32_t>(seed), real);
    for (bool fusion : {true, false}) {
      for (bool staged : {false, true}) {
        SCOPED_TRACE("CALDERA_FUZZ_SEED=" + std::to_string(seed) + (fusion ? " fused" : " plain") +
                     (staged ? " staged" : "") + (wide ? " f64\n" : " f32\n") + graph.to_string());
        const ScopedSettings scope(fusion);
        if (!staged && seed % 4 < 2) {
          ASSERT_NO_THROW(
              found += check_held(graph, device, tolerance(real, device), static_cast<std::uint32_t>(seed)));
          continue;
        }
        ASSERT_NO_THROW(check(graph, device, tolerance(real, device), staged));
      }
    }
  }
  if (one < 0) {
    EXPECT_GT(found, count / 2) << "what is held comes with what is asked for";
  }
}

TEST_P(RandomGraphs, TheReferenceNoticesAWrongElement) {
  const RandomGraph graph(1, DType::f32);
  const ScopedSettings scope;
  const RandomGraph::Tensors outputs = graph.build(GetParam());
  Dense wrong = graph.node(graph.outputs()[0]).value;
  ASSERT_FALSE(wrong.v.empty());
  EXPECT_TRUE(agrees(outputs[0], wrong, tolerance(DType::f32, GetParam())));
  wrong.v.back() += 0.01;
  EXPECT_FALSE(agrees(outputs[0], wrong, tolerance(DType::f32, GetParam())));
}

}  // namespace
}  // namespace caldera::testing
