// A training step within a limit of memory: what is predicted is what is taken, and the training is the same.
#include "training/memory/step_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/runtime/runtime.h"
#include "lm/adapters/lora.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/support/devices.h"
#include "tests/support/tiny_llama.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

constexpr std::int64_t kLayers = 6;

class StepMemory : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  void TearDown() override { set_memory_limit(GetParam(), 0); }

  static TokenDataset long_texts() {
    ExampleSet set;
    for (int i = 0; i < 8; ++i)
      set.examples.push_back({"", std::string(static_cast<std::size_t>(200 + i), 'a')});
    return TokenDataset(set, ByteTokenizer(), {.seq_len = 256});
  }

  struct Outcome {
    TrainResult result;
    std::uint64_t used = 0;       // at most, in the training or before it
    bool shows_own_peak = false;  // what ran before had used less
  };
  /// Four steps from the same beginning under a limit of what the device's memory may be in all; 0: none.
  Outcome train_within(Checkpointing how, std::uint64_t limit, double dropout = 0,
                       double ema_decay = 0) const {
    const Device device = GetParam();
    Llama model(tiny_llama({.hidden = 32, .layers = kLayers, .heads = 4, .kv_heads = 2, .positions = 256}),
                device, 5);
    apply_lora(model, {.rank = 2, .alpha = 4, .dropout = dropout}, {"all-linear"}, 1);
    model.materialize();
    synchronize();
    set_memory_limit(device, limit);
    TrainOptions options{.iterations = 4, .batch_size = 4, .try_longest = true, .checkpointing = how};
    options.optimizer.learning_rate = 1e-2;
    options.ema_decay = ema_decay;
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
  const bool is_exact = GetParam().kind == DeviceKind::cpu;
  std::vector<Outcome> outcomes{layer};
  const bool is_fresh = layer.shows_own_peak;
  int shown = 0;
  double recomputed = 1;
  // What the device takes for itself comes on top.
  set_memory_limit(GetParam(), 1 << 30);
  const DeviceCounters now = device_counters(GetParam());
  const std::uint64_t own = now.reserved_bytes - now.live_bytes;
  const std::vector<double> shares =
      is_exact ? std::vector<double>{1.15, 1.4, 1.7, 2.1, 2.6, 8.0} : std::vector<double>{2, 12};
  for (const double share : shares) {
    const auto limit = own + static_cast<std::uint64_t>(static_cast<double>(least) * share);
    outcomes.push_back(train_within(Checkpointing::automatic, limit));
    const MemoryChoice& choice = *outcomes.back().result.memory;
    EXPECT_LE(choice.predicted_peak_bytes, limit);
    EXPECT_LE(choice.recomputed, recomputed) << "no more than the limit asks for";
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
    EXPECT_GE(shown, is_exact ? 3 : 1) << "peaks that were compared";
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
  const MemoryChoice without = *train_within(Checkpointing::layer, 0).result.memory;
  const MemoryChoice with = *train_within(Checkpointing::layer, 0, 0, 0.9).result.memory;
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
