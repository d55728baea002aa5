// A training step within a limit of memory: what is predicted is what is taken, and the training is the same.
#include "training/memory/step_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/runtime.h"
#include "lm/adapters/lora.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/support/devices.h"
#include "tests/support/tiny_llama.h"
#include "training/objectives/next_token.h"
#include "training/trainer/memory_curve.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

constexpr std::int64_t kLayers = 6;

class StepMemory : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  void TearDown() override { set_memory_limit(GetParam(), 0); }

  static TokenDataset long_texts(int count = 8) {
    ExampleSet set;
    for (int i = 0; i < count; ++i)
      set.examples.push_back({"", std::string(static_cast<std::size_t>(200 + i), 'a')});
    return TokenDataset(set, ByteTokenizer(), {.seq_len = 256});
  }

  std::unique_ptr<Llama> make_model(double dropout, int rank = 2) const {
    auto model = std::make_unique<Llama>(
        tiny_llama({.hidden = 32, .layers = kLayers, .heads = 4, .kv_heads = 2, .positions = 256}),
        GetParam(), 5);
    if (rank > 0) apply_lora(*model, {.rank = rank, .alpha = 4, .dropout = dropout}, {"all-linear"}, 1);
    model->materialize();
    synchronize();
    return model;
  }
  TrainOptions make_options(Checkpointing how, double ema_decay) const {
    // A software device takes seconds a step.
    const std::int64_t steps = GetParam().kind == DeviceKind::cpu ? 4 : 2;
    TrainOptions options{.iterations = steps, .batch_size = 4, .try_longest = true, .checkpointing = how};
    options.optimizer.learning_rate = 1e-2;
    options.ema_decay = ema_decay;
    return options;
  }
  /// What a step takes at most without a limit, by planning alone.
  std::uint64_t free_peak() const {
    const std::unique_ptr<Llama> model = make_model(0);
    const std::vector<MemoryRow> rows = memory_curve(ObjectiveModels(*model), NextToken(), long_texts(),
                                                     nullptr, make_options(Checkpointing::automatic, 0), {});
    return rows.at(0).choice->predicted_peak_bytes;
  }

  struct Outcome {
    TrainResult result;
    std::uint64_t used = 0;       // at most, in the training or before it
    bool shows_own_peak = false;  // what ran before had used less
  };
  /// A few steps from the same beginning under a limit of what the device's memory may be in all; 0: none.
  Outcome train_within(Checkpointing how, std::uint64_t limit, double dropout = 0, double ema_decay = 0,
                       int rank = 2) const {
    const Device device = GetParam();
    const std::unique_ptr<Llama> owned = make_model(dropout, rank);
    Llama& model = *owned;
    set_memory_limit(device, limit);
    const TrainOptions options = make_options(how, ema_decay);
    const std::uint64_t before = device_counters(device).peak_bytes;
    Outcome outcome{.result = train(model, long_texts(), nullptr, options)};
    outcome.used = outcome.result.peak_bytes;
    outcome.shows_own_peak = outcome.used > before;
    return outcome;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, StepMemory, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST_P(StepMemory, IsWithinEveryLimitAndTheTrainingIsTheSame) {
  // From the least memory to the most: the peak that a device counts never falls.
  const Outcome layer = train_within(Checkpointing::layer, 0);
  ASSERT_TRUE(layer.result.memory);
  EXPECT_EQ(layer.result.memory->checkpointed_layers, kLayers);
  const std::uint64_t least = layer.result.memory->predicted_peak_bytes;
  const std::uint64_t needed = layer.result.memory->needed_bytes;
  const bool is_exact = GetParam().kind == DeviceKind::cpu;
  std::vector<Outcome> outcomes{layer};
  const bool is_fresh = layer.shows_own_peak;
  int shown = 0;
  double recomputed = 1, most_recomputed = 0;
  // What the device takes for itself comes on top.
  set_memory_limit(GetParam(), 1 << 30);
  const DeviceCounters now = device_counters(GetParam());
  const std::uint64_t own = now.reserved_bytes - now.live_bytes;
  // On the CPU ten limits from three tenths of what a step takes without one up to all of it.
  const auto free_bytes = static_cast<double>(free_peak());
  std::vector<double> wanted;
  for (int i = 0; is_exact && i < 10; ++i) wanted.push_back(free_bytes * (0.3 + 0.7 * i / 9));
  if (is_exact) wanted.push_back(2 * free_bytes);
  if (!is_exact) wanted = {4 * static_cast<double>(least), 24 * static_cast<double>(least)};
  for (const double share : wanted) {
    const auto limit = own + static_cast<std::uint64_t>(share);
    if (limit < own + needed) continue;
    outcomes.push_back(train_within(Checkpointing::automatic, limit));
    const MemoryChoice& choice = *outcomes.back().result.memory;
    EXPECT_LE(choice.predicted_peak_bytes, limit);
    EXPECT_LE(choice.recomputed, recomputed) << "no more than the limit asks for";
    if (outcomes.size() == 2) most_recomputed = choice.recomputed;  // under the lowest limit
    recomputed = choice.recomputed;
    if (!outcomes.back().shows_own_peak) continue;
    ++shown;
    EXPECT_LE(outcomes.back().used, limit);
    if (!is_exact) continue;
    // Without fusion an evaluation keeps single numbers besides, which take a piece of memory each.
    const std::uint64_t numbers = settings().fusion ? 0 : 4096;
    EXPECT_LE(outcomes.back().used, choice.predicted_peak_bytes + numbers) << share;
    EXPECT_GE(outcomes.back().used, choice.predicted_peak_bytes) << share;
  }
  if (is_fresh) {
    EXPECT_GE(shown, is_exact ? 5 : 1) << "peaks that were compared";
  }
  if (is_exact) {
    EXPECT_GT(most_recomputed, 0);
  }
  EXPECT_EQ(recomputed, 0) << "the last limit asks for nothing";
  const Outcome free = train_within(Checkpointing::none, 0);
  EXPECT_FALSE(free.result.memory) << "nobody asked";
  for (const Outcome& outcome : outcomes) {
    EXPECT_NEAR(outcome.result.last_step.loss, free.result.last_step.loss, is_exact ? 0 : 1e-4);
  }
}

TEST_P(StepMemory, MasksOfDropoutAreTheSameWhenComputedAgain) {
  const Outcome layer = train_within(Checkpointing::layer, 0, 0.3);
  const Outcome free = train_within(Checkpointing::none, 0, 0.3);
  EXPECT_NEAR(layer.result.last_step.loss, free.result.last_step.loss, 1e-5);
  EXPECT_NEAR(layer.result.last_step.grad_norm, free.result.last_step.grad_norm, 1e-4);
}

TEST_P(StepMemory, CountsTheAveragesOfParameters) {
  constexpr int kRank = 16;  // so that the update takes more than the gradients by themselves
  const MemoryChoice without = *train_within(Checkpointing::layer, 0, 0, 0, kRank).result.memory;
  const MemoryChoice with = *train_within(Checkpointing::layer, 0, 0, 0.9, kRank).result.memory;
  EXPECT_GT(with.predicted_peak_bytes, without.predicted_peak_bytes);
}

TEST_P(StepMemory, SaysTheLeastThatWouldDo) {
  const std::uint64_t least = train_within(Checkpointing::layer, 0).result.memory->predicted_peak_bytes;
  try {
    train_within(Checkpointing::automatic, least / 2);
    FAIL() << "trained in half of what it takes";
  } catch (const OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("takes at least"), std::string::npos) << error.what();
  }
}

