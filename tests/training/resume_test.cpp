// A run that stops anywhere and goes on is the run that did not: bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lm/adapters/lora.h"
#include "lm/base/atomic_file.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_llama.h"
#include "training/checkpoints/train_state.h"
#include "training/data/stream/streamed_dataset.h"
#include "training/objectives/next_token.h"
#include "training/optim/registry.h"
#include "training/trainer/trainer.h"

namespace caldera {
namespace {

using testing::TempFolder;

ModelConfig resumed_config() { return testing::tiny_llama(); }

TokenDataset resumed_data(int examples) {
  ExampleSet set;
  for (int i = 0; i < examples; ++i)
    set.examples.push_back(
        {"", "line " + std::to_string(i) + std::string(static_cast<std::size_t>(i % 7), '!')});
  return TokenDataset(set, ByteTokenizer(), {.seq_len = 32});
}

std::map<std::string, std::vector<std::byte>> values_of(const std::map<std::string, LazyTensor>& tensors) {
  std::map<std::string, std::vector<std::byte>> values;
  for (const auto& [name, tensor] : tensors) {
    values[name].resize(static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype()));
    tensor.copy_to_host(values[name].data());
  }
  return values;
}

// Writes every state to a file; stops after a step; begins with a file.
class FileControl : public TrainControl {
 public:
  explicit FileControl(std::filesystem::path path, std::int64_t stop_after = -1)
      : path_(std::move(path)), left_(stop_after) {}

  void begin_with(const std::filesystem::path& path) { from_ = read_train_state(path, Device::cpu()); }
  const TrainState* resumed() override { return from_ ? &*from_ : nullptr; }
  bool stop_requested() override { return left_-- == 0; }
  void save(const TrainState& state, bool) override {
    steps.push_back(state.step);
    parameters = values_of(state.parameters);
    moments = values_of(state.optimizer.tensors);
    StagedFiles files;
    write_train_state(files, path_, state);
    files.commit();
  }

  std::vector<std::int64_t> steps;
  std::map<std::string, std::vector<std::byte>> parameters;
  std::map<std::string, std::vector<std::byte>> moments;

