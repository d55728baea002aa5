// KTO against the formulas of Ethayarajh et al. 2024 in double, with TRL's estimate of the divergence: the
// mean of log-ratios of prompts with the answers of the examples before them, at least 0.
#include <algorithm>
#include <cmath>

#include "tests/support/devices.h"
#include "tests/support/messages.h"
#include "tests/training/objective_setup.h"
#include "training/objectives/registry.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

struct Labelled {
  std::string prompt, answer;
  bool good;
};
const std::vector<Labelled> kExamples{
    {"what", "yes", true}, {"who is", "nobody", false}, {"when", "now", true}, {"how far", "ten", true}};

/// The prompts with the answers of the examples `shift` before.
Batch labelled_batch(std::size_t shift) {
  ExampleSet set;
  const std::size_t n = kExamples.size();
  for (std::size_t i = 0; i < n; ++i)
    set.examples.push_back({.prompt = kExamples[i].prompt,
                            .text = kExamples[(i + n - shift) % n].answer,
                            .label = kExamples[i].good ? 1.0 : 0.0});
  return whole(TokenDataset(set, ByteTokenizer(), {.seq_len = 32, .loss_on = LossOn::completion}));
}

class KtoTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

TEST_P(KtoTest, LossAndMetricsAreThoseOfTheFormulas) {
  const auto model = adapted_model(GetParam());
  const auto base = plain_model(GetParam());
  model->set_training(false);
  const auto ratios = [&](const Batch& batch) {
    std::vector<double> result = row_log_p(*model, batch);
    const std::vector<double> reference = row_log_p(*base, batch);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] -= reference[i];
    return result;
  };
  const Batch batch = labelled_batch(0);
  const std::vector<double> own = ratios(batch), other = ratios(labelled_batch(1));
  double kl = 0;
  for (const double ratio : other) kl += ratio / 4;
  kl = std::max(0.0, kl);
  const double beta = 0.4, good_weight = 1.0, bad_weight = 1.5;
  const auto sigmoid_of = [](double x) { return 1 / (1 + std::exp(-x)); };
  double loss = 0, good = 0, bad = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double r = own[i];
    loss += (kExamples[i].good ? good_weight * (1 - sigmoid_of(beta * (r - kl)))
                               : bad_weight * (1 - sigmoid_of(beta * (kl - r)))) /
            4;
    (kExamples[i].good ? good : bad) += beta * r / (kExamples[i].good ? 3 : 1);
  }
  const auto objective =
      make_objective({.name = "kto", .more = {{"beta", beta}, {"undesirable_weight", bad_weight}}});
  const Evaluation got = evaluate(ObjectiveModels(*model), *objective, {&batch, 1});
  EXPECT_NEAR(got.loss, loss, 1e-5);
  EXPECT_NEAR(value_of(got.metrics, "rewards/chosen"), good, 1e-5);
  EXPECT_NEAR(value_of(got.metrics, "rewards/rejected"), bad, 1e-5);
  EXPECT_NEAR(value_of(got.metrics, "kl"), kl, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Devices, KtoTest, ::testing::ValuesIn(tested_devices()), device_test_name);

// The divergence has no gradient, so that of the loss is checked with the divergence of the start: where that
// is 0 the two are the same.
TEST(KtoGradientTest, IsThatOfTheLossAtAFixedDivergence) {
  const auto model = adapted_model();
  compute_in_f64(*model);
  const auto objective = make_objective({.name = "kto"});
  const Batch batch = labelled_batch(0);
  const Evaluation at = evaluate(ObjectiveModels(*model), *objective, {&batch, 1});
  if (value_of(at.metrics, "kl") > 0) GTEST_SKIP() << "the divergence of this model is above 0";
  const GradcheckResult result = check_objective(*objective, ObjectiveModels(*model), batch);
  EXPECT_TRUE(result.passed) << result.message;
}

TEST(KtoTest, RefusesWhatHasNoLabelsOrNoOthers) {
  const auto model = adapted_model();
  const auto objective = make_objective({.name = "kto"});
  const auto error = [&](const ExampleSet& set, std::int64_t batch_size) {
    const TokenDataset data(set, ByteTokenizer(), {.seq_len = 16});
    return message_of<ValueError>([&] {
      train(ObjectiveModels(*model), *objective, data, nullptr, {.iterations = 1, .batch_size = batch_size});
    });
  };
  EXPECT_MENTIONS(error({.examples = {{"a", "b"}, {"c", "d"}}}, 2), "kto trains on labelled texts");
  EXPECT_MENTIONS(error({.examples = {{.prompt = "a", .text = "b", .label = 1.0}}}, 1),
                  "a batch size of at least 2");
}

}  // namespace
}  // namespace caldera::testing
