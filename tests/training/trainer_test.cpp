#include "training/trainer/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/runtime/runtime.h"
#include "lm/adapters/lora.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/support/tiny_llama.h"
#include "training/evaluate/evaluate.h"

namespace caldera {
namespace {

ModelConfig trained_config() { return testing::tiny_llama(); }

// Sentences of different lengths, so that batches differ in tokens and padding.
TokenDataset tiny_data(int examples, std::int64_t seq_len = 48) {
  ExampleSet set;
  for (int i = 0; i < examples; ++i) {
    std::string text = "line " + std::to_string(i) + ":";
    for (int k = 0; k < i % 5; ++k) text += " again";
    set.examples.push_back({"", text});
  }
  return TokenDataset(set, ByteTokenizer(), {.seq_len = seq_len});
}

TrainOptions quick(std::int64_t iterations) {
  TrainOptions options;
  options.iterations = iterations;
  options.optimizer.learning_rate = 3e-3;
  options.seed = 3;
  return options;
}

struct Recorded {
  std::string events;
  std::vector<StepRecord> steps;
  std::vector<ValidationRecord> validations;
};

class Recorder : public TrainObserver {
 public:
  explicit Recorder(Recorded& to) : to_(to) {}
  void on_begin(std::int64_t total) override { to_.events += "begin " + std::to_string(total) + "\n"; }
  void on_step(const StepRecord& record) override {
    to_.events += "step " + std::to_string(record.step) + "\n";
    to_.steps.push_back(record);
  }
  void on_validation(const ValidationRecord& record) override {
    to_.events += "validation " + std::to_string(record.step) + "\n";
    to_.validations.push_back(record);
  }
  void on_end() override { to_.events += "end\n"; }

