// GRPO: what it makes of prompts, its loss against the formulas of Shao et al. 2024 in double, and the
// program that judges answers.
#include "training/objectives/grpo.h"

#include <cmath>
#include <numeric>

#include "tests/support/devices.h"
#include "tests/support/messages.h"
#include "tests/training/objective_setup.h"
#include "training/objectives/reward_command.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

TokenDataset prompts() {
  ExampleSet set;
  for (const char* text : {"one", "two!", "a third"})
    set.examples.push_back(
        {.text = text, .kind = ExampleKind::prompt, .row = std::string(R"({"prompt":")") + text + "\"}"});
  return TokenDataset(set, ByteTokenizer(), {.seq_len = 32});
}

class GrpoTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

// The reward is the number of bytes that the answer is told to have, so that it is known here.
TEST_P(GrpoTest, AnswersOfAPromptAreComparedWithOneAnother) {
  const auto model = adapted_model(GetParam());
  const auto tokenizer = std::make_shared<ByteTokenizer>();
  const ObjectiveModels models(*model, nullptr, tokenizer);
  std::vector<Answer> seen;
  double next = 0;
  const auto reward = [&](std::span<const Answer> answers) {
    seen.assign(answers.begin(), answers.end());
    std::vector<double> rewards;
    for (std::size_t i = 0; i < answers.size(); ++i) rewards.push_back(next += 1);
    return rewards;
  };
  const auto objective =
      make_grpo(reward, {.name = "grpo", .more = {{"group_size", 4}, {"completion_length", 5}}});
  const TokenDataset data = prompts();
  const Batch batch = objective->prepare(models, whole(data), 3);
  ASSERT_EQ(batch.batch_size, 12);
  ASSERT_EQ(seen.size(), 12u);
  EXPECT_EQ(seen[0].data, R"({"prompt":"one"})");
  EXPECT_EQ(seen[4].data, R"({"prompt":"two!"})");
  // 1, 2, 3, 4 have the mean 2.5 and, as a sample, the deviation sqrt(5 / 3).
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_NEAR(batch.drawn.advantages[i], (static_cast<double>(i % 4) - 1.5) / (std::sqrt(5.0 / 3) + 1e-4),
                1e-5);
  // Another seed draws other answers, the same one the same.
  const Batch again = objective->prepare(models, whole(data), 3),
              other = objective->prepare(models, whole(data), 4);
  EXPECT_EQ(again.targets, batch.targets);
  EXPECT_NE(other.targets, batch.targets);
  for (std::int64_t row = 0; row < 12; ++row) {
    std::int64_t counted = 0;
    for (std::int64_t i = 0; i < batch.seq_len; ++i)
      counted += batch.weights[static_cast<std::size_t>(row * batch.seq_len + i)] != 0 ? 1 : 0;
    EXPECT_GE(counted, 1);
    EXPECT_LE(counted, 5);
  }
}

