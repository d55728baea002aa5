#include "training/memory/step_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "engine/autodiff/checkpoint/keep_problem.h"
#include "engine/base/byte_size.h"
#include "engine/graph/node.h"
#include "engine/runtime/runtime.h"
#include "training/memory/layer_problem.h"

namespace caldera {
namespace {

using Layers = std::vector<std::optional<Keep>>;

/// What a layer may keep, from the most to nothing.
struct LayerChoices {
  std::vector<KeepCost> costs;
  std::vector<std::string> names;  // of the values
  std::vector<KeepAnswer> answers;
};

/// Keeps the values at these places. A batch of another form computes other values: nothing is kept of it.
Keep keep_at(std::vector<bool> kept) {
  return Keep([kept = std::move(kept)](std::span<const InnerValue> values) {
    return kept.size() == values.size() ? kept : std::vector<bool>(values.size(), false);
  });
}

bool is_equal(const std::vector<KeepCost>& a, const std::vector<KeepCost>& b) {
  return std::ranges::equal(a, b, [](const KeepCost& x, const KeepCost& y) {
    return x.bytes == y.bytes && x.seconds == y.seconds && x.inputs == y.inputs &&
           x.is_needed == y.is_needed && x.may_be_kept == y.may_be_kept;
  });
}

/// Builds the step once with all layers checkpointed, and reads what each computes. A layer that the step
/// does not differentiate has no choices. Layers with equal values share their answers' work.
std::vector<LayerChoices> read_choices(CausalLM& model, const StepGraph& build, std::size_t count) {
  std::vector<LayerChoices> choices(count);
  Layers layers(count);
  for (std::size_t i = 0; i < count; ++i) {
    layers[i] = Keep([&layer = choices[i]](std::span<const InnerValue> values) {
      layer.costs = keep_costs(values);
      layer.names.clear();
      for (const InnerValue& value : values)
        layer.names.push_back(
            fmt::format("{} {}", value.tensor.node().op().name, value.tensor.shape().to_string()));
      return std::vector<bool>(values.size(), true);
    });
  }
  model.set_checkpointing(std::move(layers));
  build();
  const LayerChoices* solved = nullptr;
  for (LayerChoices& layer : choices) {
    if (layer.costs.empty()) continue;
    layer.answers = solved != nullptr && is_equal(solved->costs, layer.costs) ? solved->answers
                                                                              : convex_answers(layer.costs);
    solved = &layer;
  }
  return choices;
}

[[noreturn]] void fail_too_low(std::uint64_t least, std::uint64_t limit, std::uint64_t before = 0) {
  const auto text = [](std::uint64_t bytes) { return format_bytes_up(static_cast<std::int64_t>(bytes)); };
  throw MemoryLimitTooLow(
      fmt::format(
          "a training step takes at least {}{}: more than the limit of {}; lower the batch size or the "
          "sequence length, or raise the limit",
          text(least), before > 0 ? fmt::format(", of which {} are there before it", text(before)) : "",
          format_bytes(static_cast<std::int64_t>(limit))),
      least);
}

/// Gives the model back what it had, unless it is told otherwise: a search that fails leaves nothing.
class Unchanged {
 public:
  explicit Unchanged(CausalLM& model) : model_(model), before_(model.checkpointing()) {}
  ~Unchanged() {
    if (!given_up_) model_.set_checkpointing(std::move(before_));
  }
  Unchanged(const Unchanged&) = delete;
  Unchanged& operator=(const Unchanged&) = delete;
  void give_up() { given_up_ = true; }

 private:
  CausalLM& model_;
  Layers before_;
  bool given_up_ = false;
};

/// Bytes at the end of a block in which there is no tensor: of Vulkan's the most that alignment asks for, and
/// more than the CPU's.
constexpr std::uint64_t kMostEnd = 256;

/// The answers that the layers take, one a layer; of each the first means that it is not checkpointed.
using Answers = std::vector<std::size_t>;

/// The search for the answers.
class Search {
 public:
  Search(CausalLM& model, std::span<const StepGraph> step, const MemoryBounds& bounds, std::size_t layers)
      : model_(model), step_(step), bounds_(bounds), layer_count_(layers) {}