 private:
  Recorded& to_;
};

TrainResult record(Recorded& recorded, Llama& model, const TokenDataset& data, const TokenDataset* valid,
                   const TrainOptions& options) {
  Recorder recorder(recorded);
  TrainObserver* observers[] = {&recorder};
  return train(model, data, valid, options, observers);
}

Recorded record(Llama& model, const TokenDataset& data, const TrainOptions& options) {
  Recorded recorded;
  record(recorded, model, data, nullptr, options);
  return recorded;
}

std::vector<std::vector<float>> trainable_values(Llama& model) {
  std::vector<std::vector<float>> values;
  for (const Parameter& parameter : model.trainable_parameters())
    values.push_back(parameter.tensor->to_vector<float>());
  return values;
}

TEST(Trainer, LowersTheLossAndTellsAboutIt) {
  Llama model(trained_config(), Device::cpu(), 1);
  const TokenDataset data = tiny_data(20);
  const TokenDataset valid = tiny_data(6);
  TrainOptions options = quick(30);
  options.val_every = 20;
  const double before = evaluate(model, batches_for_evaluation(valid, 4)).loss;
  Recorded recorded;
  const TrainResult result = record(recorded, model, data, &valid, options);

  ASSERT_EQ(recorded.steps.size(), 30U);
  EXPECT_TRUE(recorded.events.starts_with("begin 30\nvalidation 0\nstep 1\nstep 2\n"));
  EXPECT_NE(recorded.events.find("step 20\nvalidation 20\nstep 21\n"), std::string::npos);
  EXPECT_TRUE(recorded.events.ends_with("step 30\nvalidation 30\nend\n"));
  EXPECT_DOUBLE_EQ(result.initial_val_loss.value(), before);
  EXPECT_NEAR(before, std::log(258.0), 0.3);
  EXPECT_LT(result.final_val_loss.value(), 0.8 * before);
  EXPECT_DOUBLE_EQ(result.final_val_loss.value(), evaluate(model, batches_for_evaluation(valid, 4)).loss);
  for (const StepRecord& step : recorded.steps) {
    EXPECT_TRUE(std::isfinite(step.loss) && step.grad_norm > 0 && step.tokens > 0 &&
                step.tokens_per_second > 0);
    EXPECT_DOUBLE_EQ(step.learning_rate, 3e-3);
    EXPECT_TRUE(step.host_ms >= 0 && step.device_ms > 0 && step.peak_bytes > 0);
  }
}

TEST(Trainer, ASeedGivesTheSameLossesBitForBit) {
  const TokenDataset data = tiny_data(20);
  const auto losses = [&](std::uint64_t seed) {
    Llama model(trained_config(), Device::cpu(), 1);
    apply_lora(model, {.rank = 2, .alpha = 4, .dropout = 0.2}, {"all-linear"}, 9);
    TrainOptions options = quick(8);
    options.seed = seed;
    std::vector<double> values;
    for (const StepRecord& step : record(model, data, options).steps) values.push_back(step.loss);
    return values;
  };
  const std::vector<double> first = losses(3);
  EXPECT_EQ(first, losses(3));
  EXPECT_NE(first, losses(4));
}

TEST(Trainer, AccumulatedBatchesEqualOneLargeBatch) {
  const TokenDataset data = tiny_data(24);
  Llama large(trained_config(), Device::cpu(), 1);
  Llama small(trained_config(), Device::cpu(), 1);
  TrainOptions options = quick(3);
  options.batch_size = 6;
  options.max_grad_norm = 0.5;  // clipping must see the sum
  const Recorded expected = record(large, data, options);
  options.batch_size = 2;
  options.grad_accumulation = 3;
  const Recorded actual = record(small, data, options);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(actual.steps[i].tokens, expected.steps[i].tokens);
    EXPECT_NEAR(actual.steps[i].loss, expected.steps[i].loss, 1e-4);
    EXPECT_NEAR(actual.steps[i].grad_norm, expected.steps[i].grad_norm, 1e-3 * expected.steps[i].grad_norm);
  }
}

TEST(Trainer, TrainsTheAdapterAndNothingElse) {
  Llama model(trained_config(), Device::cpu(), 1);
  const TokenDataset data = tiny_data(20);
  apply_lora(model, {.rank = 3, .alpha = 6}, {"q_proj", "v_proj"}, 9);
  const auto frozen = [&] {
    std::vector<std::vector<float>> values;
    for (const Parameter& parameter : model.parameters())
      if (!parameter.trainable) values.push_back(parameter.tensor->to_vector<float>());
    return values;
  };
  const auto frozen_before = frozen();
  const auto trained_before = trainable_values(model);
  ASSERT_EQ(trained_before.size(), 8U);  // A and B of two modules in two layers
  record(model, data, quick(3));
  EXPECT_EQ(frozen(), frozen_before);
  const auto trained_after = trainable_values(model);
  for (std::size_t i = 0; i < trained_before.size(); ++i) EXPECT_NE(trained_after[i], trained_before[i]) << i;
}

/// Keeps a handle to every value that the parameters ever have.
class Hoarder : public TrainObserver {
 public:
  explicit Hoarder(Llama& model) : model_(model) { keep(); }
  void on_step(const StepRecord&) override { keep(); }
  const std::vector<std::vector<LazyTensor>>& history() const { return history_; }

 private:
  void keep() {
    history_.emplace_back();
    for (const Parameter& p : model_.parameters()) history_.back().push_back(*p.tensor);
  }

