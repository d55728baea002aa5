// New shapes make a compiled function trace again, once each; new numbers and positions do not.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Tensors = std::vector<LazyTensor>;

class HostRetracing : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, HostRetracing, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(HostRetracing, OncePerShapeAndNeverForNumbers) {
  int traces = 0;
  const TensorFunction mean_of = compiled(TensorFunction([&](Inputs a) {
    ++traces;
    return sum(a[0]) * a[1];
  }));
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const std::int64_t rows : {8, 8, 8, 5}) {  // the last batch is shorter
      const LazyTensor batch = LazyTensor::full({rows}, epoch, DType::f32, device());
      const LazyTensor value = mean_of(Tensors{batch, 1.0 / static_cast<double>(rows)});
      EXPECT_NEAR(value.item<float>(), static_cast<float>(epoch), 1e-6F);
    }
  }
  EXPECT_EQ(traces, 2);
}

TEST_P(HostRetracing, APositionIsANumber) {
  int traces = 0;
  const VectorFunction append =
      compiled(VectorFunction([&](Inputs a) {
                 ++traces;
                 const LazyTensor rows = dynamic_update_slice(a[0], a[1], {a[2], 0});
                 return Tensors{rows, sum(rows)};
               }),
               {.donate = {0}});
  // A vector, not a list in braces, which would hold second handles for as long as the call lasts.
  Tensors arguments(3);
  arguments[0] = LazyTensor::zeros({16, 4}, DType::f32, device()).eval();
  const std::uint64_t donated = donation_stats().buffers;
  float total = 0;
  for (int at = 0; at < 16; ++at) {
    arguments[1] = LazyTensor::full({1, 4}, at, DType::f32, device());
    arguments[2] = at;
    const Tensors next = append(arguments);
    arguments[0] = next[0];
    total += 4 * static_cast<float>(at);
    EXPECT_EQ(next[1].item<float>(), total);
  }
  EXPECT_EQ(traces, 1);
  EXPECT_EQ(donation_stats().buffers - donated, 16U) << "each call wrote its row into the same memory";
}

}  // namespace
}  // namespace caldera::testing