  MemoryChoice none() { return planned(Layers{}, 0, 0); }
  MemoryChoice whole_layers() {
    return planned(Layers(layer_count_, Keep()), static_cast<std::int64_t>(layer_count_), 1);
  }
  MemoryChoice within(std::uint64_t limit) {
    if (!all_kept_) all_kept_ = none();
    if (all_kept_->needed_bytes <= limit) {
      model_.set_checkpointing(Layers{});
      return *all_kept_;
    }
    if (choices_.empty()) {
      choices_ = read_choices(model_, step_.front(), layer_count_);
      measure_options(all_kept_->predicted_peak_bytes);
    }
    std::optional<Answers> answers = cheapest_within(limit);
    if (!answers) answers = smallest_within(limit);
    if (!answers) fail_too_low(least_, limit, bounds_.own + held_bytes_);
    keep_more(*answers, limit);
    MemoryChoice best = planned(*answers);
    best.values = values_with(*answers);
    return best;
  }

 private:
  /// What the layers' answers take, from one plan for each number of an answer, that all layers have: a peak
  /// is the working bytes of the last layer, whose backward pass comes first, on top of what those before it
  /// keep. With working bytes come all that is alive then and does not depend on the answers.
  void measure_options(std::uint64_t peak_of_none) {
    options_.assign(layer_count_, std::vector<LayerOption>(1));
    std::size_t most = 1;
    for (const LayerChoices& layer : choices_) most = std::max(most, layer.answers.size());
    peaks_ = {static_cast<std::int64_t>(peak_of_none)};
    for (std::size_t number = 1; number < most; ++number)
      peaks_.push_back(static_cast<std::int64_t>(planned(all_at(number)).predicted_peak_bytes));
    for (std::size_t i = 0; i < layer_count_; ++i) {
      const std::vector<KeepAnswer>& own = choices_[i].answers;
      for (std::size_t number = 1; number < own.size(); ++number)
        options_[i].push_back({.kept_bytes = own[number].bytes, .seconds = own[number].seconds});
      // The difference between the first two plans is what the layers keep more of what is stored at all.
      if (own.size() > 1)
        options_[i][0].kept_bytes = own[1].bytes + std::max<std::int64_t>(0, peaks_[0] - peaks_[1]) /
                                                       static_cast<std::int64_t>(layer_count_);
    }
    for (std::size_t number = 0; number < most; ++number) {
      std::int64_t before_last = 0;
      for (std::size_t i = 0; i + 1 < layer_count_; ++i)
        before_last += options_[i][std::min(number, options_[i].size() - 1)].kept_bytes;
      for (std::vector<LayerOption>& own : options_) {
        if (number < own.size())
          own[number].working_bytes = std::max<std::int64_t>(0, peaks_[number] - before_last);
      }
    }
  }

  Answers all_at(std::size_t number) const {
    Answers answers(layer_count_, 0);
    for (std::size_t i = 0; i < layer_count_; ++i) {
      const std::size_t count = choices_[i].answers.size();
      answers[i] = count == 0 ? 0 : std::min(number, count - 1);
    }
    return answers;
  }

