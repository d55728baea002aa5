#include "training/memory/step_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/autodiff/checkpoint/keep_problem.h"
#include "engine/base/byte_size.h"
#include "engine/graph/node.h"
#include "engine/runtime/inspect/memory_forecast.h"

namespace caldera {
namespace {

using Layers = std::vector<std::optional<Keep>>;

/// What a layer may keep, from the most to nothing.
struct LayerChoices {
  std::vector<KeepCost> costs;
  std::vector<std::string> names;  // of the values
  std::vector<KeepAnswer> answers;
};

/// From one answer of a layer to the next.
struct Saving {
  std::size_t layer = 0;
  std::size_t answer = 0;  // that is taken
  double price = 0;        // seconds a byte
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

/// All savings in the order in which they are made.
std::vector<Saving> ordered_savings(const std::vector<LayerChoices>& choices) {
  std::vector<Saving> savings;
  for (std::size_t layer = 0; layer < choices.size(); ++layer) {
    const std::vector<KeepAnswer>& answers = choices[layer].answers;
    for (std::size_t k = 1; k < answers.size(); ++k)
      savings.push_back({.layer = layer,
                         .answer = k,
                         .price = (answers[k].seconds - answers[k - 1].seconds) /
                                  static_cast<double>(answers[k - 1].bytes - answers[k].bytes)});
  }
  std::ranges::stable_sort(savings, {}, &Saving::price);
  return savings;
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

/// The search for how many savings to make.
class Search {
 public:
  Search(CausalLM& model, std::span<const StepGraph> step, const MemoryBounds& bounds, std::size_t layers)
      : model_(model), step_(step), bounds_(bounds), layer_count_(layers) {}

  MemoryChoice none() { return planned(Layers{}, 0, 0); }
  MemoryChoice whole_layers() {
    return planned(Layers(layer_count_, Keep()), static_cast<std::int64_t>(layer_count_), 1);
  }
  MemoryChoice within() {
    const std::uint64_t limit = bounds_.limit - std::min(bounds_.limit, bounds_.own);
    MemoryChoice best = none();
    if (best.predicted_peak_bytes <= limit) return best;
    choices_ = read_choices(model_, step_.front(), layer_count_);
    savings_ = ordered_savings(choices_);
    // More savings do not always take less: what is computed again takes memory, too. So the levels are tried
    // in turn, and within the first that fits there are only equal savings, layer after layer.
    std::uint64_t least = best.predicted_peak_bytes;
    std::size_t too_few = 0;
    for (const std::size_t level : levels()) {
      best = with(level);
      if (best.predicted_peak_bytes <= limit) return fewest(too_few, level, limit, best);
      least = std::min(least, best.predicted_peak_bytes);
      too_few = level;
    }
    throw MemoryLimitTooLow(
        fmt::format(
            "a training step takes at least {}, of which {} are there before it: more than the limit of {}; "
            "lower the batch size or the sequence length, or raise the limit",
            format_bytes(static_cast<std::int64_t>(bounds_.own + least)),
            format_bytes(static_cast<std::int64_t>(bounds_.own + held_bytes_)),
            format_bytes(static_cast<std::int64_t>(bounds_.limit))),
        bounds_.own + least);
  }

 private:
  /// Numbers of savings after which the price rises; of very many, some, the last among them.
  std::vector<std::size_t> levels() const {
    constexpr std::size_t kMost = 16;
    std::vector<std::size_t> all;
    for (std::size_t k = 1; k <= savings_.size(); ++k)
      if (k == savings_.size() || savings_[k].price > savings_[k - 1].price * (1 + 1e-9)) all.push_back(k);
    const std::size_t stride = all.size() / kMost + 1;
    std::vector<std::size_t> some;
    for (std::size_t k = all.size(); k > 0; k -= std::min(k, stride)) some.push_back(all[k - 1]);
    return {some.rbegin(), some.rend()};
  }

  /// The choice with the fewest savings that fits, between a number that does not and one that does, whose
  /// choice is `best`. The model has it then.
  MemoryChoice fewest(std::size_t too_few, std::size_t enough, std::uint64_t limit, MemoryChoice best) {
    while (enough - too_few > 1) {
      const std::size_t middle = too_few + (enough - too_few) / 2;
      const MemoryChoice choice = with(middle);
      if (choice.predicted_peak_bytes <= limit) {
        enough = middle;
        best = choice;
      } else {
        too_few = middle;
      }
    }
    model_.set_checkpointing(layers_with(enough));
    best.values = values_with(enough);
    return best;
  }

  std::vector<LayerValue> values_with(std::size_t savings) const {
    const std::vector<std::size_t> answers = answers_with(savings);
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

  std::vector<std::size_t> answers_with(std::size_t savings) const {
    std::vector<std::size_t> answers(layer_count_, 0);
    for (std::size_t k = 0; k < savings; ++k) answers[savings_[k].layer] = savings_[k].answer;
    return answers;
  }

  Layers layers_with(std::size_t savings) const {
    const std::vector<std::size_t> answers = answers_with(savings);
    Layers layers(layer_count_);
    for (std::size_t i = 0; i < layer_count_; ++i)
      if (answers[i] > 0) layers[i] = keep_at(choices_[i].answers[answers[i]].kept);
    return layers;
  }

  MemoryChoice with(std::size_t savings) {
    const std::vector<std::size_t> answers = answers_with(savings);
    double again = 0, all = 0;
    for (std::size_t i = 0; i < layer_count_; ++i) {
      const std::vector<KeepAnswer>& own = choices_[i].answers;
      if (own.empty()) continue;
      all += own.back().seconds;
      if (answers[i] > 0) again += own[answers[i]].seconds;
    }
    const auto checkpointed = std::ranges::count_if(answers, [](std::size_t answer) { return answer > 0; });
    return planned(layers_with(savings), checkpointed, all > 0 ? again / all : 0);
  }

  MemoryChoice planned(Layers layers, std::int64_t checkpointed, double recomputed) {
    model_.set_checkpointing(std::move(layers));
    std::uint64_t peak = 0;
    for (const StepGraph& build : step_) {
      const MemoryForecast forecast = forecast_memory(build());
      held_bytes_ = forecast.held_bytes + bounds_.further;
      peak = std::max(peak, forecast.peak_bytes() + bounds_.further);
    }
    return {.checkpointed_layers = checkpointed,
            .layers = static_cast<std::int64_t>(layer_count_),
            .recomputed = recomputed,
            .predicted_peak_bytes = peak};
  }

  CausalLM& model_;
  std::span<const StepGraph> step_;
  MemoryBounds bounds_;
  std::size_t layer_count_;
  std::uint64_t held_bytes_ = 0;
  std::vector<LayerChoices> choices_;
  std::vector<Saving> savings_;
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

MemoryChoice choose_checkpointing(CausalLM& model, std::span<const StepGraph> step, Checkpointing how,
                                  const MemoryBounds& bounds) {
  const auto layers = static_cast<std::size_t>(model.config().num_hidden_layers);
  Unchanged unchanged(model);
  Search search(model, step, bounds, layers);
  MemoryChoice choice = how == Checkpointing::layer                           ? search.whole_layers()
                        : how == Checkpointing::automatic && bounds.limit > 0 ? search.within()
                                                                              : search.none();
  choice.limit_bytes = bounds.limit;
  unchanged.give_up();
  return choice;
}

}  // namespace caldera
