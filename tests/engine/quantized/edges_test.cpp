// Quantised matrices at the edges: rows of x that overlap or lie in reverse, groups that threads must not
// cut, scales that are no numbers, and the least exponents.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/plan/dependencies.h"
#include "engine/runtime/evaluate.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"
#include "tests/engine/quantized/golden_matrices.h"

namespace caldera::testing {
namespace {

class QuantizedEdges : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, QuantizedEdges, ::testing::ValuesIn(op_settings()), op_setting_name);

/// Small whole numbers, whose sums are exact in any order.
std::vector<float> whole_numbers(std::int64_t count, int step) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i * step % 11 - 5));
  return values;
}

float dot_of(const float* x, const std::vector<float>& w, std::int64_t first, std::int64_t step,
             std::int64_t count) {
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += x[i] * w[static_cast<std::size_t>(first + i * step)];
  return sum;
}

TEST_P(QuantizedEdges, RowsMayBeBroadcastOrReversed) {
  const std::int64_t n = 24, k = 40;
  const std::vector<float> w = whole_numbers(n * k, 3);
  const QuantizedTensor q = quantized_tensor({QuantizedFormat::f32}, Shape{n, k},
                                             {LazyTensor::from_vector(w, Shape{n, k}, device())});
  for (const std::int64_t rows : {2, 3, 64}) {
    for (const bool transpose : {true, false}) {
      const std::int64_t inner = transpose ? k : n, width = transpose ? n : k;
      const std::vector<float> x = whole_numbers(rows * inner, 7);
      const LazyTensor all = LazyTensor::from_vector(x, Shape{rows, inner}, device());
      const LazyTensor one = slice(all, 0, 0, 1);
      const auto same =
          quantized_matmul(broadcast_to(one, Shape{rows, inner}), q, transpose).to_vector<float>();
      const auto reversed = quantized_matmul(slice(all, 0, {}, {}, -1), q, transpose).to_vector<float>();
      std::vector<float> want_same, want_reversed;
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < width; ++c) {
          const std::int64_t first = transpose ? c * k : c, step = transpose ? 1 : k;
          want_same.push_back(dot_of(x.data(), w, first, step, inner));
          want_reversed.push_back(dot_of(x.data() + (rows - 1 - r) * inner, w, first, step, inner));
        }
      }
      EXPECT_EQ(same, want_same) << rows << " rows, " << transpose;
      EXPECT_EQ(reversed, want_reversed) << rows << " rows, " << transpose;
    }
  }
  const LazyTensor ids = LazyTensor::from_vector<std::int32_t>({1, 5, 23}, Shape{3}, device());
  std::vector<float> want;
  for (const std::int64_t row : {23, 5, 1})
    want.insert(want.end(), w.begin() + row * k, w.begin() + (row + 1) * k);
  EXPECT_EQ(quantized_embedding(q, slice(ids, 0, {}, {}, -1)).to_vector<float>(), want);
}

TEST(QuantizedGroups, AreNotCutByThreads) {
  const std::int64_t rows = 512, group = 96, groups = 20, columns = group * groups;
  const std::vector<float> biases = whole_numbers(rows * groups, 7);
  const QuantizedTensor q = quantized_tensor(
      {QuantizedFormat::affine4, group}, Shape{rows, columns},
      {LazyTensor::zeros(Shape{rows, columns / 8}, DType::u32), LazyTensor::ones(Shape{rows, groups}),
       LazyTensor::from_vector(biases, Shape{rows, groups})});
  std::vector<float> want;
  for (std::int64_t i = 0; i < 4 * columns; ++i) {
    float sum = 0;
    for (std::int64_t r = 0; r < rows; ++r)
      sum += biases[static_cast<std::size_t>(r * groups + i % columns / group)];
    want.push_back(sum);
  }
  EXPECT_EQ(quantized_matmul(LazyTensor::ones(Shape{4, rows}), q, false).to_vector<float>(), want);
}

TEST(QuantizedPlans, ProductsWaitForEachPieceOfTheirBlocks) {
  const auto piece = [](std::int64_t columns) {
    const LazyTensor bytes = LazyTensor::zeros(Shape{8, columns}, DType::u8);
    eval({bytes});
    return bytes + LazyTensor::ones(Shape{8, columns}, DType::u8);
  };
  // A row of 512 weights has 544 bytes: its last ones are not within a row of as many elements as weights.
  const LazyTensor blocks = concatenate({piece(512), piece(32)}, 1);
  const LazyTensor x = LazyTensor::ones(Shape{3, 512});
  eval({x});
  const auto plan =
      plan_for({quantized_matmul(x, quantized_tensor({QuantizedFormat::q8_0}, Shape{8, 512}, {blocks}))});
  const std::size_t last = plan->steps.size() - 1;
  const std::vector<StepEdge> edges = dependencies_of(*plan);
  int writers = 0;
  for (std::size_t i = 0; i < last; ++i) {
    if (plan->steps[i].operands.back().buffer != plan->steps[last].operands[1].buffer) continue;
    ++writers;
    EXPECT_TRUE(std::find(edges.begin(), edges.end(), StepEdge(i, last)) != edges.end()) << "step " << i;
  }
  EXPECT_EQ(writers, 2) << plan->to_string();
}

TEST_P(QuantizedEdges, OneScaleMayStandForAnyMatrix) {
  constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  const QuantizedLayout layout{QuantizedFormat::fp8_e4m3, kAll, kAll};
  EXPECT_NE(why_no_layout(layout, 3, 40), "");  // of what was not made fit
  const QuantizedTensor q =
      quantized_tensor(layout, Shape{3, 40},
                       {LazyTensor::from_vector(std::vector<std::uint8_t>(120, 0x38), Shape{3, 40}, device()),
                        LazyTensor::from_vector<float>({2}, Shape{1, 1}, device())});
  EXPECT_EQ(dequantize(q).to_vector<float>(), std::vector<float>(120, 2));
}

TEST_P(QuantizedEdges, InfiniteScalesMakeNoNanOfTheLastColumns) {
  const float infinity = std::numeric_limits<float>::infinity();
  const QuantizedTensor q =
      quantized_tensor({QuantizedFormat::fp8_e4m3, 128, 128}, Shape{1, 5},
                       {LazyTensor::from_vector(std::vector<std::uint8_t>(5, 0x38), Shape{1, 5}, device()),
                        LazyTensor::from_vector<float>({infinity}, Shape{1, 1}, device())});
  const LazyTensor x = LazyTensor::ones(Shape{1, 5}, DType::f32, device());
  EXPECT_EQ(quantized_matmul(x, q).to_vector<float>(), std::vector<float>{infinity});
}

TEST_P(QuantizedEdges, TheLeastExponentsOfMxfp4AreNumbers) {
  std::vector<std::uint8_t> blocks(34, 0x77);  // 6 each
  blocks[0] = 0;
  blocks[17] = 1;
  const QuantizedTensor q = quantized_tensor({QuantizedFormat::mxfp4}, Shape{1, 64},
                                             {LazyTensor::from_vector(blocks, Shape{1, 34}, device())});
  std::vector<float> want(64, 0x6p-127F);
  std::fill(want.begin() + 32, want.end(), 0x6p-126F);
  EXPECT_EQ(dequantize(q).to_vector<float>(), want);
}

}  // namespace
}  // namespace caldera::testing
