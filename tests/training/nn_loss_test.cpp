// Cross-entropy against plain loops in double precision, and its gradient against central differences.
#include "ops/ops.h"
#include "tests/support/devices.h"
#include "tests/training/reference.h"
#include "training/nn/loss.h"

namespace caldera::testing {
namespace {

class NnLossTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }

  static constexpr std::int64_t kClasses = 33;
  static constexpr std::int64_t kRows = 6;
  const Doubles logits_ = random_doubles(kRows * kClasses, 1, -5, 5);
  const std::vector<std::int32_t> targets_{0, 32, 7, 7, 1, 20};
  const Doubles weights_{1, 0, 0.5, 2, 1, 0};

  LazyTensor logits() const { return make_tensor(logits_, Shape{2, 3, kClasses}, DType::f32, GetParam()); }
  LazyTensor targets(const std::vector<std::int32_t>& values) const {
    return LazyTensor::from_vector(values, Shape{2, 3}, GetParam());
  }
  LazyTensor weights(const Doubles& values) const {
    return make_tensor(values, Shape{2, 3}, DType::f32, GetParam());
  }
};

TEST_P(NnLossTest, WeightedMeanAndSum) {
  const Doubles nll = nll_reference(logits_, targets_, kClasses);
  double total = 0;
  double weight = 0;
  double plain = 0;
  for (std::size_t i = 0; i < nll.size(); ++i) {
    total += nll[i] * weights_[i];
    weight += weights_[i];
    plain += nll[i];
  }
  EXPECT_NEAR(cross_entropy(logits(), targets(targets_)).item<double>(), plain / kRows, 1e-5);
  EXPECT_NEAR(weighted_cross_entropy(logits(), targets(targets_), weights(weights_)).item<double>(),
              total / weight, 1e-5);
  const CrossEntropySum sums = cross_entropy_sum(logits(), targets(targets_), weights(weights_));
  EXPECT_NEAR(sums.loss.item<double>(), total, 1e-4);
  EXPECT_NEAR(sums.weight.item<double>(), weight, 1e-6);
}

TEST_P(NnLossTest, LargeLogitsDoNotOverflow) {
  const LazyTensor shifted = logits() + 1e4;
  const Doubles nll = nll_reference(logits_, targets_, kClasses);
  double plain = 0;
  for (const double v : nll) plain += v;
  EXPECT_NEAR(cross_entropy(shifted, targets(targets_)).item<double>(), plain / kRows, 1e-2);
}

TEST_P(NnLossTest, WhatDoesNotCountIsNotLookedAt) {
  std::vector<std::int32_t> padded = targets_;
  padded[1] = padded[5] = -1;  // weight 0
  const double expected =
      weighted_cross_entropy(logits(), targets(targets_), weights(weights_)).item<double>();
  EXPECT_NEAR(weighted_cross_entropy(logits(), targets(padded), weights(weights_)).item<double>(), expected,
              1e-6);
  padded[1] = padded[5] = -100;
  const double ignored =
      weighted_cross_entropy(logits(), targets(padded), weights(weights_), {.ignore_index = -100})
          .item<double>();
  EXPECT_NEAR(ignored, expected, 1e-6);
  EXPECT_EQ(weighted_cross_entropy(logits(), targets(targets_), weights(Doubles(6, 0))).item<double>(), 0);
}

TEST_P(NnLossTest, SmoothingMixesInTheUniformDistribution) {
  double expected = 0;
  for (std::int32_t c = 0; c < kClasses; ++c)
    for (const double v : nll_reference(logits_, std::vector<std::int32_t>(kRows, c), kClasses))
      expected += 0.1 * v / kClasses / kRows;
  for (const double v : nll_reference(logits_, targets_, kClasses)) expected += 0.9 * v / kRows;
  EXPECT_NEAR(
      weighted_cross_entropy(logits(), targets(targets_), {}, {.label_smoothing = 0.1}).item<double>(),
      expected, 1e-5);
}

TEST_P(NnLossTest, RefusesWhatDoesNotFit) {
  EXPECT_THROW(
      weighted_cross_entropy(logits(), targets(targets_), make_tensor({1}, Shape{1}, DType::f32, GetParam())),
      ShapeError);
  EXPECT_THROW(cross_entropy(logits(), LazyTensor::from_vector(targets_, Shape{6}, GetParam())), ShapeError);
}

INSTANTIATE_TEST_SUITE_P(Devices, NnLossTest, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(NnLossGradientTest, Logits) {
  const std::vector<std::int32_t> ids{0, 4, 2, 2, 1, 3};
  const LazyTensor targets = LazyTensor::from_vector(ids, Shape{2, 3}, Device::cpu());
  const LazyTensor weights = make_tensor({1, 0, 0.5, 2, 1, 1}, Shape{2, 3}, DType::f64, Device::cpu());
  for (const double smoothing : {0.0, 0.2})
    check_gradients(
        [&](std::span<const LazyTensor> in) {
          return weighted_cross_entropy(in[0], targets, weights,
                                        {.ignore_index = 3, .label_smoothing = smoothing});
        },
        {random_doubles(6 * 5, 1, -3, 3)}, {Shape{2, 3, 5}});
}

}  // namespace
}  // namespace caldera::testing