TEST_P(StepMemory, APlanThatFailsLeavesTheModelAsItWas) {
  const std::unique_ptr<Llama> model = make_model(0);
  set_memory_limit(GetParam(), 1);
  for (const bool is_training : {false, true}) {
    model->set_training(is_training);
    EXPECT_THROW((void)plan_memory(ObjectiveModels(*model), NextToken(), long_texts(), nullptr,
                                   make_options(Checkpointing::automatic, 0)),
                 OutOfMemoryError);
    EXPECT_EQ(model->is_training(), is_training);
  }
}

TEST_P(StepMemory, TheCurveFallsAsTheLimitFalls) {
  const std::unique_ptr<Llama> model = make_model(0);
  std::vector<double> shares;
  for (int i = 0; i < 10; ++i) shares.push_back(1 - 0.7 * i / 9);
  const std::vector<MemoryRow> rows =
      memory_curve(ObjectiveModels(*model), NextToken(), long_texts(), nullptr,
                   make_options(Checkpointing::automatic, 0), shares, 1 << 30);
  ASSERT_EQ(rows.size(), 12U);
  EXPECT_EQ(rows.front().choice->recomputed, 0);
  EXPECT_EQ(rows.back().choice->recomputed, 0);
  double recomputed = 0;
  bool fits = true;
  for (std::size_t i = 1; i + 1 < rows.size(); ++i) {
    EXPECT_TRUE(fits || !rows[i].choice) << "a lower limit is met, and a higher one is not";
    fits = rows[i].choice.has_value();
    if (!fits) {
      EXPECT_GT(rows[i].least_bytes, rows[i].limit_bytes);
      continue;
    }
    EXPECT_LE(rows[i].choice->predicted_peak_bytes, rows[i].limit_bytes);
    EXPECT_GE(rows[i].choice->recomputed, recomputed);
    recomputed = rows[i].choice->recomputed;
    EXPECT_EQ(rows[i].choice->values.empty(), recomputed == 0);
  }
  EXPECT_EQ(device_counters(GetParam()).limit_bytes, 0U) << "the limit is as it was";
}

