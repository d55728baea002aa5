#include "training/trainer/memory_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "engine/base/error.h"
#include "engine/runtime/runtime.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "training/data/dataset.h"
#include "training/objectives/next_token.h"
#include "training/trainer/trainer.h"

namespace caldera {
namespace {

/// Lifts a device's limit while it lives: what is planned for a limit may need more to be planned in.
class Lifted {
 public:
  explicit Lifted(Device device) : device_(device), limit_(device_counters(device).limit_bytes) {
    set_memory_limit(device_, 0);
  }
  ~Lifted() { set_memory_limit(device_, limit_); }
  Lifted(const Lifted&) = delete;
  Lifted& operator=(const Lifted&) = delete;
  std::uint64_t limit() const { return limit_; }

 private:
  Device device_;
  std::uint64_t limit_;
};

/// A step of next-token training on a batch of such rows.
MemoryChoice choice_for(CausalLM& model, TrainOptions options, std::int64_t rows, std::int64_t tokens) {
  options.batch_size = rows;
  ExampleSet examples;
  for (std::int64_t i = 0; i < rows; ++i)
    examples.examples.push_back({"", std::string(static_cast<std::size_t>(tokens) + 1, '\1')});
  const TokenDataset data(examples, ByteTokenizer(false), {.seq_len = tokens});
  return plan_memory(ObjectiveModels(model), NextToken(), data, nullptr, options).value();
}

/// Whether batches fit, with the checkpointing that is asked for.
class Fits {
 public:
  Fits(CausalLM& model, const TrainOptions& options, std::uint64_t limit)
      : model_(model), asked_(options), layer_(options) {
    asked_.planned_limit = limit;
    layer_.checkpointing = Checkpointing::layer;
    layer_.planned_limit = limit;
  }
  /// Throws MemoryLimitTooLow where there is none.
  MemoryChoice choice(std::int64_t rows, std::int64_t tokens) const {
    return choice_for(model_, asked_, rows, tokens);
  }
  bool operator()(std::int64_t rows, std::int64_t tokens) const {
    // What fits with the least memory is found by one plan, without a search.
    const bool may_choose = asked_.checkpointing == Checkpointing::automatic;
    return (may_choose && fits(layer_, rows, tokens)) || fits(asked_, rows, tokens);
  }

 private:
  bool fits(const TrainOptions& options, std::int64_t rows, std::int64_t tokens) const {
    try {
      (void)choice_for(model_, options, rows, tokens);
      return true;
    } catch (const MemoryLimitTooLow&) {
      return false;
    }
  }

  CausalLM& model_;
  TrainOptions asked_;
  TrainOptions layer_;
};

/// The largest number from 1 to `most` that fits; 0 if none does. What fits is smaller than what does not.
std::int64_t largest(std::int64_t most, const std::function<bool(std::int64_t)>& fits) {
  if (most < 1 || !fits(1)) return 0;
  std::int64_t good = 1, bad = 2;
  while (bad <= most && fits(bad)) {
    good = bad;
    bad = 2 * bad;
  }
  bad = std::min(bad, most + 1);
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

std::vector<MemoryRow> memory_curve(const ObjectiveModels& models, const Objective& objective,
                                    const TrainingSet& data, const TokenDataset* valid,
                                    const TrainOptions& options, std::span<const double> shares,
                                    std::uint64_t own_limit) {
  const Lifted lifted(models.policy().device());
  TrainOptions automatic = options;
  automatic.checkpointing = Checkpointing::automatic;
  return plan_memory(models, objective, data, valid, automatic, shares, own_limit);
}

MemoryFit fit_memory(CausalLM& model, const TrainOptions& options, std::int64_t seq_len,
                     std::int64_t most_tokens, std::int64_t most_rows) {
  const Lifted lifted(model.device());
  if (lifted.limit() == 0)
    throw ValueError("fit: the device has no limit of memory to fit into; set one (--memory-limit)");
  const Fits fits(model, options, lifted.limit());
  MemoryFit fit;
  fit.longest_seq_len =
      largest(most_tokens, [&](std::int64_t tokens) { return fits(options.batch_size, tokens); });
  fit.largest_batch = largest(most_rows, [&](std::int64_t rows) { return fits(rows, seq_len); });
  try {
    fit.choice = fits.choice(options.batch_size, std::max<std::int64_t>(1, fit.longest_seq_len));
  } catch (const MemoryLimitTooLow& error) {
    fit.least_bytes = error.least_bytes;
  }
  return fit;
}

}  // namespace caldera