TEST_P(GrpoTest, LossIsThatOfTheFormulas) {
  const auto model = adapted_model(GetParam());
  const auto base = plain_model(GetParam());
  model->set_training(false);
  const auto objective = make_grpo([](std::span<const Answer>) { return std::vector<double>{}; },
                                   {.name = "grpo", .more = {{"kl_weight", 0.3}, {"epsilon", 0.1}}});
  Batch batch = whole(TokenDataset({.examples = {{"p", "answer"}, {"p", "no"}}}, ByteTokenizer(),
                                   {.seq_len = 16, .loss_on = LossOn::completion}));
  batch.drawn = {.rewards = {1, 0}, .advantages = {0.7F, -0.7F}, .deviations = {1, 1}, .log_p = {}};
  const auto token_log_p = [&](CausalLM& m) {
    std::vector<double> result;
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      Batch one = batch;
      std::fill(one.weights.begin(), one.weights.end(), 0.0F);
      one.weights[i] = batch.weights[i];
      const std::vector<double> rows = row_log_p(m, one);
      result.push_back(rows[0] + rows[1]);
    }
    return result;
  };
  const std::vector<double> now = token_log_p(*model), reference = token_log_p(*base);
  // Some tokens have moved far enough to be held, both ways.
  for (std::size_t i = 0; i < now.size(); ++i)
    batch.drawn.log_p.push_back(static_cast<float>(now[i] + 0.08 * (static_cast<double>(i % 5) - 2)));
  double loss = 0, kl = 0, held = 0, counted = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (batch.weights[i] == 0) continue;
    const double advantage = batch.drawn.advantages[i / static_cast<std::size_t>(batch.seq_len)];
    const double ratio = std::exp(now[i] - static_cast<double>(batch.drawn.log_p[i]));
    const double bounded = std::min(std::max(ratio, 0.9), 1.1);
    const double d = reference[i] - now[i];
    loss += -std::min(ratio * advantage, bounded * advantage) + 0.3 * (std::exp(d) - d - 1);
    kl += std::exp(d) - d - 1;
    held += ratio != bounded ? 1 : 0;
    counted += 1;
  }
  ASSERT_GT(held, 0);
  const ObjectiveModels models(*model, base.get());
  const ObjectiveSums got = objective->sums(models, batch);
  EXPECT_EQ(objective->count(batch), static_cast<std::int64_t>(counted));
  EXPECT_NEAR(got.loss.item<double>(), loss, 1e-4 * std::max(1.0, std::abs(loss)));
  const auto metric = [&](const std::string& name) {
    for (const MetricSum& m : got.metrics)
      if (m.name == name) return m.sum.item<double>();
    return std::nan("");
  };
  EXPECT_NEAR(metric("kl"), kl, 1e-4);
  EXPECT_NEAR(metric("clip_ratio"), held, 1e-5);
  EXPECT_NEAR(metric("reward"), 1, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Devices, GrpoTest, ::testing::ValuesIn(tested_devices()), device_test_name);

// With the tokens' old probabilities as they are now, the gradient is that of the ratio times the advantage.
TEST(GrpoGradientTest, IsThatOfTheLoss) {
  const auto model = adapted_model();
  compute_in_f64(*model);
  const auto objective = make_grpo([](std::span<const Answer>) { return std::vector<double>{}; },
                                   {.name = "grpo", .more = {{"kl_weight", 0.3}}});
  Batch batch = whole(TokenDataset({.examples = {{"p", "answer"}, {"p", "no"}}}, ByteTokenizer(),
                                   {.seq_len = 16, .loss_on = LossOn::completion}));
  batch.drawn = {.rewards = {1, 0}, .advantages = {0.7F, -0.7F}, .deviations = {1, 1}, .log_p = {}};
  batch.drawn.log_p.assign(batch.targets.size(), -5.5F);
  const GradcheckResult result = check_objective(*objective, ObjectiveModels(*model), batch);
  EXPECT_TRUE(result.passed) << result.message;
}

TEST(RewardCommandTest, JudgesALineForEachAnswer) {
  RewardCommand command(
      "while read -r line; do case $line in *good*) echo 1.5;; *) echo '{\"reward\": -2}';; esac; done");
  const std::vector<Answer> answers{{R"({"prompt":"p","n":3})", "a good one"}, {"{}", "another\n\"line\""}};
  EXPECT_EQ(command.judge(answers), (std::vector<double>{1.5, -2}));
  EXPECT_EQ(command.judge(answers), (std::vector<double>{1.5, -2}));
  // It sees the row's fields and the completion, as one line of JSON.
  RewardCommand echo(
      "read -r line; test \"$line\" = '{\"prompt\":\"p\",\"n\":3,\"completion\":\"a good one\"}' && echo 7");
  EXPECT_EQ(echo.judge(std::span(answers).first(1)), std::vector<double>{7});
}

TEST(RewardCommandTest, SaysWhatIsWrongWithIt) {
  const std::vector<Answer> answers{{"{}", "x"}};
  const auto error = [&](const char* text) {
    RewardCommand command(text);
    return message_of<Error>([&] { command.judge(answers); });
  };
  EXPECT_MENTIONS(error("read x; echo high"), "the line 'high' is neither a number nor an object");
  EXPECT_MENTIONS(error("exit 3"), "reward command 'exit 3' has ended");
}

}  // namespace
}  // namespace caldera::testing
