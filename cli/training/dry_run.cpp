#include "cli/training/dry_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "training/objectives/registry.h"
#include "training/trainer/json_log.h"
#include "training/trainer/trainer.h"

namespace caldera::cli {
namespace {

constexpr std::int64_t kExamples = 3;
constexpr std::int64_t kBars = 12, kBarWidth = 50;
constexpr std::int64_t kRowsMeasured = 4096;

struct Run {
  std::string text;
  bool counts;
};

/// Neighbouring tokens that count, or do not, together: parts of characters are no text by themselves.
std::vector<Run> runs_of(const TokenDataset& data, std::int64_t example, std::int64_t which,
                         const Tokenizer& tokenizer) {
  const std::span<const std::int32_t> tokens = data.tokens(example, which);
  const std::vector<bool> counts = data.counts(example, which);
  std::vector<Run> runs;
  for (std::size_t begin = 0; begin < tokens.size();) {
    std::size_t end = begin + 1;
    while (end < tokens.size() && counts[end] == counts[begin]) ++end;
    runs.push_back({tokenizer.decode(tokens.subspan(begin, end - begin), false), counts[begin]});
    begin = end;
  }
  return runs;
}

std::vector<std::int64_t> lengths_of(const TokenDataset& data) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < data.size(); ++i)
    for (std::int64_t which = 0; which < data.sequences_per_example(); ++which)
      lengths.push_back(std::ssize(data.tokens(i, which)));
  std::ranges::sort(lengths);
  return lengths;
}

/// Counts by upper bounds.
std::map<std::int64_t, std::int64_t> histogram_of(const std::vector<std::int64_t>& lengths) {
  const std::int64_t width = std::max<std::int64_t>(1, (lengths.back() + kBars - 1) / kBars);
  std::map<std::int64_t, std::int64_t> bars;
  for (std::int64_t bound = width; bound < lengths.back() + width; bound += width) bars[bound] = 0;
  for (const std::int64_t length : lengths) ++bars[(length + width - 1) / width * width];
  return bars;
}

/// The share of inputs of the first epoch's batches that stand for nothing; of its first batches, if they are
/// many.
double padding_of(const TrainingFlags& flags, const TrainingSet& data) {
  const auto batches = data.batches(flags.options.batch_size, flags.options.seed, flags.options.packing);
  std::int64_t inputs = 0, used = 0;
  const std::int64_t count = std::clamp<std::int64_t>(
      (batches->rows_per_epoch() + flags.options.batch_size - 1) / flags.options.batch_size, 1,
      std::max<std::int64_t>(1, kRowsMeasured / flags.options.batch_size));
  for (std::int64_t i = 0; i < count; ++i) {
    const Batch batch = batches->next();
    inputs += std::ssize(batch.inputs);
    used += batch.tokens;
  }
  return 1 - static_cast<double>(used) / static_cast<double>(inputs);
}

}  // namespace

nlohmann::ordered_json describe_dry_run(const ObjectiveModels& models, const TrainingFlags& flags,
                                        const TrainingData& data, const Tokenizer& tokenizer) {
  const TokenDataset& train = data.train->sample();
  const std::vector<std::int64_t> lengths = lengths_of(train);
  nlohmann::ordered_json document{{"sequences", train.size()},
                                  {"predictions", train.counted()},
                                  {"valid_sequences", data.valid ? data.valid->size() : 0}};
  if (data.stream != nullptr) document["stream_rows"] = data.stream->rows();
  document["rows_an_epoch"] =
      data.train->batches(flags.options.batch_size, flags.options.seed, flags.options.packing)
          ->rows_per_epoch();
  document["steps"] =
      flags.epochs ? steps_for_epochs(*flags.epochs, *data.train, flags.options) : flags.options.iterations;
  document["padding"] = padding_of(flags, *data.train);
  document["lengths"] = {
      {"min", lengths.front()}, {"median", lengths[lengths.size() / 2]}, {"max", lengths.back()}};
  document["histogram"] = nlohmann::ordered_json::array();
  for (const auto& [bound, count] : histogram_of(lengths)) document["histogram"].push_back({bound, count});
  document["examples"] = nlohmann::ordered_json::array();
  for (std::int64_t i = 0; i < std::min(kExamples, train.size()); ++i) {
    for (std::int64_t which = 0; which < train.sequences_per_example(); ++which) {
      std::string text, learned;
      for (const Run& run : runs_of(train, i, which, tokenizer)) {
        text += run.text;
        if (run.counts) learned += run.text;
      }
      document["examples"].push_back({{"text", text}, {"learned", learned}});
    }
  }
  document["remark"] = data.remark;
  document["memory"] = nullptr;
  if (const auto memory = plan_memory(models, *make_objective(flags.objective), *data.train,
                                      data.valid ? &*data.valid : nullptr, flags.options))
    document["memory"] = {{"predicted_peak_bytes", memory->predicted_peak_bytes},
                          {"checkpointed_layers", memory->checkpointed_layers},
                          {"recomputed", nine_digits(memory->recomputed)},
                          {"text", to_text(*memory)}};
  return document;
}

void print_dry_run(const ObjectiveModels& models, const TrainingFlags& flags, const TrainingData& data,
                   const Tokenizer& tokenizer) {
  const nlohmann::ordered_json document = describe_dry_run(models, flags, data, tokenizer);
  const TokenDataset& train = data.train->sample();
  const bool colours = ::isatty(STDOUT_FILENO) == 1;
  const std::string begin = colours ? "\033[32m" : "«", end = colours ? "\033[0m" : "»";
  for (std::int64_t i = 0; i < std::min(kExamples, train.size()); ++i) {
    for (std::int64_t which = 0; which < train.sequences_per_example(); ++which) {
      const std::int64_t tokens = std::ssize(train.tokens(i, which));
      fmt::print("example {}{}, {} tokens:\n", i + 1, which == 1 ? ", rejected" : "", tokens);
      for (const Run& run : runs_of(train, i, which, tokenizer))
        fmt::print("{}{}{}", run.counts ? begin : "", run.text, run.counts ? end : "");
      fmt::print("\n\n");
    }
  }
  fmt::print("{}\n\ntokens of a sequence:\n", data.remark);
  std::int64_t most = 1;
  for (const auto& bar : document["histogram"]) most = std::max(most, bar[1].get<std::int64_t>());
  for (const auto& bar : document["histogram"]) {
    const auto count = bar[1].get<std::int64_t>();
    fmt::print("  to {:6} {:8}  {}\n", bar[0].get<std::int64_t>(), count,
               std::string(static_cast<std::size_t>((count * kBarWidth + most - 1) / most), '#'));
  }
  fmt::print("shortest {}, median {}, longest {}\n", document["lengths"]["min"].get<std::int64_t>(),
             document["lengths"]["median"].get<std::int64_t>(),
             document["lengths"]["max"].get<std::int64_t>());
  fmt::print("{} predictions count; an epoch has {} rows, {:.0f} % padding; {} steps of {} x {} rows\n",
             train.counted(), document["rows_an_epoch"].get<std::int64_t>(),
             100 * document["padding"].get<double>(), document["steps"].get<std::int64_t>(),
             flags.options.grad_accumulation, flags.options.batch_size);
  if (document["memory"].is_object()) fmt::print("{}\n", document["memory"]["text"].get<std::string>());
}

}  // namespace caldera::cli
