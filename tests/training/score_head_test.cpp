// Reward models and classification: their losses against the formulas in double, their gradients against
// central differences, and the head in the adapter's files.
#include <cmath>

#include "tests/support/devices.h"
#include "tests/support/messages.h"
#include "tests/support/temp_folder.h"
#include "tests/training/objective_setup.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/registry.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

constexpr std::size_t kHidden = 16;

class ScoreHeadTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

/// The scores of a text by loops over the last token's hidden state and the head's weight.
std::vector<double> scores_of(CausalLM& model, std::span<const std::int32_t> ids) {
  const std::vector<float> all = model.hidden_states(model.make_ids(ids)).to_vector<float>();
  std::vector<float> weight;
  for (const Parameter& p : model.parameters())
    if (p.name == "score.weight") weight = p.tensor->to_vector<float>();
  std::vector<double> scores(weight.size() / kHidden, 0.0);
  for (std::size_t c = 0; c < scores.size(); ++c)
    for (std::size_t d = 0; d < kHidden; ++d)
      scores[c] +=
          static_cast<double>(weight[c * kHidden + d]) * static_cast<double>(all[all.size() - kHidden + d]);
  return scores;
}

TokenDataset labelled_texts() {
  return TokenDataset({.examples = {{.prompt = {}, .text = "good", .label = 2.0},
                                    {.prompt = {}, .text = "no", .label = 0.0},
                                    {.prompt = {}, .text = "so so", .label = 1.0}}},
                      ByteTokenizer(), {.seq_len = 16});
}

TEST_P(ScoreHeadTest, RewardsAreThoseOfBradleyAndTerry) {
  const auto model = adapted_model(GetParam());
  model->set_training(false);
  model->add_score_head(1, 3);
  const TokenDataset data = answer_pairs(4);
  const Batch batch = whole(data);
  double loss = 0, margin = 0, mean = 0;
  for (std::int64_t pair = 0; pair < 4; ++pair) {
    const double chosen = scores_of(*model, data.tokens(pair, 0))[0];
    const double rejected = scores_of(*model, data.tokens(pair, 1))[0];
    loss += (std::log1p(std::exp(rejected - chosen)) + 0.1 * std::pow(chosen + rejected, 2)) / 4;
    margin += (chosen - rejected) / 4;
    mean += (chosen + rejected) / 8;
  }
  const auto objective = make_objective({.name = "reward", .more = {{"center_weight", 0.1}}});
  const Evaluation got = evaluate(ObjectiveModels(*model), *objective, {&batch, 1});
  EXPECT_NEAR(got.loss, loss, 1e-5);
  EXPECT_NEAR(value_of(got.metrics, "margin"), margin, 1e-5);
  EXPECT_NEAR(value_of(got.metrics, "mean_reward"), mean, 1e-5);
}

TEST_P(ScoreHeadTest, ClassesHaveTheCrossEntropyOfTheirScores) {
  const auto model = adapted_model(GetParam());
  model->set_training(false);
  model->add_score_head(3, 3);
  const TokenDataset data = labelled_texts();
  const Batch batch = whole(data);
  double loss = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::vector<double> scores = scores_of(*model, data.tokens(i));
    double total = 0;
    for (const double score : scores) total += std::exp(score);
    loss += (std::log(total) - scores[static_cast<std::size_t>(2 - (i == 0 ? 0 : 3 - i))]) / 3;
  }
  const auto objective = make_objective({.name = "classification"});
  EXPECT_NEAR(evaluate(ObjectiveModels(*model), *objective, {&batch, 1}).loss, loss, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Devices, ScoreHeadTest, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(ScoreHeadGradientTest, IsThatOfTheLoss) {
  for (const char* name : {"reward", "classification"}) {
    const auto model = adapted_model();
    model->add_score_head(name == std::string("reward") ? 1 : 3, 3);
    compute_in_f64(*model);
    const Batch batch = name == std::string("reward") ? whole(answer_pairs(3)) : whole(labelled_texts());
    const GradcheckResult result =
        // Vectors of texts are f32 (lm/embed/pooling.h), and so are the differences.
        check_objective(*make_objective({.name = name}), ObjectiveModels(*model), batch,
                        {.eps = 1e-2, .atol = 2e-4, .rtol = 2e-2, .fast = true});
    EXPECT_TRUE(result.passed) << name << ": " << result.message;
  }
}

// Three texts are learned, and the adapter's files bring the head to a model that has none.
TEST(ScoreHeadTest, IsTrainedAndSavedWithTheAdapter) {
  const TempFolder folder;
  const auto model = adapted_model();
  const TokenDataset data = labelled_texts();
  const auto objective = make_objective({.name = "classification"});
  train(ObjectiveModels(*model), *objective, data, nullptr,
        {.iterations = 60, .batch_size = 3, .optimizer = {.learning_rate = 2e-2}});
  const Batch batch = whole(data);
  EXPECT_EQ(value_of(evaluate(ObjectiveModels(*model), *objective, {&batch, 1}).metrics, "accuracy"), 1);
  save_adapter(*model, folder.path() / "adapter");
  const auto loaded = plain_model();
  load_adapter(*loaded, folder.path() / "adapter");
  loaded->set_training(false);
  model->set_training(false);
  EXPECT_EQ(loaded->score_classes(), 3);
  EXPECT_EQ(row_scores(*loaded, batch).to_vector<float>(), row_scores(*model, batch).to_vector<float>());
  EXPECT_MENTIONS(message_of<ValueError>([&] { row_scores(*plain_model(), batch); }),
                  "no head that scores texts");
}

}  // namespace
}  // namespace caldera::testing
