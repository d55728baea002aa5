// checkpoint of attentions: nothing of their inside is kept, and what is kept of one is not computed again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/autodiff/barrier.h"
#include "engine/caldera.h"
#include "engine/plan/steps/attention.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Tensors = std::vector<LazyTensor>;

class CheckpointedAttention : public OpTest {
 protected:
  static constexpr std::int64_t kWidth = 32;

  LazyTensor rows_of(std::int64_t rows, std::uint64_t seed) const {
    const Shape shape{rows, kWidth};
    return upload(stored(Host(shape, random_values(shape.numel(), 0.01, 0.2, true, seed)), DType::f32),
                  DType::f32, device());
  }
  static LazyTensor slope(const LazyTensor& y, const LazyTensor& x) { return grad(sum(y * y), x); }
  static void expect_close(const std::vector<float>& actual, const std::vector<float>& expected) {
    ASSERT_EQ(actual.size(), expected.size());
    float largest = 0;
    for (const float value : expected) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], 1e-5F * largest) << "element " << i;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, CheckpointedAttention, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(CheckpointedAttention, KeepsNothingOfTheInsideOfAnAttention) {
  const std::int64_t length = 48, width = 16;
  const LazyTensor q = upload(
      stored(Host(Shape{2, length, width}, random_values(2 * length * width, 0.1, 1, true, 5)), DType::f32),
      DType::f32, device());
  std::vector<std::string> inside, products;
  const Keep keep(Keep::Choice([&](std::span<const InnerValue> values) {
    for (const InnerValue& value : values) {
      const std::string shape = value.tensor.shape().to_string();
      if (value.is_in_attention) inside.push_back(shape);
      if (value.tensor.node().kind() == OpClass::contract && !value.is_in_attention)
        products.push_back(shape);
    }
    return keep::products()(values);
  }));
  const UnaryFunction attention = [](const LazyTensor& a) {
    const LazyTensor p = softmax(matmul(a, swapaxes(a, -1, -2)) * 0.25, -1);
    return matmul(p, a);
  };
  const LazyTensor g = slope(checkpoint(attention, keep)(q), q);
  EXPECT_GE(inside.size(), 4u) << "scores, their scale, exponentials, probabilities";
  EXPECT_EQ(products, std::vector<std::string>{(Shape{2, length, width}).to_string()});
  expect_close(g.to_vector<float>(), slope(attention(q), q).to_vector<float>());
}

TEST_P(CheckpointedAttention, ComputesNoAttentionAgainWhoseResultIsKept) {
  const LazyTensor x = rows_of(64, 1);
  std::vector<LazyTensor> w;
  for (std::uint64_t i = 0; i < 4; ++i) w.push_back(rows_of(kWidth, 2 + i));
  const UnaryFunction layer = [&](const LazyTensor& a) {
    const LazyTensor q = matmul(a, w[0]), k = matmul(a, w[1]), v = matmul(a, w[2]);
    return a + matmul(matmul(softmax(matmul(q, swapaxes(k, -1, -2)) * 0.25, -1), v), w[3]);
  };
  const auto gradient = [&](const Keep& keep) {
    return slope(checkpoint(layer, keep)(checkpoint(layer, keep)(x)), x);
  };
  const auto attentions = [](const LazyTensor& g) {
    const auto plan = plan_for({g});
    return std::ranges::count_if(plan->steps, [](const Step& s) {
      return s.is<AttentionStep>() && s.as<AttentionStep>().pass == AttentionPass::forward;
    });
  };
  const LazyTensor all = gradient(keep::everything()), products = gradient(keep::products());
  const LazyTensor none = gradient(keep::nothing());
  EXPECT_EQ(attentions(products), attentions(all));
  EXPECT_EQ(attentions(none), 2 * attentions(all));
  for (const LazyTensor& g : {products, none}) expect_close(g.to_vector<float>(), all.to_vector<float>());
}

TEST_P(CheckpointedAttention, TakesNoOtherAttentionForTheOneThatIsKept) {
  const LazyTensor q = rows_of(64, 1), k = rows_of(64, 2), v = rows_of(64, 3);
  const auto attention = [&](const LazyTensor& from, const LazyTensor& values, double scale) {
    return matmul(softmax(matmul(from, swapaxes(k, -1, -2)) * scale, -1), values);
  };
  const LazyTensor kept = attention(q, v, 0.25);
  const auto gradient = [&](bool behind, const LazyTensor& values, double scale) {
    const auto later = [&](const LazyTensor& x) { return behind ? behind_barrier(x, Tensors{kept}) : x; };
    const LazyTensor y =
        attention(later(q), values, scale) + (behind ? behind_barrier(kept, Tensors{q}) : kept);
    return slope(y, values);
  };
  for (const double scale : {0.25, 0.5}) {
    for (const LazyTensor& values : {v, v * 1.5}) {
      SCOPED_TRACE(scale);
      expect_close(gradient(true, values, scale).to_vector<float>(),
                   gradient(false, values, scale).to_vector<float>());
    }
  }
}

}  // namespace
}  // namespace caldera::testing
