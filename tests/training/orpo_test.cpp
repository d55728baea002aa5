// ORPO against the formulas of Hong et al. 2024 in double, and its gradient against central differences.
#include <cmath>

#include "tests/support/devices.h"
#include "tests/training/objective_setup.h"
#include "training/objectives/registry.h"

namespace caldera::testing {
namespace {

class OrpoTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

TEST_P(OrpoTest, LossAndMetricsAreThoseOfTheFormulas) {
  const auto model = adapted_model(GetParam());
  model->set_training(false);
  const Batch batch = whole(answer_pairs(5));
  const std::vector<double> log_p = row_log_p(*model, batch), lengths = row_lengths_of(batch);
  const double beta = 0.3;
  double loss = 0, nll = 0, preference = 0, accuracy = 0;
  for (std::size_t pair = 0; pair < 5; ++pair) {
    const double chosen = log_p[2 * pair] / lengths[2 * pair];
    const double rejected = log_p[2 * pair + 1] / lengths[2 * pair + 1];
    const auto odds = [](double x) { return std::exp(x) / (1 - std::exp(x)); };
    const double ratio = std::log(odds(chosen) / odds(rejected));
    const double log_sigmoid = -std::log1p(std::exp(-ratio));
    loss += (-chosen - beta * log_sigmoid) / 5;
    nll += -chosen / 5;
    preference += log_sigmoid / 5;
    accuracy += chosen > rejected ? 0.2 : 0;
  }
  const auto objective = make_objective({.name = "orpo", .more = {{"beta", beta}}});
  const Evaluation got = evaluate(ObjectiveModels(*model), *objective, {&batch, 1});
  EXPECT_NEAR(got.loss, loss, 1e-5 * loss);
  EXPECT_NEAR(value_of(got.metrics, "nll_loss"), nll, 1e-5 * nll);
  EXPECT_NEAR(value_of(got.metrics, "log_odds_ratio"), preference, 1e-5);
  EXPECT_NEAR(value_of(got.metrics, "rewards/accuracies"), accuracy, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Devices, OrpoTest, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(OrpoGradientTest, IsThatOfTheLoss) {
  const auto model = adapted_model();
  compute_in_f64(*model);
  const GradcheckResult result =
      check_objective(*make_objective({.name = "orpo"}), ObjectiveModels(*model), whole(answer_pairs(3)));
  EXPECT_TRUE(result.passed) << result.message;
}

}  // namespace
}  // namespace caldera::testing