TEST_P(StepMemory, RunsWithinJustWhatItNeeds) {
  const bool is_exact = GetParam().kind == DeviceKind::cpu;
  // On Vulkan the argument tables of plans come on top.
  const std::uint64_t tables = is_exact ? 0 : 2 << 20;
  constexpr int kAllParameters = 0;
  int shown = 0;
  bool is_fresh = true;
  for (const int rank : {2, kAllParameters}) {
    TrainOptions options = make_options(Checkpointing::automatic, 0);
    options.try_longest = false;
    // More rows than any run before: the peak that a device counts never falls.
    if (is_exact) options.batch_size = rank == kAllParameters ? 24 : 12;
    const TokenDataset texts = long_texts(static_cast<int>(options.batch_size));
    const std::unique_ptr<Llama> model = make_model(0, rank);
    const std::vector<double> shares{0.8};
    std::vector<MemoryRow> rows =
        memory_curve(ObjectiveModels(*model), NextToken(), texts, nullptr, options, shares);
    ASSERT_EQ(rows.size(), 2U);
    std::ranges::reverse(rows);
    for (const MemoryRow& row : rows) {
      ASSERT_TRUE(row.choice) << row.least_bytes << " of " << row.limit_bytes;
      const std::unique_ptr<Llama> trained = make_model(0, rank);
      const std::uint64_t before = device_counters(GetParam()).peak_bytes;
      if (before > row.choice->predicted_peak_bytes) is_fresh = false;
      set_memory_limit(GetParam(), row.choice->needed_bytes + tables);
      const TrainResult result = train(*trained, texts, nullptr, options);
      set_memory_limit(GetParam(), 0);
      if (!is_exact || result.peak_bytes <= before) continue;
      ++shown;
      // Without fusion an evaluation keeps single numbers besides.
      const std::uint64_t numbers = settings().fusion ? 0 : 4096;
      EXPECT_GE(result.peak_bytes, result.memory->predicted_peak_bytes) << "rank " << rank;
      EXPECT_LE(result.peak_bytes, result.memory->predicted_peak_bytes + numbers) << "rank " << rank;
    }
  }
  if (is_exact && is_fresh) {
    EXPECT_EQ(shown, 4) << "peaks that were compared";
  }
}

