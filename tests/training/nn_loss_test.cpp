// Cross-entropy against plain loops in double precision, and its gradient against central differences.
#include <cmath>

#include "engine/autodiff/autodiff.h"
#include "ops/ops.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"
#include "tests/support/messages.h"
#include "training/objectives/loss.h"

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
  const Head head = [](const LazyTensor& rows) { return rows; };
  const std::string of_targets = message_of<ShapeError>([&] {
    head_cross_entropy_sum(logits(), kClasses, head, LazyTensor::from_vector(targets_, Shape{6}, GetParam()));
  });
  EXPECT_MENTIONS(of_targets, "head_cross_entropy_sum: hidden states " + logits().shape().to_string());
  EXPECT_MENTIONS(of_targets, "targets (6,); give ");
  const std::string of_weights = message_of<ShapeError>([&] {
    head_cross_entropy_sum(logits(), kClasses, head, targets(targets_),
                           make_tensor({1}, Shape{1}, DType::f32, GetParam()));
  });
  EXPECT_MENTIONS(of_weights, "head_cross_entropy_sum: weights (1,)");
  EXPECT_MENTIONS(of_weights, "; give one weight for each target");
}

/// Rows of hidden states at a time, of which some parts are shorter than others: against loops in double.
TEST_P(NnLossTest, TheHeadMayTakeTheRowsInParts) {
  constexpr std::int64_t kHidden = 4;
  const Doubles hidden = random_doubles(kRows * kHidden, 2, -1, 1);
  const Doubles matrix = random_doubles(kHidden * kClasses, 3, -1, 1);
  Doubles logits(static_cast<std::size_t>(kRows * kClasses), 0.0);
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kClasses; ++c)
      for (std::int64_t k = 0; k < kHidden; ++k)
        logits[to_size(r * kClasses + c)] +=
            hidden[to_size(r * kHidden + k)] * matrix[to_size(k * kClasses + c)];
  const Doubles nll = nll_reference(logits, targets_, kClasses);
  double total = 0, weight = 0;
  Doubles of_hidden(hidden.size(), 0.0), of_matrix(matrix.size(), 0.0);
  for (std::int64_t r = 0; r < kRows; ++r) {
    total += nll[to_size(r)] * weights_[to_size(r)];
    weight += weights_[to_size(r)];
    double sum = 0;
    for (std::int64_t c = 0; c < kClasses; ++c) sum += std::exp(logits[to_size(r * kClasses + c)]);
    for (std::int64_t c = 0; c < kClasses; ++c) {
      const double chosen = targets_[to_size(r)] == c ? 1 : 0;
      const double d = weights_[to_size(r)] * (std::exp(logits[to_size(r * kClasses + c)]) / sum - chosen);
      for (std::int64_t k = 0; k < kHidden; ++k) {
        of_hidden[to_size(r * kHidden + k)] += d * matrix[to_size(k * kClasses + c)];
        of_matrix[to_size(k * kClasses + c)] += d * hidden[to_size(r * kHidden + k)];
      }
    }
  }
  for (const std::int64_t rows_at_a_time : {1, 2, 4, 6, 100}) {
    SCOPED_TRACE(rows_at_a_time);
    const LazyTensor x = make_tensor(hidden, Shape{2, 3, kHidden}, DType::f32, GetParam());
    const LazyTensor w = make_tensor(matrix, Shape{kHidden, kClasses}, DType::f32, GetParam());
    std::int64_t most_rows = 0;
    const auto head = [&](const LazyTensor& rows) {
      most_rows = std::max(most_rows, rows.shape(0));
      return matmul(rows, w);
    };
    const CrossEntropySum sums =
        head_cross_entropy_sum(x, kClasses, head, targets(targets_), weights(weights_), {}, rows_at_a_time);
    EXPECT_LE(most_rows, rows_at_a_time);
    EXPECT_NEAR(sums.loss.item<double>(), total, 1e-4);
    EXPECT_NEAR(sums.weight.item<double>(), weight, 1e-6);
    const std::vector<LazyTensor> grads = grad(sums.loss, std::vector<LazyTensor>{x, w});
    const std::vector<float> dx = grads[0].to_vector<float>(), dw = grads[1].to_vector<float>();
    for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], of_hidden[i], 1e-5);
    for (std::size_t i = 0; i < dw.size(); ++i) EXPECT_NEAR(dw[i], of_matrix[i], 1e-5);
  }
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
