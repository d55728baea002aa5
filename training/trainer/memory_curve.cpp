#include "training/trainer/memory_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>

#include "engine/base/error.h"
#include "engine/runtime/runtime.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "training/data/dataset.h"
#include "training/objectives/next_token.h"
#include "training/trainer/trainer.h"

namespace caldera {
namespace {

/// More than any device has: a limit that asks for nothing.
constexpr std::uint64_t kEndless = std::uint64_t{1} << 62;

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

/// The choice for a batch of such rows; nothing if it does not fit.
std::optional<MemoryChoice> choice_for(CausalLM& model, TrainOptions options, std::int64_t rows,
                                       std::int64_t tokens) {
  options.batch_size = rows;
  ExampleSet examples;
  for (std::int64_t i = 0; i < rows; ++i)
    examples.examples.push_back({"", std::string(static_cast<std::size_t>(tokens) + 1, '\1')});
  const TokenDataset data(examples, ByteTokenizer(false), {.seq_len = tokens});
  try {
    return plan_memory(ObjectiveModels(model), NextToken(), data, options);
  } catch (const MemoryLimitTooLow&) {
    return std::nullopt;
  }
}

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
                                    const TrainingSet& data, const TrainOptions& options,
                                    std::span<const double> shares, std::uint64_t own_limit) {
  const Device device = models.policy().device();
  const Lifted lifted(device);
  TrainOptions automatic = options;
  automatic.checkpointing = Checkpointing::automatic;
  automatic.planned_limit = kEndless;
  std::vector<MemoryRow> rows;
  const std::optional<MemoryChoice> free = plan_memory(models, objective, data, automatic);
  if (!free) return rows;
  rows.push_back({.choice = free});
  // What the device has taken and nothing is in counts against a limit, too.
  const DeviceCounters now = device_counters(device);
  const std::uint64_t own = now.reserved_bytes - now.live_bytes;
  std::vector<std::uint64_t> limits;
  limits.reserve(shares.size() + 1);
  for (const double share : shares)
    limits.push_back(own +
                     static_cast<std::uint64_t>(share * static_cast<double>(free->predicted_peak_bytes)));
  if (own_limit > 0) limits.push_back(own_limit);
  for (const std::uint64_t bytes : limits) {
    MemoryRow row{.limit_bytes = bytes};
    automatic.planned_limit = bytes;
    try {
      row.choice = plan_memory(models, objective, data, automatic);
    } catch (const MemoryLimitTooLow& error) {
      row.least_bytes = error.least_bytes;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

MemoryFit fit_memory(CausalLM& model, const TrainOptions& options, std::int64_t seq_len,
                     std::int64_t most_tokens, std::int64_t most_rows) {
  const Lifted lifted(model.device());
  if (lifted.limit() == 0)
    throw ValueError("fit: the device has no limit of memory to fit into; set one (--memory-limit)");
  TrainOptions automatic = options;
  automatic.checkpointing = Checkpointing::automatic;
  automatic.planned_limit = lifted.limit();
  MemoryFit fit;
  fit.longest_seq_len = largest(most_tokens, [&](std::int64_t tokens) {
    return choice_for(model, automatic, options.batch_size, tokens).has_value();
  });
  fit.largest_batch = largest(
      most_rows, [&](std::int64_t rows) { return choice_for(model, automatic, rows, seq_len).has_value(); });
  if (fit.longest_seq_len > 0)
    fit.choice = *choice_for(model, automatic, options.batch_size, fit.longest_seq_len);
  return fit;
}

}  // namespace caldera