TEST_P(StepMemory, WhatFitsIsTheLargestThatDoes) {
  const std::unique_ptr<Llama> model = make_model(0);
  const TrainOptions options = make_options(Checkpointing::automatic, 0);
  EXPECT_THROW((void)fit_memory(*model, options, 64, 256, 64), ValueError);
  set_memory_limit(GetParam(), 1 << 30);
  const DeviceCounters now = device_counters(GetParam());
  const std::uint64_t limit = now.reserved_bytes + (std::uint64_t{5} << 19);
  set_memory_limit(GetParam(), limit);
  const MemoryFit fit = fit_memory(*model, options, 64, 256, 64);
  EXPECT_GT(fit.longest_seq_len, 0);
  EXPECT_LT(fit.longest_seq_len, 256);
  EXPECT_GT(fit.largest_batch, 0);
  EXPECT_LT(fit.largest_batch, 64);
  EXPECT_LE(fit.choice.predicted_peak_bytes, limit);
  const auto fits = [&](std::int64_t rows, std::int64_t tokens) {
    ExampleSet set;
    for (std::int64_t i = 0; i < rows; ++i)
      set.examples.push_back({"", std::string(static_cast<std::size_t>(tokens) + 1, 'a')});
    TrainOptions of = options;
    of.batch_size = rows;
    try {
      (void)plan_memory(ObjectiveModels(*model), NextToken(),
                        TokenDataset(set, ByteTokenizer(false), {.seq_len = tokens}), nullptr, of);
      return true;
    } catch (const MemoryLimitTooLow&) {
      return false;
    }
  };
  // What is said to fit is trained in the limit.
  ExampleSet longest;
  for (std::int64_t i = 0; i < options.batch_size; ++i)
    longest.examples.push_back({"", std::string(static_cast<std::size_t>(fit.longest_seq_len) + 1, 'a')});
  const TrainResult trained =
      train(*model, TokenDataset(longest, ByteTokenizer(false), {.seq_len = fit.longest_seq_len}), nullptr,
            options);
  EXPECT_EQ(trained.memory->predicted_peak_bytes, fit.choice.predicted_peak_bytes);
  EXPECT_TRUE(fits(options.batch_size, fit.longest_seq_len));
  EXPECT_FALSE(fits(options.batch_size, fit.longest_seq_len + 1));
  EXPECT_TRUE(fits(fit.largest_batch, 64));
  EXPECT_FALSE(fits(fit.largest_batch + 1, 64));
}

TEST_P(StepMemory, FitsWithTheCheckpointingThatIsAskedFor) {
  if (GetParam().kind != DeviceKind::cpu) GTEST_SKIP() << "plans alone, which are alike";
  const std::unique_ptr<Llama> model = make_model(0);
  const std::uint64_t limit = device_counters(GetParam()).live_bytes + (std::uint64_t{5} << 19);
  std::vector<std::int64_t> longest;
  for (const Checkpointing how : {Checkpointing::none, Checkpointing::layer, Checkpointing::automatic}) {
    set_memory_limit(GetParam(), limit);
    const MemoryFit fit = fit_memory(*model, make_options(how, 0), 64, 256, 64);
    longest.push_back(fit.longest_seq_len);
    EXPECT_EQ(fit.least_bytes, 0U);
    if (how != Checkpointing::automatic) {
      EXPECT_EQ(fit.choice.recomputed, how == Checkpointing::none ? 0 : 1);
    }
  }
  EXPECT_LT(longest[0], longest[1]);
  EXPECT_LE(longest[1], longest[2]);
  set_memory_limit(GetParam(), 1);
  const MemoryFit none = fit_memory(*model, make_options(Checkpointing::automatic, 0), 64, 256, 64);
  EXPECT_EQ(none.longest_seq_len, 0);
  EXPECT_EQ(none.largest_batch, 0);
  EXPECT_GT(none.least_bytes, 1U);
}