  /// The cheapest answers whose plan fits: where a plan takes more than the estimate, less is asked for.
  std::optional<Answers> cheapest_within(std::uint64_t limit) {
    constexpr int kMostTries = 6;
    const std::uint64_t besides = all_kept_->needed_bytes - all_kept_->predicted_peak_bytes;
    std::int64_t asked = static_cast<std::int64_t>(limit) - static_cast<std::int64_t>(besides);
    for (int tried = 0; tried < kMostTries; ++tried) {
      std::optional<Answers> answers = cheapest_options(options_, asked);
      if (!answers) break;
      const std::uint64_t needed = planned(*answers).needed_bytes;
      if (needed <= limit) return answers;
      asked -= static_cast<std::int64_t>(needed - limit);
    }
    return std::nullopt;
  }
  /// The answers of the lowest peak, if they fit: those that are estimated to have it, or one number for all.
  std::optional<Answers> smallest_within(std::uint64_t limit) {
    Answers smallest = smallest_options(options_);
    if (planned(smallest).needed_bytes <= limit) return smallest;
    for (std::size_t number = 1; number < peaks_.size(); ++number) {
      if (planned(all_at(number)).needed_bytes <= limit) return all_at(number);
    }
    return std::nullopt;
  }
  /// Keeps more of a layer as long as the plan fits, from the last one on: at the peak, in its backward pass,
  /// its values are alive whether they were kept or not.
  void keep_more(Answers& answers, std::uint64_t limit) {
    for (std::size_t layer = layer_count_; layer-- > 0;) {
      const std::size_t before = answers[layer];
      while (answers[layer] > 0) {
        --answers[layer];
        if (planned(answers).needed_bytes <= limit) continue;
        ++answers[layer];
        break;
      }
      if (answers[layer] == before && before > 0) return;
    }
  }

  std::vector<LayerValue> values_with(const Answers& answers) const {
    std::vector<LayerValue> values;
    for (std::size_t i = 0; i < layer_count_; ++i) {
      if (answers[i] == 0) continue;
      const std::vector<bool>& kept = choices_[i].answers[answers[i]].kept;
      for (std::size_t k = 0; k < kept.size(); ++k) {
        const KeepCost& cost = choices_[i].costs[k];
        if (!cost.is_needed) continue;
        values.push_back({.layer = static_cast<std::int64_t>(i),
                          .value = choices_[i].names[k],
                          .bytes = cost.bytes,
                          .fate = kept[k]            ? Fate::kept
                                  : cost.may_be_kept ? Fate::recomputed
                                                     : Fate::forced});
      }
    }
    return values;
  }

  /// The step with these answers, which the model has then. Answers that were planned already are not again.
  MemoryChoice planned(const Answers& answers) {
    double again = 0, all = 0;
    Layers layers(layer_count_);
    for (std::size_t i = 0; i < layer_count_; ++i) {
      const std::vector<KeepAnswer>& own = choices_[i].answers;
      if (own.empty()) continue;
      all += own.back().seconds;
      if (answers[i] == 0) continue;
      again += own[answers[i]].seconds;
      layers[i] = keep_at(own[answers[i]].kept);
    }
    const auto checkpointed = std::ranges::count_if(answers, [](std::size_t answer) { return answer > 0; });
    const double recomputed = all > 0 ? again / all : 0;
    if (const auto known = planned_.find(answers); known != planned_.end()) {
      model_.set_checkpointing(std::move(layers));
      return known->second;
    }
    MemoryChoice choice = planned(std::move(layers), checkpointed, recomputed);
    least_ = std::min(least_, choice.needed_bytes);
    planned_.emplace(answers, choice);
    return choice;
  }

  MemoryChoice planned(Layers layers, std::int64_t checkpointed, double recomputed) {
    model_.set_checkpointing(std::move(layers));
    std::uint64_t peak = 0, ends = 0;
    for (const StepGraph& build : step_) {
      const StepEvaluation evaluation = build();
      MemoryForecast forecast = forecast_memory(evaluation.outputs);
      forecast.held_bytes += evaluation.awaited_bytes;
      held_bytes_ = forecast.held_bytes;
      // All evaluations have one block for their intermediates, as large as any needs. Within a limit it
      // would go where the results had no room beside it: then this is too much, by these at most.
      forecast.arena_bytes = std::max(forecast.arena_bytes, bounds_.besides.arena_bytes);
      MemoryForecast besides = bounds_.besides;
      besides.arena_bytes = forecast.arena_bytes;
      peak = std::max({peak, forecast.peak_bytes(), besides.peak_bytes()});
      // With that of the intermediates' block.
      ends = std::max<std::uint64_t>(ends, kMostEnd * (evaluation.outputs.size() + 1));
    }
    return {.checkpointed_layers = checkpointed,
            .layers = static_cast<std::int64_t>(layer_count_),
            .recomputed = recomputed,
            .predicted_peak_bytes = peak,
            .needed_bytes = peak + bounds_.own + ends};
  }

