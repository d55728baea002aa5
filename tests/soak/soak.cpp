// caldera_soak: LoRA fine-tuning for as long as it is told to, with sequence lengths and batch sizes that
// change all the time, and a verdict on whether memory grew.
//
// Everything is made up here: a small Llama with random weights, and text by a small grammar. First every
// shape has its turn, so that all kernels have been compiled; then rounds of a few steps come in random
// order. The plan cache is given less than all shapes' plans need, so that plans are dropped and made again
// throughout.
//
// Prints a JSON line every few seconds, one for each quantity at the end, and exits with 1 if one grew by
// more than the tolerance after the settling time.
#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/runtime/runtime.h"
#include "lm/adapters/lora.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/support/memory_watch.h"
#include "tests/support/tiny_llama.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

constexpr const char* kUsage =
    "usage: caldera_soak [--minutes M] [--device D] [--settle S] [--every S] [--plan-cache-mib N]\n"
    "                    [--tolerance PERCENT] [--seed N]\n";

struct SoakOptions {
  double minutes = 30;
  Device device = Device::vulkan(0);
  double settle = 120;  // seconds
  double every = 10;    // seconds between samples
  double plan_cache_mib = 4;
  double tolerance = 1;  // per cent
  std::uint64_t seed = 1;
};

double number(const std::string& flag, const std::string& text) {
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::logic_error&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(value >= 0))
    throw ValueError(fmt::format("{}: '{}' is not a number from 0", flag, text));
  return value;
}

SoakOptions parse(int argc, char** argv) {
  SoakOptions options;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 == argc) throw ValueError(fmt::format("{}: its value is missing", flag));
    const std::string value = argv[i + 1];
    if (flag == "--device") {
      options.device = Device::parse(value);
    } else if (flag == "--minutes") {
      options.minutes = number(flag, value);
    } else if (flag == "--settle") {
      options.settle = number(flag, value);
    } else if (flag == "--every") {
      options.every = number(flag, value);
    } else if (flag == "--plan-cache-mib") {
      options.plan_cache_mib = number(flag, value);
    } else if (flag == "--tolerance") {
      options.tolerance = number(flag, value);
    } else if (flag == "--seed") {
      options.seed = static_cast<std::uint64_t>(number(flag, value));
    } else {
      throw ValueError(fmt::format("unknown option {}", flag));
    }
  }
  return options;
}

ModelConfig small_model() { return testing::tiny_llama({.hidden = 64, .positions = 128}); }

/// What a round trains on.
struct Setting {
  std::int64_t batch;
  std::int64_t length;
};

constexpr std::int64_t kBatches[] = {1, 2, 3};
constexpr std::int64_t kLengths[] = {16, 32, 48, 64, 96, 128};
constexpr std::int64_t kStepsARound = 4;

std::string sentence(std::mt19937_64& random, std::int64_t bytes) {
  constexpr std::string_view kWords[] = {"the",  "a",    "red",   "old", "fox",
                                         "bear", "sees", "hears", "and", "river"};
  std::string text;
  while (static_cast<std::int64_t>(text.size()) < bytes) {
    text += kWords[random() % std::size(kWords)];
    text += ' ';
  }
  text.resize(static_cast<std::size_t>(bytes));
  return text;
}

/// Rows of exactly `setting.length` tokens.
TokenDataset made_up_text(std::mt19937_64& random, const Setting& setting) {
  constexpr std::int64_t kExamples = 6;
  ExampleSet set;
  for (std::int64_t i = 0; i < kExamples; ++i)
    set.examples.push_back({"", sentence(random, setting.length + 1)});
  return {set, ByteTokenizer(), {.seq_len = setting.length}};
}

class Soak : public TrainObserver {
 public:
  explicit Soak(const SoakOptions& options)
      : options_(options), random_(options.seed), model_(small_model(), options.device, options.seed) {
    apply_lora(model_, {.rank = 4, .alpha = 8, .dropout = 0.05}, {"all-linear"}, options.seed + 1);
    for (std::int64_t batch : kBatches) {
      for (std::int64_t length : kLengths) settings_.push_back({batch, length});
    }
  }

  /// Whether memory stayed flat.
  bool run() {
    // The largest first: what it needs is the most there will be.
    for (std::size_t i = settings_.size(); i-- > 0 && !over();) round(settings_[i], 1);
    fmt::print("{{\"every_shape_seen_after\": {:.1f}}}\n", seconds());
    while (!over()) round(settings_[random_() % settings_.size()], kStepsARound);
    look();
    return verdict();
  }

  void on_step(const StepRecord& record) override {
    ++steps_;
    loss_ = record.loss;
    if (seconds() >= next_look_) look();
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  bool over() const { return seconds() >= 60 * options_.minutes; }

  void round(const Setting& setting, std::int64_t steps) {
    const TokenDataset train_set = made_up_text(random_, setting);
    const TokenDataset valid_set = made_up_text(random_, setting);
    TrainOptions options;
    options.iterations = steps;
    options.batch_size = setting.batch;
    options.val_batches = 1;
    options.optimizer.learning_rate = 1e-4;
    options.seed = random_();
    TrainObserver* observers[] = {this};
    train(model_, train_set, &valid_set, options, observers);
  }

  void look() {
    samples_.push_back(take_sample(options_.device, seconds(), steps_));
    next_look_ = seconds() + options_.every;
    fmt::print("{}\n", samples_.back().to_json());
    std::fflush(stdout);
  }

  bool verdict() const {
    bool flat = true;
    for (const Growth& growth : growth_after(samples_, options_.settle, options_.settle / 4)) {
      const bool good = growth.percent() <= options_.tolerance;
      flat = flat && good;
      fmt::print(
          R"({{"quantity": "{}", "settled": {}, "most": {}, "last": {}, "growth_percent": {:.3f}, "flat": {}}})"
          "\n",
          growth.name, growth.settled, growth.most, growth.last, growth.percent(), good);
    }
    fmt::print(R"({{"minutes": {:.1f}, "steps": {}, "loss": {:.4f}, "tolerance_percent": {}, "flat": {}}})"
               "\n",
               seconds() / 60, steps_, loss_, options_.tolerance, flat);
    return flat;
  }

  const SoakOptions& options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mt19937_64 random_;
  Llama model_;
  std::vector<Setting> settings_;
  std::vector<MemorySample> samples_;
  std::uint64_t steps_ = 0;
  double loss_ = 0;
  double next_look_ = 0;
};

int soak(int argc, char** argv) {
  const SoakOptions options = parse(argc, argv);
  set_plan_cache_limit(static_cast<std::size_t>(options.plan_cache_mib * (1 << 20)));
  return Soak(options).run() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace caldera::testing

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--help") {
      std::fputs(caldera::testing::kUsage, stdout);
      return EXIT_SUCCESS;
    }
  }
  try {
    return caldera::testing::soak(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "caldera_soak: %s\n%s", error.what(), caldera::testing::kUsage);
    return 2;
  }
}
