// Cross-entropy, with ignored targets and smoothing, against loops in double.
#include <limits>
#include <optional>

#include "ops/loss/cross_entropy.h"
#include "tests/eager/oracle.h"
#include "tests/support/devices.h"

namespace caldera::v1 {
namespace {

using oracle::doubles;
using oracle::expect_close;
using oracle::random_tensor;

/// The mean over the rows that count of -sum_j q_j log p_j, q being the smoothed one-hot row.
double expected_loss(const std::vector<double>& logits, const std::vector<std::int32_t>& targets,
                     std::size_t classes, double smoothing, std::optional<std::int64_t> ignore) {
  double total = 0;
  double count = 0;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    if (ignore && targets[row] == *ignore) continue;
    const double* x = logits.data() + row * classes;
    double sum = 0;
    for (std::size_t j = 0; j < classes; ++j) sum += std::exp(x[j]);
    for (std::size_t j = 0; j < classes; ++j) {
      const double hot = static_cast<std::size_t>(targets[row]) == j ? 1 : 0;
      const double q = (1 - smoothing) * hot + smoothing / static_cast<double>(classes);
      total -= q * (x[j] - std::log(sum));
    }
    count += 1;
  }
  return total / count;
}

class EagerLoss : public ::testing::TestWithParam<caldera::Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  Device device() const { return Device::from(GetParam()); }
  double loss(const std::vector<float>& logits, const std::vector<std::int32_t>& targets,
              std::optional<std::int64_t> ignore = std::nullopt) const {
    const auto rows = static_cast<std::int64_t>(targets.size());
    return cross_entropy_loss(
               Tensor(logits, {rows, static_cast<std::int64_t>(logits.size()) / rows}, device()),
               Tensor(targets, {rows}, device()), ignore)
        .item<double>();
  }
};

TEST_P(EagerLoss, IsTheMeanNegativeLogLikelihood) {
  for (const std::int64_t classes : {1, 7, 33, 1025}) {
    const Tensor logits = random_tensor({2, 5, classes}, 1, device()) * 5.0;
    std::vector<std::int32_t> targets;
    for (int i = 0; i < 10; ++i) targets.push_back(static_cast<std::int32_t>(i * 379 % classes));
    const Tensor indices(targets, {2, 5}, device());
    const std::vector<double> values = doubles(logits);
    for (const double smoothing : {0.0, 0.1, 0.9})
      for (const std::optional<std::int64_t> ignore :
           {std::optional<std::int64_t>(), std::optional<std::int64_t>(classes > 1 ? targets[3] : -100)}) {
        const Tensor loss = cross_entropy_loss_with_smoothing(logits, indices, smoothing, ignore);
        EXPECT_EQ(loss.shape(), Shape{});
        expect_close(loss,
                     {expected_loss(values, targets, static_cast<std::size_t>(classes), smoothing, ignore)},
                     1e-5);
        if (smoothing == 0) {
          EXPECT_EQ(cross_entropy_loss(logits, indices, ignore).item(), loss.item());
        }
      }
  }
}

TEST_P(EagerLoss, IgnoredPositionsCountForNothingInEitherPart) {
  const std::vector<std::int32_t> targets{2, -100, 0, -100};
  const std::vector<float> counted{1.0F, -2.0F, 3.0F, 0.5F, 0.25F, -0.75F};
  const Tensor indices(targets, {4}, device());
  for (const float other : {1.0F, 1e4F, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> logits{counted[0], counted[1], counted[2], other, 2.0F,  other,
                              counted[3], counted[4], counted[5], 3.0F,  other, 4.0F};
    const Tensor x(logits, {4, 3}, device());
    const double expected = expected_loss({counted.begin(), counted.end()}, {2, 0}, 3, 0.3, std::nullopt);
    expect_close(cross_entropy_loss_with_smoothing(x, indices, 0.3, -100), {expected}, 1e-5);
  }
}

TEST_P(EagerLoss, SurvivesExtremeLogits) {
  EXPECT_NEAR(loss({1000, 0, -1000}, {0}), 0, 1e-6);
  EXPECT_NEAR(loss({1000, 0, -1000}, {2}), 2000, 1e-3);
  const float never = -std::numeric_limits<float>::infinity();
  EXPECT_NEAR(loss({1, never, 1}, {2}), std::log(2.0), 1e-6);
}

TEST_P(EagerLoss, TakesTargetsOfAnyInteger) {
  const Tensor logits = random_tensor({3, 4}, 2, device());
  const double expected = expected_loss(doubles(logits), {0, 3, 1}, 4, 0, std::nullopt);
  expect_close(cross_entropy_loss(logits, Tensor(std::vector<std::int32_t>{0, 3, 1}, {3}, device())),
               {expected}, 1e-5);
  if (!device().is_cpu()) return;
  expect_close(cross_entropy_loss(logits, Tensor(std::vector<std::int64_t>{0, 3, 1}, {3}, device())),
               {expected}, 1e-5);
  expect_close(cross_entropy_loss(logits, Tensor(std::vector<std::uint8_t>{0, 3, 1}, {3}, device())),
               {expected}, 1e-5);
}

TEST_P(EagerLoss, RefusesBadTargetsAndSettings) {
  const Tensor logits = random_tensor({2, 3}, 1, device());
  const auto indices = [&](const std::vector<std::int32_t>& values) {
    return Tensor(values, {static_cast<std::int64_t>(values.size())}, device());
  };
  try {
    cross_entropy_loss(logits, indices({0, 3}));
    FAIL() << "accepted";
  } catch (const TrainingError& error) {
    EXPECT_EQ(error.kind(), TrainingError::Kind::Failed);
    EXPECT_NE(std::string(error.what()).find("target 3 at position 1"), std::string::npos) << error.what();
  }
  EXPECT_THROW(cross_entropy_loss(logits, indices({-1, 0})), TrainingError);
  EXPECT_NO_THROW(cross_entropy_loss(logits, indices({-1, 0}), -1));
  EXPECT_THROW(cross_entropy_loss(logits, indices({1, 1}), 1), TrainingError);
  EXPECT_THROW(cross_entropy_loss(logits, indices({1, 1, 1})), ShapeError);
  EXPECT_THROW(cross_entropy_loss(logits, logits), ShapeError);
  EXPECT_THROW(cross_entropy_loss(logits, random_tensor({2}, 1, device())), DTypeError);
  for (const double smoothing : {-0.1, 1.25, std::nan("")})
    EXPECT_THROW(cross_entropy_loss_with_smoothing(logits, indices({0, 1}), smoothing), ValueError);
}

TEST_P(EagerLoss, LazilyABadTargetIsNotANumber) {
  const Tensor logits = random_tensor({2, 3}, 1, device());
  const Tensor targets(std::vector<std::int32_t>{0, 3}, {2}, device());
  const std::vector<float> losses =
      cross_entropy_terms(logits.lazy(), targets.lazy()).losses.to_vector<float>();
  EXPECT_FALSE(std::isnan(losses[0]));
  EXPECT_TRUE(std::isnan(losses[1]));
  EXPECT_EQ(mean_cross_entropy(logits.lazy(), targets.lazy() * 0 + 7, {.ignore_index = 7}).item(), 0.0F);
}

INSTANTIATE_TEST_SUITE_P(Devices, EagerLoss, ::testing::ValuesIn(caldera::testing::tested_devices()),
                         caldera::testing::device_test_name);

}  // namespace
}  // namespace caldera::v1
