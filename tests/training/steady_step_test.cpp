// What a training step costs once training runs: counted, not timed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/runtime/runtime.h"
#include "lm/adapters/lora.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/support/devices.h"
#include "tests/support/sanitizers.h"
#include "tests/support/tiny_llama.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

/// What the device and the plan cache had done after each step.
class Counter : public TrainObserver {
 public:
  explicit Counter(Device device) : device_(device) {}
  void on_step(const StepRecord& record) override {
    counters_.push_back(backend(device_).counters());
    misses_.push_back(plan_cache_stats().misses);
    rates_.push_back(record.learning_rate);
  }
  const std::vector<DeviceCounters>& counters() const { return counters_; }
  const std::vector<std::uint64_t>& misses() const { return misses_; }
  const std::vector<double>& rates() const { return rates_; }

 private:
  Device device_;
  std::vector<DeviceCounters> counters_;
  std::vector<std::uint64_t> misses_;
  std::vector<double> rates_;
};

class SteadyStep : public ::testing::TestWithParam<Device> {};
INSTANTIATE_TEST_SUITE_P(Devices, SteadyStep, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST_P(SteadyStep, OneSubmitNoMissNoAllocationOneRead) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  if (!kKeepsMemory && GetParam().kind == DeviceKind::cpu)
    GTEST_SKIP() << "AddressSanitizer: no memory is kept";
  ExampleSet set;
  for (int i = 0; i < 12; ++i) set.examples.push_back({"", "a line of always the same length"});
  const TokenDataset data(set, ByteTokenizer(), {.seq_len = 48});
  const ModelConfig config = testing::tiny_llama();
  Llama model(config, GetParam(), 1);
  LoRAOptions lora;
  lora.rank = 2;
  apply_lora(model, lora, {"q_proj", "v_proj"}, 5);
  TrainOptions options;
  options.iterations = 8;
  options.schedule = ScheduleKind::cosine;  // another learning rate every step
  options.warmup = 2;
  options.seed = 3;

  Counter counter(GetParam());
  TrainObserver* observers[] = {&counter};
  train(model, data, nullptr, options, observers);

  ASSERT_EQ(counter.counters().size(), 8U);
  // The third step sees the first one's memory come back.
  for (std::size_t i = 3; i < counter.counters().size(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i + 1));
    const DeviceCounters &before = counter.counters()[i - 1], &after = counter.counters()[i];
    EXPECT_NE(counter.rates()[i], counter.rates()[i - 1]);
    EXPECT_EQ(after.submits - before.submits, 1U);
    EXPECT_EQ(counter.misses()[i] - counter.misses()[i - 1], 0U);
    EXPECT_EQ(after.allocations - before.allocations, 0U);
    EXPECT_EQ(after.downloads - before.downloads, 1U);
  }
}

}  // namespace
}  // namespace caldera::testing
