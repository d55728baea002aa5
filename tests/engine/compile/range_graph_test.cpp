// Random graphs whose numbers go from 1e-38 to 1e38 (f16: to 6e4), in f32, f16 and bf16: neither fusion nor
// the order of evaluation may take a value out of range that stays in range as the program is written.
//
// What is compared, element by element, for the graph evaluated fused at once, fused output by output, and
// unfused with every node read:
//   - where the bounds of tests/support/plans/range_graph.h are finite, the result is within them. They
//     hold for any evaluation of the program as written, so a result outside is infinite, NaN, lost or wrong
//     where none of the program's own operations makes it so;
//   - elsewhere, where every value on the way is finite unfused, the plain f64 value fits the type, and no
//     sum on the way could overflow in another order, the fused result is finite too.
//
// CALDERA_FUZZ_SEED runs one seed, CALDERA_FUZZ_COUNT another number of them: 20000 on the CPU and 2000 on
// lavapipe are what a change to the compiler is tried with (--gtest_filter='*RangeGraphs*cpu').
#include "tests/support/plans/range_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class RangeGraphs : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, RangeGraphs, ::testing::ValuesIn(tested_devices()), device_test_name);

long fuzz_number(const char* name, long fallback) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? fallback : std::strtol(text, nullptr, 10);
}

void check_ranges(const RangeGraph& graph, Device device, double most) {
  std::vector<std::vector<double>> unfused;
  {
    const ScopedSettings scope(false);
    const RangeGraph::Tensors all = graph.build(device);
    eval(all);
    for (int i = 0; i < graph.size(); ++i) {
      unfused.push_back(values_of(all[static_cast<std::size_t>(i)]));
      EXPECT_TRUE(lies_within(unfused.back(), graph.node(i), false)) << "unfused, node " << i;
    }
  }
  const std::vector<bool> finite = graph.finite_all_the_way(unfused);
  for (const bool staged : {false, true}) {
    const ScopedSettings scope(true);
    const RangeGraph::Tensors all = graph.build(device);
    RangeGraph::Tensors outputs;
    for (const int output : graph.outputs()) outputs.push_back(all[static_cast<std::size_t>(output)]);
    if (!staged) eval(outputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const int i = graph.outputs()[k];
      const RangeGraph::Node& node = graph.node(i);
      const bool fits = std::all_of(node.ranges.value.v.begin(), node.ranges.value.v.end(),
                                    [&](double x) { return std::abs(x) < most; });
      EXPECT_TRUE(lies_within(values_of(outputs[k]), node,
                              fits && node.any_order && finite[static_cast<std::size_t>(i)]))
          << (staged ? "fused in stages" : "fused") << ", node " << i;
    }
  }
}

TEST_P(RangeGraphs, StayInRangeAsWritten) {
  const Device device = GetParam();
  const long one = fuzz_number("CALDERA_FUZZ_SEED", -1);
  const long first = one >= 0 ? one : 1;
  const long count =
      one >= 0 ? 1 : fuzz_number("CALDERA_FUZZ_COUNT", device.kind == DeviceKind::cpu ? 200 : 10);
  for (long seed = first; seed < first + count && !HasFailure(); ++seed) {
    constexpr DType kTypes[] = {DType::f32, DType::f16, DType::f32, DType::bf16};
    const DType real = kTypes[seed % 4];
    if (!backend(device).supports(real)) continue;
    const RangeGraph graph(static_cast<std::uint32_t>(seed), real);
    SCOPED_TRACE("CALDERA_FUZZ_SEED=" + std::to_string(seed) + "\n" + graph.to_string());
    ASSERT_NO_THROW(check_ranges(graph, device, real == DType::f16 ? 65000 : 3e38));
  }
}

TEST(RangeGraphBounds, NoticeWhatIsOutOfRange) {
  // Of many graphs most elements are bounded, and a value beyond a bound is noticed.
  std::size_t bounded = 0, all = 0;
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    const RangeGraph graph(seed, DType::f32);
    for (const int output : graph.outputs()) {
      const RangeGraph::Node& node = graph.node(output);
      std::vector<double> values = node.ranges.value.v;
      EXPECT_TRUE(lies_within(values, node, false));
      for (std::size_t i = 0; i < values.size(); ++i) {
        ++all;
        if (!std::isfinite(node.ranges.high.v[i])) continue;
        ++bounded;
        values[i] = INFINITY;
        EXPECT_FALSE(lies_within(values, node, false));
        values[i] = node.ranges.value.v[i];
      }
    }
  }
  EXPECT_GT(bounded * 2, all);
}

}  // namespace
}  // namespace caldera::testing