  CausalLM& model_;
  std::span<const StepGraph> step_;
  MemoryBounds bounds_;
  std::size_t layer_count_;
  std::optional<MemoryChoice> all_kept_;
  std::map<Answers, MemoryChoice> planned_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t least_ = std::numeric_limits<std::uint64_t>::max();  // of the plans made
  std::vector<std::int64_t> peaks_;  // of the plans in which all layers have an answer of one number
  std::vector<LayerChoices> choices_;
  std::vector<std::vector<LayerOption>> options_;  // of each layer, one an answer
};

}  // namespace

std::string_view to_string(Fate fate) {
  switch (fate) {
    case Fate::kept:
      return "kept";
    case Fate::recomputed:
      return "recomputed";
    case Fate::forced:
      break;
  }
  return "forced";
}

std::string to_text(const MemoryChoice& choice) {
  std::string text = fmt::format(
      "memory: {}{} predicted", format_bytes(static_cast<std::int64_t>(choice.predicted_peak_bytes)),
      choice.limit_bytes == 0 ? "" : " of " + format_bytes(static_cast<std::int64_t>(choice.limit_bytes)));
  if (choice.checkpointed_layers > 0)
    text += fmt::format(", {} of {} layers checkpointed, {:.0f} % of their forward pass again",
                        choice.checkpointed_layers, choice.layers, 100 * choice.recomputed);
  return text;
}

void checkpoint_all_layers(CausalLM& model) {
  model.set_checkpointing(Layers(static_cast<std::size_t>(model.config().num_hidden_layers), Keep()));
}

std::uint64_t bytes_of_nothing(Device device) {
  const std::uint64_t limit = device_counters(device).limit_bytes;
  set_memory_limit(device, limit > 0 ? limit : kEndlessMemory);  // gives back what nothing is in
  const DeviceCounters now = device_counters(device);
  set_memory_limit(device, limit);
  return now.reserved_bytes - now.live_bytes;
}

MemoryChoice choose_checkpointing(CausalLM& model, std::span<const StepGraph> step, Checkpointing how,
                                  const MemoryBounds& bounds) {
  const auto layers = static_cast<std::size_t>(model.config().num_hidden_layers);
  Unchanged unchanged(model);
  Search search(model, step, bounds, layers);
  MemoryChoice choice = how == Checkpointing::layer                           ? search.whole_layers()
                        : how == Checkpointing::automatic && bounds.limit > 0 ? search.within(bounds.limit)
                                                                              : search.none();
  choice.limit_bytes = bounds.limit;
  if (bounds.limit > 0 && choice.needed_bytes > bounds.limit) fail_too_low(choice.needed_bytes, bounds.limit);
  unchanged.give_up();
  return choice;
}

std::vector<MemoryRow> compare_limits(CausalLM& model, std::span<const StepGraph> step,
                                      const MemoryBounds& bounds, std::span<const double> shares,
                                      std::uint64_t own_limit) {
  const Unchanged unchanged(model);
  Search search(model, step, bounds, static_cast<std::size_t>(model.config().num_hidden_layers));
  std::vector<MemoryRow> rows;
  rows.push_back({.choice = search.within(kEndlessMemory)});
  std::vector<std::uint64_t> limits;
  limits.reserve(shares.size() + 1);
  for (const double share : shares)
    limits.push_back(
        static_cast<std::uint64_t>(share * static_cast<double>(rows.front().choice->needed_bytes)));
  if (own_limit > 0) limits.push_back(own_limit);
  for (const std::uint64_t limit : limits) {
    MemoryRow row{.limit_bytes = limit};
    try {
      row.choice = search.within(limit);
      row.choice->limit_bytes = limit;
    } catch (const MemoryLimitTooLow& error) {
      row.least_bytes = error.least_bytes;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace caldera
