#include "cli/training/explain_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "cli/arguments/model_flags.h"
#include "cli/arguments/usage_error.h"
#include "cli/files/inputs.h"
#include "engine/base/error.h"
#include "engine/runtime/runtime.h"
#include "lm/chat/model_chat_templates.h"
#include "lm/generate/generator.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "lm/tokenizers/sources/load_tokenizer.h"
#include "training/data/example_files.h"
#include "training/data/forms/chat_format.h"
#include "training/objectives/next_token.h"
#include "training/trainer/trainer.h"

namespace caldera::cli {
namespace {

/// Tokens of a prompt or sequence that nobody gave: what a plan is depends on their number alone.
constexpr std::int64_t kDefaultTokens = 64;

/// What was recorded since `first_run` and `first_span`.
SteadyRun recorded_since(const Profiler& profiler, std::size_t first_run, std::size_t first_span) {
  SteadyRun steady{.runs = profiler.runs(), .spans = profiler.spans()};
  steady.runs.erase(steady.runs.begin(), steady.runs.begin() + static_cast<std::ptrdiff_t>(first_run));
  steady.spans.erase(steady.spans.begin(), steady.spans.begin() + static_cast<std::ptrdiff_t>(first_span));
  return steady;
}

/// The model, ready for a task but for an adapter to train.
std::unique_ptr<CausalLM> make_model(const ExplainFlags& flags, Device device) {
  const DType dtype = parse_dtype(flags.training.dtype);
  if (!flags.make_random) return load_model(flags.model, flags.adapter, device, dtype);
  std::unique_ptr<CausalLM> model = flags.make_random(device);
  model->materialize();
  model->freeze();
  model->set_dtype(dtype);
  model->set_training(false);
  return model;
}

/// The prompt that was asked for; one of `otherwise` tokens if there is none.
std::vector<std::int32_t> make_prompt(const ExplainFlags& flags, const ModelConfig& config,
                                      std::int64_t otherwise) {
  std::vector<std::int32_t> prompt;
  if (flags.prompt_is_text) {
    prompt = load_tokenizer(flags.model)->encode(flags.prompt);
  } else if (!flags.prompt_ids.empty()) {
    prompt = parse_ids(flags.prompt_ids, "--prompt-ids");
  } else {
    for (std::int64_t i = 0; i < std::min(otherwise, config.max_positions()); ++i)
      prompt.push_back(static_cast<std::int32_t>(i % config.vocab_size));
  }
  if (prompt.empty())
    throw ValueError("the prompt has no tokens; give --prompt some text, or leave it out for a default");
  return prompt;
}

/// Throws the third time it is told of a step: what was wanted has been seen.
class StepMarks : public TrainObserver {
 public:
  explicit StepMarks(const Profiler& profiler) : profiler_(profiler) {}
  void on_step(const StepRecord&) override {
    runs_before_last_ = runs_;
    spans_before_last_ = spans_;
    runs_ = profiler_.runs().size();
    spans_ = profiler_.spans().size();
  }
  SteadyRun last_step() const { return recorded_since(profiler_, runs_before_last_, spans_before_last_); }

 private:
  const Profiler& profiler_;
  std::size_t runs_ = 0, spans_ = 0;
  std::size_t runs_before_last_ = 0, spans_before_last_ = 0;
};

/// The longest batch of a set, again and again: every step has the shapes that memory is planned for.
class LongestBatches final : public TrainingSet {
 public:
  explicit LongestBatches(std::unique_ptr<TrainingSet> set) : set_(std::move(set)) {}

  std::unique_ptr<BatchSource> batches(std::int64_t batch_size, std::uint64_t /*seed*/,
                                       Packing packing) const override {
    return std::make_unique<Source>(longest_batch(batch_size, packing));
  }
  Batch longest_batch(std::int64_t batch_size, Packing packing) const override {
    return set_->longest_batch(batch_size, packing);
  }
  const TokenDataset& sample() const override { return set_->sample(); }
  std::string fingerprint() const override { return set_->fingerprint(); }

 private:
  class Source final : public BatchSource {
   public:
    explicit Source(Batch batch) : batch_(std::move(batch)) {}
    Batch next() override { return batch_; }
    BatchPosition position() const override { return {}; }
    void restore(const BatchPosition& /*position*/) override {}
    std::int64_t rows_per_epoch() const override { return batch_.batch_size; }

   private:
    Batch batch_;
  };

