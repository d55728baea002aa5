// Losses where the table's samples do not go: at the ends of their domains, with targets that do not count.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/caldera.h"
#include "engine/plan/plan.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class Losses : public OpTest {
 protected:
  LazyTensor vector(const Floats& values) const {
    return LazyTensor::from_vector(values, Shape{static_cast<std::int64_t>(values.size())}, device());
  }
  LazyTensor indices(const std::vector<std::int32_t>& values) const {
    return LazyTensor::from_vector(values, Shape{static_cast<std::int64_t>(values.size())}, device());
  }
  static void expect_near(const LazyTensor& x, const Floats& wanted, float tolerance = 1e-5F) {
    const auto values = x.to_vector<float>();
    ASSERT_EQ(values.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(values[i], wanted[i], tolerance) << i;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Losses, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(Losses, CrossEntropyTakesEmptyBracesForOptions) {
  const LazyTensor logits = LazyTensor::from_vector(std::vector<float>{0, 1, 2, 3, 4, 5}, Shape{2, 3});
  const LazyTensor targets = LazyTensor::from_vector(std::vector<std::int32_t>{0, 2}, Shape{2});
  const float expected = cross_entropy(logits, targets).item<float>();
  EXPECT_EQ(cross_entropy(logits, targets, {}).item<float>(), expected);
  EXPECT_EQ(cross_entropy(logits, targets, ones({3})).item<float>(), expected);
  EXPECT_EQ(cross_entropy(logits, targets, {.axis = 1}).item<float>(), expected);
}

TEST_P(Losses, CertainProbabilitiesHaveFiniteLossAndGradient) {
  const LazyTensor p = vector({0, 1, 0, 1, 0.5F});
  const LazyTensor y = vector({1, 0, 0, 1, 1});
  expect_near(binary_cross_entropy(p, y, {}, Reduction::none), {100, 100, 0, 0, std::log(2.0F)});
  expect_near(grad(binary_cross_entropy(p, y, {}, Reduction::sum), p), {0, 0, 1, -1, -2});
  // What is no probability must not pass for one.
  const Floats outside =
      binary_cross_entropy(vector({-0.5F, 1.5F}), vector({1, 0}), {}, Reduction::none).to_vector<float>();
  EXPECT_TRUE(std::isnan(outside[0]) && std::isnan(outside[1]));
}

TEST_P(Losses, LargeLogitsDoNotOverflow) {
  const LazyTensor x = vector({1000, -1000, 1000, -1000});
  const LazyTensor y = vector({1, 1, 0, 0});
  expect_near(binary_cross_entropy_with_logits(x, y, {}, Reduction::none), {0, 1000, 1000, 0});
  expect_near(grad(binary_cross_entropy_with_logits(x, y, {}, Reduction::sum), x), {0, -1, 1, 0});
  expect_near(soft_margin_loss(x, vector({1, 1, -1, -1}), Reduction::none), {0, 1000, 1000, 0});
  expect_near(grad(soft_margin_loss(x, vector({1, 1, -1, -1}), Reduction::sum), x), {0, -1, 1, 0});
}

TEST_P(Losses, ImpossibleEventsDoNotDiverge) {
  const LazyTensor x = vector({-1, -2}), p = vector({0, 0.5F});
  expect_near(kl_div(x, p, Reduction::none), {0, 0.5F * (std::log(0.5F) + 2)});
  expect_near(grad(kl_div(x, p, Reduction::sum), x), {0, -0.5F});
  EXPECT_TRUE(std::isfinite(grad(kl_div(x, p, Reduction::sum), p).to_vector<float>()[0]));
}

TEST_P(Losses, SmallVariancesCountAsEpsAndKeepTheirGradient) {
  const LazyTensor x = vector({1, 1}), y = vector({0, 0});
  const LazyTensor var = vector({0, 0.5F});
  expect_near(gaussian_nll_loss(x, y, var, false, 0.25, Reduction::none),
              {(std::log(0.25F) + 4) / 2, (std::log(0.5F) + 2) / 2});
  expect_near(grad(gaussian_nll_loss(x, y, var, false, 0.25, Reduction::sum), var), {-6, -1});
}

TEST_P(Losses, TargetsThatDoNotCount) {
  const LazyTensor p = log_softmax(LazyTensor::from_vector(Floats{1, 2, 3, 3, 2, 1}, {2, 3}, device()));
  EXPECT_EQ(nll_loss(p, indices({-100, -100})).item(), 0.0F);
  EXPECT_TRUE(std::isnan(nll_loss(p, indices({0, 3})).item()));
  EXPECT_TRUE(std::isnan(nll_loss(p, indices({0, -1})).item()));
  EXPECT_FALSE(std::isnan(nll_loss(p, indices({0, -1}), {.ignore_index = -1}).item()));
  const Floats margins = multi_margin_loss(p, indices({0, 3}), 1, 1, {}, Reduction::none).to_vector<float>();
  EXPECT_FALSE(std::isnan(margins[0]));
  EXPECT_TRUE(std::isnan(margins[1]));
}

TEST_P(Losses, ClassesOfEqualWeightAreUnweighted) {
  const LazyTensor x = LazyTensor::from_vector(Floats{1, 2, 3, 3, 2, 1, 0, 1, 0}, {3, 3}, device());
  const LazyTensor y = indices({0, 7, 2});
  for (const double smoothing : {0.0, 0.25}) {
    CrossEntropyOptions options{.ignore_index = 7, .label_smoothing = smoothing};
    const float plain = mean_cross_entropy(x, y, options).item();
    options.weight = vector({2.5F, 2.5F, 2.5F});
    EXPECT_NEAR(mean_cross_entropy(x, y, options).item(), plain, 1e-6);
    const CrossEntropyTerms terms = cross_entropy_terms(x, y, options);
    expect_near(terms.weights, {2.5F, 0, 2.5F});
    EXPECT_EQ(terms.losses.to_vector<float>()[1], 0.0F);
    // A class of weight 0 counts for nothing, so the mean of its targets alone is that of nothing.
    options.weight = vector({0, 1, 1});
    options.label_smoothing = 0;
    EXPECT_EQ(mean_cross_entropy(x, indices({0, 0, 0}), options).item(), 0.0F);
    options.label_smoothing = smoothing;
    EXPECT_EQ(mean_cross_entropy(x, indices({0, 0, 0}), options).item(), 0.0F);
    EXPECT_TRUE(std::isnan(mean_cross_entropy(x, indices({0, 3, 0}), options).item()));
  }
}

/// The third argument is PyTorch's: a factor for each class. The mean is over the factors of the targets.
TEST_P(Losses, TheThirdArgumentOfCrossEntropyIsClassWeights) {
  const std::vector<float> logits{0.5F, -1, 2, 0, 1, -0.5F};
  const std::vector<double> factors{0.25, 3, 0.5};
  const std::vector<std::int32_t> targets{2, 1};
  double losses = 0, total = 0;
  for (std::size_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (std::size_t c = 0; c < 3; ++c) sum += std::exp(static_cast<double>(logits[3 * row + c]));
    const auto target = static_cast<std::size_t>(targets[row]);
    losses += factors[target] * (std::log(sum) - static_cast<double>(logits[3 * row + target]));
    total += factors[target];
  }
  const LazyTensor x = LazyTensor::from_vector(logits, Shape{2, 3});
  const LazyTensor t = LazyTensor::from_vector(targets, Shape{2});
  const LazyTensor weight =
      LazyTensor::from_vector(std::vector<float>(factors.begin(), factors.end()), Shape{3});
  EXPECT_NEAR(cross_entropy(x, t, weight).item<double>(), losses / total, 1e-6);
  EXPECT_THROW(cross_entropy(x, t, t), ShapeError);  // one for each position
}

TEST_P(Losses, SmoothingOfOneLeavesTheTargetsOut) {
  const LazyTensor x = LazyTensor::from_vector(Floats{1, 2, 4, 3, 2, 1}, {2, 3}, device());
  const LazyTensor uniform = -mean(log_softmax(x));
  EXPECT_NEAR(mean_cross_entropy(x, indices({0, 1}), {.label_smoothing = 1}).item(), uniform.item(), 1e-6F);
}

TEST_P(Losses, NumbersTakeTheTypeOfTheTensor) {
  const LazyTensor x = vector({1, 2});
  EXPECT_EQ(mse_loss(x, 0.0).item(), 2.5F);
  EXPECT_EQ(mse_loss(0.0, x, Reduction::sum).item(), 5.0F);
  EXPECT_EQ(mse_loss(astype(x, DType::f16), 0.5).dtype(), DType::f16);
  EXPECT_EQ(hinge_embedding_loss(x, -1, 4, Reduction::sum).item(), 5.0F);
  // The sum of squares is beyond what f16 holds, the mean is not.
  const LazyTensor large = LazyTensor::full(Shape{1000}, 200, DType::f16, device());
  EXPECT_EQ(astype(mse_loss(large, 0.0), DType::f32).item(), 40000.0F);
}

TEST_P(Losses, OfNothing) {
  const LazyTensor none = LazyTensor::zeros(Shape{0, 3}, DType::f32, device());
  EXPECT_TRUE(std::isnan(mse_loss(none, none).item()));
  EXPECT_EQ(mse_loss(none, none, Reduction::sum).item(), 0.0F);
  EXPECT_EQ(mse_loss(none, none, Reduction::none).shape(), (Shape{0, 3}));
}

TEST_P(Losses, AVectorOfZerosIsLikeNoOther) {
  const LazyTensor zero = LazyTensor::zeros(Shape{1, 3}, DType::f32, device());
  const LazyTensor x = LazyTensor::from_vector(Floats{1, 2, 3}, {1, 3}, device());
  EXPECT_EQ(cosine_similarity(zero, x).item(), 0.0F);
  EXPECT_EQ(cosine_similarity(zero, zero).item(), 0.0F);
  for (const float value : grad(sum(cosine_similarity(zero, x)), x).to_vector<float>())
    EXPECT_EQ(value, 0.0F);
  // At a distance of 0 the gradient is 0 and not NaN.
  for (const float value : grad(sum(pairwise_distance(x, x * 1.0, 2, 0)), x).to_vector<float>())
    EXPECT_EQ(value, 0.0F);
}

TEST_P(Losses, CosineEmbeddingsBroadcastAheadOfTheirNorms) {
  const LazyTensor a = reshape(vector({2, -1}), {2, 1});
  const LazyTensor b = reshape(vector({1, 2, 3, 4, 5, 6}), {2, 3}), target = vector({1, -1});
  const auto loss = [&](const LazyTensor& x) {
    return cosine_embedding_loss(x, b, target, 0, Reduction::none);
  };
  expect_near(loss(a), loss(broadcast_to(a, {2, 3})).to_vector<float>());
}

TEST(LossPlans, LikelihoodsOfTargetsReadNoOtherClass) {
  const std::int64_t rows = 64, classes = 1000;
  const LazyTensor x = random_normal({rows, classes}, 1).eval();
  const LazyTensor targets = astype(arange(rows), DType::i32).eval();
  const auto plan = plan_for({nll_loss(x, targets)});
  for (const Step& step : plan->steps) {
    std::int64_t iterations = 1;
    for (const std::int64_t extent : step.dims) iterations *= extent;
    EXPECT_LE(iterations, rows) << step.name();
  }
}

}  // namespace
}  // namespace caldera::testing
