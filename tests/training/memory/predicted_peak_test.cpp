// The peak that is predicted for a run is the one that the CPU counts, byte for byte, for every kind of step.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "engine/runtime/runtime.h"
#include "lm/adapters/lora.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/support/tiny_llama.h"
#include "training/data/dataset.h"
#include "training/objectives/registry.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

/// What a run is, besides the size of its batches.
struct StepCase {
  const char* name;
  LoRAOptions adapter{.rank = 4};  ///< a rank of 0: all parameters are trained
  const char* objective = "sft";
  std::int64_t accumulation = 1;
  Packing packing = Packing::none;
  double ema_decay = 0;
  Checkpointing checkpointing = Checkpointing::none;
  bool try_longest = false;
  bool validates_longer = false;  ///< on texts of four times the length
};
void PrintTo(const StepCase& step, std::ostream* out) { *out << step.name; }

const LoRAOptions kDora{.rank = 4, .use_dora = true};
const LoRAOptions kPissa{.rank = 4, .init = LoRAInit::pissa};
const LoRAOptions kAll{.rank = 0};

class PredictedPeak : public ::testing::TestWithParam<StepCase> {
 protected:
  static std::unique_ptr<Llama> make_model() {
    auto model = std::make_unique<Llama>(
        tiny_llama({.hidden = 32, .layers = 2, .heads = 4, .kv_heads = 2, .positions = 64}), Device::cpu(),
        5);
    if (GetParam().adapter.rank > 0) apply_lora(*model, GetParam().adapter, {"all-linear"}, 1);
    model->materialize();
    synchronize();
    return model;
  }
  /// Texts of which no two batches are alike, or pairs of answers.
  static TokenDataset make_data(std::int64_t count, std::int64_t length) {
    const auto text = [](std::int64_t tokens) { return std::string(static_cast<std::size_t>(tokens), 'a'); };
    ExampleSet set;
    for (std::int64_t i = 0; i < count; ++i) {
      if (GetParam().objective != std::string("sft"))
        set.examples.push_back({.prompt = "q",
                                .text = text(40),
                                .rejected = text(20 + i % 20),
                                .kind = ExampleKind::preference});
      else
        set.examples.push_back({"", text(GetParam().packing != Packing::none ? 10 + i % 40 : length)});
    }
    return TokenDataset(set, ByteTokenizer(), {.seq_len = 64});
  }
  static TrainOptions make_options(std::int64_t rows) {
    const StepCase& of = GetParam();
    TrainOptions options{.iterations = 3,
                         .batch_size = rows,
                         .grad_accumulation = of.accumulation,
                         .packing = of.packing,
                         .ema_decay = of.ema_decay,
                         .try_longest = of.try_longest,
                         .checkpointing = of.checkpointing};
    options.optimizer.learning_rate = 1e-3;
    return options;
  }
};

TEST_P(PredictedPeak, IsWhatIsCounted) {
  const auto objective = make_objective({.name = GetParam().objective});
  // The peak that a device counts never falls: more rows than any run before.
  for (std::int64_t rows = 2;; rows += rows / 2) {
    ASSERT_LT(rows, 4096) << "no run takes more than those before";
    const TokenDataset data = make_data(8 * rows, GetParam().validates_longer ? 15 : 60);
    const TokenDataset longer = make_data(rows, 60);
    const TokenDataset* valid = GetParam().validates_longer ? &longer : nullptr;
    const TrainOptions options = make_options(rows);
    const std::unique_ptr<Llama> model = make_model();
    const ObjectiveModels models(*model);
    const std::uint64_t predicted =
        plan_memory(models, *objective, data, valid, options)->predicted_peak_bytes;
    if (predicted <= device_counters(Device::cpu()).peak_bytes) continue;
    const TrainResult result = train(models, *objective, data, valid, options);
    // Without fusion an evaluation keeps single numbers besides, which take a piece of memory each.
    const std::uint64_t numbers = settings().fusion ? 0 : 4096;
    const auto off = static_cast<std::int64_t>(result.peak_bytes - predicted);
    EXPECT_GE(result.peak_bytes, predicted) << off;
    EXPECT_LE(result.peak_bytes, predicted + numbers) << off;
    return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Steps, PredictedPeak,
    ::testing::Values(
        StepCase{.name = "Lora"}, StepCase{.name = "All", .adapter = kAll},
        StepCase{.name = "Dora", .adapter = kDora}, StepCase{.name = "Pissa", .adapter = kPissa},
        StepCase{.name = "Packed", .packing = Packing::best_fit},
        StepCase{.name = "Pairs", .objective = "dpo"}, StepCase{.name = "PairsAlone", .objective = "orpo"},
        StepCase{.name = "Validated", .validates_longer = true},
        StepCase{.name = "AllValidatedAccumulated",
                 .adapter = kAll,
                 .accumulation = 2,
                 .ema_decay = 0.9,
                 .validates_longer = true},
        StepCase{.name = "LoraAccumulated", .accumulation = 3},
        StepCase{.name = "AllOfTwo", .adapter = kAll, .accumulation = 2},
        StepCase{.name = "AllAccumulated", .adapter = kAll, .accumulation = 3},
        StepCase{.name = "DoraAccumulated", .adapter = kDora, .accumulation = 3},
        StepCase{.name = "PissaAccumulated", .adapter = kPissa, .accumulation = 3},
        StepCase{.name = "PackedAccumulated", .accumulation = 3, .packing = Packing::best_fit},
        StepCase{.name = "PairsAccumulated", .objective = "dpo", .accumulation = 2},
        StepCase{.name = "Averaged", .ema_decay = 0.9},
        StepCase{.name = "AllAveraged", .adapter = kAll, .ema_decay = 0.9},
        StepCase{.name = "AllAveragedAccumulated", .adapter = kAll, .accumulation = 3, .ema_decay = 0.9},
        StepCase{.name = "PissaAveraged", .adapter = kPissa, .ema_decay = 0.9},
        StepCase{.name = "PissaAveragedAccumulated", .adapter = kPissa, .accumulation = 2, .ema_decay = 0.9},
        StepCase{.name = "Checkpointed",
                 .adapter = kAll,
                 .accumulation = 2,
                 .checkpointing = Checkpointing::layer},
        StepCase{.name = "AllTried", .adapter = kAll, .try_longest = true},
        StepCase{.name = "PairsTried", .objective = "dpo", .try_longest = true}),
    [](const auto& step) { return std::string(step.param.name); });

}  // namespace
}  // namespace caldera::testing