// Of sizes that are no powers of two, and of which many are large.
TEST_P(StepMemory, WhatIsSaidToFitIsTrained) {
  if (GetParam().kind != DeviceKind::cpu)
    GTEST_SKIP() << "on Vulkan the argument tables of plans come on top";
  for (const int rank : {16, 130, 0}) {
    const auto make = [&] {
      auto model = std::make_unique<Llama>(
          tiny_llama({.hidden = 264, .layers = 2, .heads = 4, .kv_heads = 2, .positions = 256}), GetParam(),
          5);
      if (rank > 0) apply_lora(*model, {.rank = rank, .alpha = 4}, {"all-linear"}, 1);
      model->materialize();
      synchronize();
      return model;
    };
    const auto train_on = [&](std::int64_t tokens, const TrainOptions& options) {
      ExampleSet set;
      for (std::int64_t i = 0; i < options.batch_size; ++i)
        set.examples.push_back({"", std::string(static_cast<std::size_t>(tokens) + 1, 'a')});
      const auto model = make();
      return train(*model, TokenDataset(set, ByteTokenizer(false), {.seq_len = tokens}), nullptr, options);
    };
    TrainOptions options = make_options(Checkpointing::automatic, rank == 0 ? 0.9 : 0);
    options.batch_size = 1;
    MemoryFit none, some;
    {
      const auto model = make();
      set_memory_limit(GetParam(), 1);
      none = fit_memory(*model, options, 64, 256, 64);
      set_memory_limit(GetParam(), none.least_bytes + (none.least_bytes >> 2));
      some = fit_memory(*model, options, 64, 256, 64);
      set_memory_limit(GetParam(), 0);
    }
    ASSERT_GT(some.longest_seq_len, 1) << rank;
    set_memory_limit(GetParam(), none.least_bytes);
    EXPECT_NO_THROW(train_on(1, options)) << rank;
    set_memory_limit(GetParam(), some.choice.limit_bytes);
    EXPECT_NO_THROW(train_on(some.longest_seq_len, options)) << rank;
    set_memory_limit(GetParam(), 0);
  }
}

TEST_P(StepMemory, CountsValidationsOnLongerTexts) {
  if (GetParam().kind != DeviceKind::cpu) GTEST_SKIP() << "plans alone, which are alike";
  const std::unique_ptr<Llama> model = make_model(0);
  const auto texts = [](std::size_t length) {
    ExampleSet set;
    for (int i = 0; i < 4; ++i) set.examples.push_back({"", std::string(length, 'a')});
    return TokenDataset(set, ByteTokenizer(false), {.seq_len = 256});
  };
  const TokenDataset train_on = texts(8), valid = texts(250);
  TrainOptions options = make_options(Checkpointing::none, 0);
  options.batch_size = 1;
  options.val_batches = -1;
  const auto peak = [&](const TokenDataset* validate_on) {
    return plan_memory(ObjectiveModels(*model), NextToken(), train_on, validate_on, options)
        ->predicted_peak_bytes;
  };
  const std::uint64_t with = peak(&valid);
  EXPECT_GT(with, peak(nullptr));
  EXPECT_EQ(peak(&train_on), peak(nullptr));
  // A validation in a limit below that is what is refused, before the first step.
  options.checkpointing = Checkpointing::automatic;
  set_memory_limit(GetParam(), with - 1);
  EXPECT_THROW(train(*model, train_on, &valid, options), MemoryLimitTooLow);
}

TEST(StepMemoryText, SaysWhatWasChosen) {
  EXPECT_EQ(to_text({.layers = 16, .predicted_peak_bytes = 1 << 20}), "memory: 1.00 MiB predicted");
  EXPECT_EQ(to_text({.checkpointed_layers = 6,
                     .layers = 16,
                     .recomputed = 0.214,
                     .predicted_peak_bytes = 3 << 20,
                     .limit_bytes = 4 << 20}),
            "memory: 3.00 MiB of 4.00 MiB predicted, 6 of 16 layers checkpointed, 21 % of their forward pass "
            "again");
}

}  // namespace
}  // namespace caldera::testing
