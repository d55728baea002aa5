// Attention, dropout, embedding and batch normalisation where the table's samples do not go.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class Network : public OpTest {
 protected:
  LazyTensor counting(const Shape& shape) const {
    return reshape(sin(arange(shape.numel(), DType::f32, device())), shape);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Network, ::testing::ValuesIn(op_settings()), op_setting_name);

void expect_near(const LazyTensor& x, const LazyTensor& y, float tolerance = 1e-5F) {
  const Floats a = x.to_vector<float>(), b = y.to_vector<float>();
  ASSERT_EQ(x.shape(), y.shape());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

TEST_P(Network, AttentionWithoutAnyKeyIsTheMean) {
  const LazyTensor q = counting({2, 4}), k = counting({3, 4}), v = counting({3, 5});
  const LazyTensor mask = LazyTensor::zeros(Shape{2, 3}, DType::boolean, device());
  expect_near(scaled_dot_product_attention(q, k, v, {.mask = mask}),
              broadcast_to(mean(v, 0, true), Shape{2, 5}));
}

TEST_P(Network, AttentionMasksOfInfinityHideKeys) {
  const LazyTensor q = counting({2, 3, 4}), k = counting({2, 5, 4}), v = counting({2, 5, 4});
  const float inf = std::numeric_limits<float>::infinity();
  const LazyTensor bias = LazyTensor::from_vector(Floats{0, -inf, 0, 0, -inf}, {5}, device());
  const LazyTensor mask = greater(bias, -1.0);
  expect_near(scaled_dot_product_attention(q, k, v, {.mask = bias}),
              scaled_dot_product_attention(q, k, v, {.mask = mask}));
}

TEST_P(Network, GroupsOfHeadsAreHeadsRepeated) {
  const LazyTensor q = counting({2, 6, 3, 4}), k = counting({2, 2, 5, 4}), v = counting({2, 2, 5, 4});
  const auto repeated = [](const LazyTensor& x) {
    return reshape(broadcast_to(expand_dims(x, 2), Shape{2, 2, 3, 5, 4}), Shape{2, 6, 5, 4});
  };
  for (const bool causal : {false, true}) {
    expect_near(scaled_dot_product_attention(q, k, v, {.is_causal = causal, .enable_gqa = true}),
                scaled_dot_product_attention(q, repeated(k), repeated(v), {.is_causal = causal}));
  }
}

TEST_P(Network, DropoutKeepsItsShareAndItsMean) {
  const LazyTensor x = LazyTensor::ones(Shape{20000}, DType::f32, device());
  const LazyTensor y = dropout(x, 0.3, 5);
  const Floats values = y.to_vector<float>();
  const auto kept = std::count_if(values.begin(), values.end(), [](float v) { return v != 0; });
  // Four deviations, sqrt(p (1 - p) / n); here and below.
  EXPECT_NEAR(static_cast<double>(kept) / 20000, 0.7, 4 * std::sqrt(0.7 * 0.3 / 20000));
  for (const float v : values) ASSERT_TRUE(v == 0 || std::abs(v - 1 / 0.7F) < 1e-6F);
  EXPECT_EQ(dropout(x, 0.3, 5).to_vector<float>(), values);
  EXPECT_NE(dropout(x, 0.3, 6).to_vector<float>(), values);
  // The gradient passes where the value did.
  EXPECT_EQ(grad(sum(dropout(x, 0.3, 5)), x).to_vector<float>(), values);
  EXPECT_EQ(grad(sum(dropout(x, 1, 5)), x).to_vector<float>(), Floats(20000, 0));
}

TEST_P(Network, ChannelDropoutDropsWholeChannels) {
  const Floats y =
      channel_dropout(LazyTensor::ones(Shape{50, 20, 3, 2}, DType::f32, device()), 0.5, 9).to_vector<float>();
  int kept = 0;
  for (std::size_t i = 0; i < y.size(); i += 6) {
    for (std::size_t j = 1; j < 6; ++j) ASSERT_EQ(y[i + j], y[i]);
    kept += y[i] != 0 ? 1 : 0;
  }
  EXPECT_NEAR(kept / 1000.0, 0.5, 4 * std::sqrt(0.5 * 0.5 / 1000));
}

TEST_P(Network, PaddingHasARowButNoGradient) {
  const LazyTensor weight = LazyTensor::from_vector(Floats{1, 2, 3, 4, 5, 6}, {3, 2}, device());
  const LazyTensor ids = LazyTensor::from_vector(std::vector<std::int32_t>{1, 2, 1, 0}, {4}, device());
  for (const std::int64_t padding : {1, -2}) {
    const LazyTensor rows = embedding(weight, ids, padding);
    EXPECT_EQ(grad(sum(rows), weight).to_vector<float>(), (Floats{1, 1, 0, 0, 1, 1}));
    EXPECT_EQ(rows.to_vector<float>(), (Floats{3, 4, 5, 6, 3, 4, 1, 2}));
  }
  EXPECT_EQ(grad(sum(embedding(weight, ids)), weight).to_vector<float>(), (Floats{1, 1, 2, 2, 1, 1}));
}

TEST_P(Network, BatchNormKeepsRunningStatistics) {
  const LazyTensor x = LazyTensor::from_vector(Floats{1, 10, 3, 14, 5, 12}, {3, 2}, device());
  const LazyTensor mean = LazyTensor::zeros(Shape{2}, DType::f32, device());
  const LazyTensor var = LazyTensor::ones(Shape{2}, DType::f32, device());
  const BatchNormResult first =
      batch_norm(x, mean, var, {}, {}, {.training = true, .momentum = 0.5, .eps = 0});
  EXPECT_EQ(first.running_mean.to_vector<float>(), (Floats{1.5F, 6}));
  EXPECT_EQ(first.running_var.to_vector<float>(),
            (Floats{2.5F, 2.5F}));  // (1 + 4) / 2: the unbiased variance is 4
  const float side = std::sqrt(1.5F);
  const Floats wanted{-side, -side, 0, side, side, 0};
  const Floats output = first.output.to_vector<float>();
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(output[i], wanted[i], 1e-5F);
  // Without training they are read, and come back as they were.
  const BatchNormResult later = batch_norm(x, first.running_mean, first.running_var, {}, {}, {.eps = 0});
  EXPECT_EQ(later.running_mean.node_id(), first.running_mean.node_id());
  EXPECT_NEAR(later.output.to_vector<float>()[1], 4 / std::sqrt(2.5F), 1e-5F);
  // Of 16-bit activations the statistics stay in f32.
  const BatchNormResult half = batch_norm(astype(x, DType::f16), mean, var, {}, {}, {.training = true});
  EXPECT_EQ(half.output.dtype(), DType::f16);
  EXPECT_EQ(half.running_var.dtype(), DType::f32);
  // A caller may have none.
  EXPECT_FALSE(batch_norm(x, {}, {}, {}, {}, {.training = true}).running_mean.defined());
}

}  // namespace
}  // namespace caldera::testing