  std::unique_ptr<TrainingSet> set_;
};

/// What finetune would train on; without --data, a batch of sequences.
TrainingData load_data(ExplainFlags& flags, const ModelConfig& config) {
  TrainingFlags& training = flags.training;
  if (!training.data.paths.empty()) {
    ChatFormat chat(load_chat_templates(flags.model));
    return load_training_data(training, *load_tokenizer(flags.model), config, &chat);
  }
  const DatasetOptions options{.seq_len = choose_seq_len(training.seq_len, kDefaultTokens, config),
                               .loss_on = training.data.dataset_options(1).loss_on};
  const auto length = static_cast<std::size_t>(options.seq_len) + 1;
  ExampleSet examples;
  for (std::int64_t i = 0; i < training.options.batch_size; ++i)
    examples.examples.push_back({"", std::string(length, '\1')});
  TrainingData data;
  data.train = std::make_unique<TokenDataset>(examples, ByteTokenizer(false), options);
  return data;
}

}  // namespace

SteadyRun explain_forward(const ExplainFlags& flags, Device device) {
  const std::unique_ptr<CausalLM> model = make_model(flags, device);
  const std::vector<std::int32_t> prompt = make_prompt(flags, model->config(), flags.prompt_tokens);
  const Profiler profiler;
  std::size_t runs = 0;
  std::size_t spans = 0;
  for (int run = 0; run < 2; ++run) {
    const LazyTensor ids = model->make_ids(prompt);
    runs = profiler.runs().size();
    spans = profiler.spans().size();
    model->forward(ids).eval();
  }
  return recorded_since(profiler, runs, spans);
}

SteadyRun explain_decode(const ExplainFlags& flags, Device device) {
  constexpr std::size_t kDrawn = 4;  // the fourth token is drawn after the third decoding step
  const std::unique_ptr<CausalLM> model = make_model(flags, device);
  model->set_activations(Activations::rounded);  // as generate does
  const ModelConfig& config = model->config();
  // A prompt that nobody gave leaves room to decode in.
  const std::int64_t positions = config.max_positions();
  const std::int64_t longest = std::max({std::int64_t{1}, positions / 2, positions - kCacheHeadroom});
  const std::vector<std::int32_t> prompt = make_prompt(flags, config, std::min(longest, flags.prompt_tokens));
  const std::int64_t needed = static_cast<std::int64_t>(prompt.size() + kDrawn) - 1;
  if (flags.max_tokens < static_cast<std::int64_t>(kDrawn))
    throw ValueError(
        fmt::format("--max-tokens {}: the steady state begins with token {}", flags.max_tokens, kDrawn));
  if (needed > config.max_positions()) {
    throw ValueError(
        fmt::format("a prompt of {} tokens leaves no room to decode in: the model has {} positions",
                    prompt.size(), config.max_positions()));
  }
  const Profiler profiler;
  // Where the drawing of each token found the records.
  std::vector<std::size_t> runs;
  std::vector<std::size_t> spans;
  GenerateOptions options;
  options.max_tokens = flags.max_tokens;
  options.sampling = flags.sampling;
  options.on_token = [&](std::int32_t) {
    runs.push_back(profiler.runs().size());
    spans.push_back(profiler.spans().size());
    return runs.size() < kDrawn;
  };
  generate(*model, prompt, options);
  // The third step was recorded a token earlier where the device went ahead; what follows may be cut short.
  const std::size_t first = goes_ahead(*model, options) ? kDrawn - 3 : kDrawn - 2;
  SteadyRun steady = recorded_since(profiler, runs[first], spans[first]);
  steady.runs.resize(runs[first + 1] - runs[first]);
  if (steady.runs.empty()) throw Error("explain: no step of decoding was recorded");
  steady.cache_positions = cache_capacity(config, static_cast<std::int64_t>(prompt.size()));
  return steady;
}

SteadyRun explain_train(ExplainFlags& flags, Device device) {
  const bool random = static_cast<bool>(flags.make_random);
  const std::unique_ptr<CausalLM> model =
      random ? make_model(flags, device) : open_model(flags.model, device);
  const std::vector<std::string> targets = resolve_targets(*model, flags.targets);
  TrainingData loaded = load_data(flags, model->config());
  const TokenDataset* const valid = loaded.valid ? &*loaded.valid : nullptr;
  const LongestBatches data(std::move(loaded.train));
  if (!random) load_weights(*model, flags.model, flags.adapter, parse_dtype(flags.training.dtype));
  TrainOptions& options = flags.training.options;
  flags.training.apply();
  if (flags.adapter.empty()) apply_lora(*model, flags.lora, targets, options.seed);
  options.iterations = 3;
  options.val_every = 0;
  options.try_longest = false;
  const Profiler profiler;
  StepMarks marks(profiler);
  const std::array<TrainObserver*, 1> observers{&marks};
  const std::uint64_t limit = device_counters(device).limit_bytes;
  if (limit > 0 && options.checkpointing != Checkpointing::automatic)
    throw UsageError(
        "--memory-limit: is compared with what --checkpoint auto chooses; leave out one of the two");
  try {
    train(*model, data, nullptr, options, observers);
  } catch (const MemoryLimitTooLow&) {  // the table says so, beside a step without a limit
    set_memory_limit(device, 0);
    train(*model, data, nullptr, options, observers);
    set_memory_limit(device, limit);
  }
  SteadyRun steady = marks.last_step();
  if (limit > 0) {
    // Ten limits from what a step takes without one down to three tenths of it, and the one that was given.
    std::vector<double> shares;
    shares.reserve(10);
    for (int i = 0; i < 10; ++i) shares.push_back(1 - 0.7 * i / 9);
    options.try_longest = true;  // as finetune does
    steady.memory = memory_curve(ObjectiveModels(*model), NextToken(), data, valid, options, shares, limit);
  }
  return steady;
}

}  // namespace caldera::cli