 private:
  std::filesystem::path path_;
  std::int64_t left_;
  std::optional<TrainState> from_;
};

struct Variant {
  DType dtype = DType::f32;
  std::string optimizer = "adamw";
  double loss_scale = 65536;
  double ema_decay = 0;
};

TrainOptions resumed_options(const Variant& variant) {
  TrainOptions options;
  options.iterations = 12;
  options.batch_size = 3;
  options.grad_accumulation = 2;
  options.optimizer.name = variant.optimizer;
  options.ema_decay = variant.ema_decay;
  if (variant.optimizer == "adamw_8bit") options.optimizer.more["min_8bit_size"] = 1;
  if (variant.optimizer == "sgd") options.optimizer.more["momentum"] = 0.9;
  options.optimizer.learning_rate = 1e-2;
  options.schedule = ScheduleKind::cosine;
  options.warmup = 3;
  options.val_every = 5;
  options.seed = 11;
  options.loss_scaling.initial_scale = variant.loss_scale;
  options.loss_scaling.growth_interval = 2;
  return options;
}

TrainResult run(const Variant& variant, FileControl& control, const TrainOptions& options) {
  Llama model(resumed_config(), Device::cpu(), 1);
  apply_lora(model, {.rank = 3, .alpha = 6, .dropout = 0.2}, {"q_proj", "down_proj"}, 5);
  model.set_dtype(variant.dtype);
  const TokenDataset data = resumed_data(17);
  const TokenDataset valid = resumed_data(5);
  return train(model, data, &valid, options, {}, &control);
}

void expect_resumes_exactly(const Variant& variant) {
  const TempFolder temp;
  const TrainOptions options = resumed_options(variant);
  FileControl whole(temp / "whole");
  const TrainResult expected = run(variant, whole, options);
  ASSERT_EQ(whole.steps, std::vector<std::int64_t>{12});
  for (const std::int64_t stop : {1, 4, 5, 11}) {
    FileControl first(temp / "first", stop);
    const TrainResult stopped = run(variant, first, options);
    EXPECT_EQ(stopped.end, TrainEnd::stopped);
    EXPECT_EQ(first.steps, std::vector<std::int64_t>{stop});
    EXPECT_NE(first.parameters, whole.parameters);
    FileControl second(temp / "second");
    second.begin_with(temp / "first");
    const TrainResult result = run(variant, second, options);
    EXPECT_EQ(second.parameters, whole.parameters) << variant.optimizer << ", stopped after " << stop;
    EXPECT_EQ(second.moments, whole.moments) << variant.optimizer << ", stopped after " << stop;
    EXPECT_EQ(read_text_file(temp / "second"), read_text_file(temp / "whole"));
    EXPECT_EQ(result.last_step.loss, expected.last_step.loss);
    EXPECT_EQ(result.initial_val_loss, expected.initial_val_loss);
    EXPECT_EQ(result.final_val_loss, expected.final_val_loss);
    EXPECT_EQ(result.best->loss, expected.best->loss);
    EXPECT_EQ(result.last_step.step, 12);
  }
}

TEST(Resume, IsExact) { expect_resumes_exactly({}); }
TEST(Resume, IsExactInBf16) { expect_resumes_exactly({.dtype = DType::bf16}); }
// So high a scale overflows at first: steps are skipped, and the scale falls and grows.
TEST(Resume, IsExactWithALossScale) { expect_resumes_exactly({.dtype = DType::f16, .loss_scale = 0x1p30}); }
TEST(Resume, IsExactWithAMovingAverage) { expect_resumes_exactly({.ema_decay = 0.9}); }
TEST(Resume, IsExactForEveryOptimizer) {
  for (const std::string& name : optimizer_names()) expect_resumes_exactly({.optimizer = name});
}

// Trains several steps on a batch that it has made of the data at random, as an objective does whose rows the
// model writes; and calls a high loss good.
class SeveralSteps : public Objective {
 public:
  std::string_view name() const override { return "several"; }
  std::int64_t steps_per_batch() const override { return 3; }
  std::string_view best_by() const override { return "reward"; }
  Batch prepare(const ObjectiveModels&, Batch batch, std::uint64_t seed) const override {
    for (std::size_t i = 0; i < batch.weights.size(); ++i)
      if (mix_seed(seed, i) % 2 == 0) batch.weights[i] = 0;
    return batch;
  }
  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override {
    ObjectiveSums sums = NextToken().sums(models, batch);
    sums.metrics.push_back({.name = "reward", .sum = sums.loss});
    return sums;
  }
};

TrainResult run_several(FileControl& control, const TrainOptions& options) {
  Llama model(resumed_config(), Device::cpu(), 1);
  apply_lora(model, {.rank = 3, .alpha = 6}, {"q_proj"}, 5);
  const TokenDataset data = resumed_data(17);
  const TokenDataset valid = resumed_data(5);
  return train(ObjectiveModels(model), SeveralSteps(), data, &valid, options, {}, &control);
}

TEST(Resume, IsExactWithSeveralStepsABatch) {
  const TempFolder temp;
  TrainOptions options = resumed_options({});
  options.grad_accumulation = 1;
  options.save_every = 4;
  FileControl whole(temp / "whole");
  run_several(whole, options);
  // What is due after 4, 8 and 12 steps comes at the ends of batches.
  EXPECT_EQ(whole.steps, (std::vector<std::int64_t>{6, 9, 12}));
  for (const std::int64_t asked : {1, 2, 3}) {
    FileControl first(temp / "first", asked);  // asked at the ends of batches alone
    EXPECT_EQ(run_several(first, options).end, TrainEnd::stopped);
    EXPECT_EQ(first.steps.back(), 3 * asked);
    EXPECT_NE(first.parameters, whole.parameters);
    FileControl second(temp / "second");
    second.begin_with(temp / "first");
    run_several(second, options);
    EXPECT_EQ(second.parameters, whole.parameters) << "stopped after " << 3 * asked;
    EXPECT_EQ(second.moments, whole.moments) << "stopped after " << 3 * asked;
  }
}

// A row that cannot be read ends a run, which has saved what it had, and goes on once such rows are skipped.
TEST(Resume, IsExactAfterABadRowOfAStream) {
  const TempFolder temp;
  std::string text;
  for (int i = 0; i < 4000; ++i)
    text += i == 3000 ? "{\"text\": }\n" : "{\"text\": \"line " + std::to_string(i) + "\"}\n";
  const DataPath file{.path = temp.put("rows.jsonl", text)};
  TrainOptions options = resumed_options({});
  options.iterations = 900;
  options.batch_size = 8;
  options.grad_accumulation = 1;
  options.val_every = 0;
  const auto run_stream = [&](FileControl& control, bool skip) {
    Llama model(resumed_config(), Device::cpu(), 1);
    apply_lora(model, {.rank = 2, .alpha = 4}, {"q_proj"}, 5);
    const ByteTokenizer tokenizer;
    const StreamedDataset data(std::span(&file, 1), tokenizer, {.skip_bad_rows = skip}, {.seq_len = 16});
    train(ObjectiveModels(model), NextToken(), data, nullptr, options, {}, &control);
  };
  FileControl whole(temp / "whole");
  run_stream(whole, true);
  FileControl first(temp / "first");
  EXPECT_CONTAINS(testing::error_of<FileError>([&] { run_stream(first, false); }), "rows.jsonl:3001: ");
  ASSERT_EQ(first.steps.size(), 1U);
  EXPECT_LT(first.steps[0], 900);
  FileControl second(temp / "second");
  second.begin_with(temp / "first");
  run_stream(second, true);
  EXPECT_EQ(second.parameters, whole.parameters);
  EXPECT_EQ(second.moments, whole.moments);
}

TEST(Trainer, TheBestIsThatOfTheObjectivesOwnMetric) {
  const TempFolder temp;
  TrainOptions options = resumed_options({});
  options.grad_accumulation = 1;
  options.val_every = 2;
  options.save_best = true;
  FileControl control(temp / "state");
  const TrainResult result = run_several(control, options);
  // The loss falls, so that the first validation has the highest reward. It comes at a batch's end.
  EXPECT_EQ(result.best->step, 3);
  EXPECT_GT(result.best->loss, *result.final_val_loss);
  EXPECT_EQ(result.best->score, -result.best->loss);
  EXPECT_EQ(control.steps.front(), 3);
}

// A run that was complete says what it said.
TEST(Resume, OfACompleteRunDoesNothing) {
  const TempFolder temp;
  FileControl whole(temp / "whole");
  const TrainResult expected = run({}, whole, resumed_options({}));
  FileControl second(temp / "second");
  second.begin_with(temp / "whole");
  const TrainResult result = run({}, second, resumed_options({}));
  EXPECT_EQ(result.end, TrainEnd::finished);
  EXPECT_EQ(result.last_step.step, 12);
  EXPECT_EQ(result.last_step.loss, expected.last_step.loss);
  EXPECT_EQ(result.last_step.grad_norm, expected.last_step.grad_norm);
  EXPECT_EQ(result.last_step.learning_rate, expected.last_step.learning_rate);
  EXPECT_EQ(result.final_val_loss, expected.final_val_loss);
  EXPECT_EQ(read_text_file(temp / "second"), read_text_file(temp / "whole"));
}

TEST(Resume, RefusesAnotherRun) {
  const TempFolder temp;
  FileControl first(temp / "state", 4);
  run({}, first, resumed_options({}));
  const auto resumes = [&](const Variant& variant, const TrainOptions& options) {
    FileControl second(temp / "second");
    second.begin_with(temp / "state");
    run(variant, second, options);
  };
  EXPECT_NO_THROW(resumes({}, resumed_options({})));
  EXPECT_THROW(resumes({.optimizer = "sgd"}, resumed_options({.optimizer = "sgd"})), ValueError);
  EXPECT_THROW(resumes({.dtype = DType::f16}, resumed_options({})), ValueError);
  TrainOptions shorter = resumed_options({});
  shorter.iterations = 3;
  EXPECT_THROW(resumes({}, shorter), ValueError);
}

TEST(Resume, TheFingerprintIsOfTokensAndMasks) {
  const std::string of_five = resumed_data(5).fingerprint();
  EXPECT_EQ(of_five, resumed_data(5).fingerprint());
  EXPECT_NE(of_five, resumed_data(6).fingerprint());
  const ExampleSet prompts{.plain_text = false, .examples = {{"ab", "cd"}}};
  const TokenDataset all(prompts, ByteTokenizer(), {.seq_len = 32});
  const TokenDataset masked(prompts, ByteTokenizer(), {.seq_len = 32, .loss_on = LossOn::completion});
  EXPECT_NE(all.fingerprint(), masked.fingerprint());
}

TEST(TrainState, NumbersLoseNoBit) {
  const TempFolder temp;
  TrainState state;
  state.step = 123456789012345;
  state.optimizer.step = 7;
  state.optimizer.tensors.emplace("w.exp_avg",
                                  LazyTensor::from_vector<double>({0.1, -1e-300}, {2}, Device::cpu()));
  state.parameters.emplace("w", LazyTensor::from_vector<float>({0.1F, -0.0F}, {1, 2}, Device::cpu()));
  state.data = {.seed = std::numeric_limits<std::uint64_t>::max(), .epoch = 3, .index = 2, .size = 9};
  state.loss_scaler = LossScaler::State{.scale = 0x1p-20, .good_steps = 5};
  state.best = BestValidation{.step = 10, .loss = 1.0 / 3};
  state.val_loss = 0.1 + 0.2;
  state.misses = 2;
  state.tokens = 99;
  StagedFiles files;
  write_train_state(files, temp / "state", state);
  files.commit();

  const TrainState read = read_train_state(temp / "state", Device::cpu());
  EXPECT_EQ(read.step, state.step);
  EXPECT_EQ(read.data, state.data);
  EXPECT_EQ(read.loss_scaler->scale, 0x1p-20);
  EXPECT_EQ(read.best->loss, 1.0 / 3);
  EXPECT_EQ(read.val_loss, state.val_loss);
  EXPECT_EQ(read.initial_val_loss, std::nullopt);
  EXPECT_EQ(read.misses, 2);
  EXPECT_EQ(read.optimizer.tensors.at("w.exp_avg").to_vector<double>(), (std::vector<double>{0.1, -1e-300}));
  EXPECT_EQ(read.parameters.at("w").shape(), (Shape{1, 2}));

  EXPECT_THROW(read_train_state(temp / "absent", Device::cpu()), FileError);
  temp.put("torn", read_text_file(temp / "state").substr(0, 300));
  EXPECT_THROW(read_train_state(temp / "torn", Device::cpu()), FileError);
}

TEST(Trainer, PatienceEndsTheRun) {
  const TempFolder temp;
  Variant variant;
  TrainOptions options = resumed_options(variant);
  options.iterations = 1000;
  options.optimizer.learning_rate = 0.3;  // far too high: the loss rises soon
  options.val_every = 1;
  options.patience = 3;
  options.save_best = true;
  FileControl control(temp / "state");
  const TrainResult result = run(variant, control, options);
  EXPECT_EQ(result.end, TrainEnd::no_progress);
  EXPECT_LT(result.last_step.step, 1000);
  EXPECT_EQ(result.last_step.step, result.best->step + 3);
  EXPECT_GT(*result.final_val_loss, result.best->loss);
  EXPECT_EQ(control.steps.back(), result.last_step.step);
  EXPECT_NE(std::ranges::find(control.steps, result.best->step), control.steps.end());
}

}  // namespace
}  // namespace caldera
