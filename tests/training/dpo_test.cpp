// DPO: its losses and metrics against the formulas of Rafailov et al. 2023 and Azar et al. 2023 in double,
// its gradient against central differences.
#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/support/devices.h"
#include "tests/support/messages.h"
#include "tests/training/objective_setup.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/registry.h"

namespace caldera::testing {
namespace {

double log_sigmoid_of(double x) { return -std::log1p(std::exp(-x)); }

class DpoTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

TEST_P(DpoTest, LossesAndMetricsAreThoseOfTheFormulas) {
  const auto model = adapted_model(GetParam());
  const auto base = plain_model(GetParam());
  const Batch batch = whole(answer_pairs(5));
  model->set_training(false);
  const std::vector<double> policy = row_log_p(*model, batch), reference = row_log_p(*base, batch);
  const std::vector<double> lengths = row_lengths_of(batch);

  // The loss of a pair from the two ratios, and their means over tokens.
  using Loss = std::function<double(double margin, double mean_margin)>;
  struct Case {
    ObjectiveOptions options;
    Loss loss;
  };
  const double beta = 0.5;
  const Case cases[] = {
      {{.name = "dpo", .more = {{"beta", beta}}},
       [&](double margin, double) { return -log_sigmoid_of(beta * margin); }},
      {{.name = "dpo", .more = {{"beta", beta}, {"label_smoothing", 0.1}}},
       [&](double margin, double) {
         return -0.9 * log_sigmoid_of(beta * margin) - 0.1 * log_sigmoid_of(-beta * margin);
       }},
      {{.name = "dpo", .more = {{"beta", beta}}, .words = {{"loss_type", "hinge"}}},
       [&](double margin, double) { return std::max(0.0, 1 - beta * margin); }},
      {{.name = "dpo", .more = {{"beta", beta}}, .words = {{"loss_type", "ipo"}}},
       [&](double, double mean_margin) { return std::pow(mean_margin - 1 / (2 * beta), 2); }},
  };
  for (const Case& c : cases) {
    const auto objective = make_objective(c.options);
    double loss = 0, chosen = 0, rejected = 0, accuracy = 0;
    for (std::size_t pair = 0; pair < 5; ++pair) {
      const double a = policy[2 * pair] - reference[2 * pair];
      const double b = policy[2 * pair + 1] - reference[2 * pair + 1];
      loss += c.loss(a - b, a / lengths[2 * pair] - b / lengths[2 * pair + 1]) / 5;
      chosen += beta * a / 5;
      rejected += beta * b / 5;
      accuracy += a > b ? 0.2 : 0;
    }
    ASSERT_GT(std::abs(chosen - rejected), 1e-3);
    for (const bool second_model : {false, true}) {
      const ObjectiveModels models(*model, second_model ? base.get() : nullptr);
      const Evaluation got = evaluate(models, *objective, {&batch, 1});
      EXPECT_NEAR(got.loss, loss, 1e-5 * std::max(1.0, std::abs(loss)));
      ASSERT_EQ(got.metrics.size(), 4u);
      EXPECT_EQ(got.metrics[0].name, "rewards/chosen");
      EXPECT_NEAR(got.metrics[0].value, chosen, 1e-5);
      EXPECT_EQ(got.metrics[1].name, "rewards/rejected");
      EXPECT_NEAR(got.metrics[1].value, rejected, 1e-5);
      EXPECT_EQ(got.metrics[2].name, "rewards/margins");
      EXPECT_NEAR(got.metrics[2].value, chosen - rejected, 1e-5);
      EXPECT_EQ(got.metrics[3].name, "rewards/accuracies");
      EXPECT_NEAR(got.metrics[3].value, accuracy, 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DpoTest, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(DpoGradientTest, IsThatOfTheLoss) {
  const auto model = adapted_model();
  compute_in_f64(*model);
  const Batch batch = whole(answer_pairs(3));
  for (const char* loss_type : {"sigmoid", "hinge", "ipo"}) {
    const auto objective = make_objective({.name = "dpo", .more = {}, .words = {{"loss_type", loss_type}}});
    const GradcheckResult result = check_objective(*objective, ObjectiveModels(*model), batch);
    EXPECT_TRUE(result.passed) << loss_type << ": " << result.message;
  }
}

TEST(DpoTest, OptionsOutsideOfTheirDomainAreRefused) {
  const auto error = [](const ObjectiveOptions& options) {
    return message_of<ValueError>([&] { make_objective(options); });
  };
  EXPECT_MENTIONS(error({.name = "dpo", .more = {{"beta", 0}}}), "dpo: beta is 0; give a number above 0");
  EXPECT_MENTIONS(error({.name = "dpo", .more = {{"label_smoothing", 0.6}}}), "at most 0.5");
  EXPECT_MENTIONS(error({.name = "dpo", .more = {}, .words = {{"loss_type", "simpo"}}}),
                  "loss_type is 'simpo' (valid: sigmoid, ipo, hinge)");
  EXPECT_MENTIONS(error({.name = "dpo", .more = {{"label_smoothing", 0.1}}, .words = {{"loss_type", "ipo"}}}),
                  "label_smoothing goes with loss_type sigmoid alone");
}

TEST(BatchScores, TheHeadIsTrainedWhereAGradientReachesItsParameters) {
  const auto model = plain_model();
  EXPECT_TRUE(is_head_trained(*model));
  EXPECT_FALSE(is_head_trained(*adapted_model()));
}

}  // namespace
}  // namespace caldera::testing