  Llama& model_;
  std::vector<std::vector<LazyTensor>> history_;
};

TEST(Trainer, ReplacesParametersAndMomentsInPlace) {
  constexpr std::uint64_t kSteps = 6;
  const TokenDataset data = tiny_data(12);
  Llama model(trained_config(), Device::cpu(), 1);
  const auto parameters = static_cast<std::uint64_t>(model.parameters().size());
  const std::uint64_t before = donation_stats().buffers;
  record(model, data, quick(kSteps));
  // Without fusion an update is many steps, and not all of them can work in place.
  const bool fused = settings().fusion;
  if (fused) {
    EXPECT_EQ(donation_stats().buffers - before, 3 * kSteps * parameters);
  }

  // What somebody holds is not overwritten, and that changes no result.
  Llama held(trained_config(), Device::cpu(), 1);
  Hoarder hoarder(held);
  TrainObserver* observers[] = {&hoarder};
  const std::uint64_t start = donation_stats().buffers;
  train(held, data, nullptr, quick(kSteps), observers);
  if (fused) {
    EXPECT_EQ(donation_stats().buffers - start, 2 * kSteps * parameters);
  }
  ASSERT_EQ(hoarder.history().size(), kSteps + 1);
  const std::vector<Parameter> replaced = model.parameters();
  for (std::size_t i = 0; i < replaced.size(); ++i) {
    const std::vector<float> last = hoarder.history().back()[i].to_vector<float>();
    EXPECT_EQ(replaced[i].tensor->to_vector<float>(), last) << replaced[i].name;
    EXPECT_NE(hoarder.history()[0][i].to_vector<float>(), last) << replaced[i].name;
  }
}

TEST(Trainer, FollowsTheSchedule) {
  Llama model(trained_config(), Device::cpu(), 1);
  TrainOptions options = quick(6);
  options.schedule = ScheduleKind::linear;
  options.warmup = 2;
  const Recorded recorded = record(model, tiny_data(8), options);
  const Schedule schedule{ScheduleKind::linear, 3e-3, 2, 6};
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_DOUBLE_EQ(recorded.steps[i].learning_rate, schedule.learning_rate(static_cast<std::int64_t>(i)));
}

TEST(Trainer, StopsWhenTheLossIsNotFinite) {
  Llama model(trained_config(), Device::cpu(), 1);
  TrainOptions options = quick(20);
  options.optimizer.learning_rate = 1e30;
  Recorded recorded;
  try {
    record(recorded, model, tiny_data(8), nullptr, options);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("learning rate"), std::string::npos) << error.what();
  }
  EXPECT_LT(recorded.steps.size(), 20U);
  EXPECT_TRUE(recorded.events.ends_with("end\n"));
}

TEST(Trainer, RefusesWhatDoesNotFit) {
  Llama model(trained_config(), Device::cpu(), 1);
  const TokenDataset data = tiny_data(8);
  TrainOptions options = quick(0);
  EXPECT_THROW(train(model, data, nullptr, options), ValueError);
  options = quick(1);
  options.grad_accumulation = 0;
  EXPECT_THROW(train(model, data, nullptr, options), ValueError);
  const TokenDataset too_long = tiny_data(8, 65);
  EXPECT_THROW(train(model, too_long, nullptr, quick(1)), ValueError);
  ModelConfig narrow = trained_config();
  narrow.vocab_size = 256;  // no room for the tokenizer's bos
  Llama other(narrow, Device::cpu(), 1);
  EXPECT_THROW(train(other, data, nullptr, quick(1)), ValueError);
}

TEST(Trainer, EpochsAreRoundedUpToSteps) {
  TrainOptions options;
  options.batch_size = 4;
  options.grad_accumulation = 2;
  EXPECT_EQ(steps_for_epochs(1, tiny_data(16), options), 2);
  EXPECT_EQ(steps_for_epochs(1, tiny_data(17), options), 3);
  EXPECT_EQ(steps_for_epochs(3, tiny_data(17), options), 7);
}

TEST(Evaluate, TokensWeighTheSameInEveryBatch) {
  Llama model(trained_config(), Device::cpu(), 1);
  const TokenDataset data = tiny_data(11);
  const Evaluation one = evaluate(model, batches_for_evaluation(data, 1));
  const Evaluation three = evaluate(model, batches_for_evaluation(data, 3));
  EXPECT_EQ(one.tokens, data.counted());
  EXPECT_EQ(three.tokens, data.counted());
  EXPECT_NEAR(one.loss, three.loss, 1e-6);
  EXPECT_THROW(evaluate(model, {}), ValueError);
}

}  // namespace
}  // namespace caldera
