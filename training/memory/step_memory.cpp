#include "training/memory/step_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/autodiff/keep_problem.h"
#include "engine/base/byte_size.h"
#include "engine/base/error.h"
#include "engine/runtime/memory_forecast.h"

namespace caldera {
namespace {

using Layers = std::vector<std::optional<Keep>>;

/// What a layer may keep, from the most to nothing.
struct LayerChoices {
  std::vector<KeepCost> costs;
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
    layers[i] = Keep([&costs = choices[i].costs](std::span<const InnerValue> values) {
      costs = keep_costs(values);
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
    MemoryChoice free = none();
    if (free.predicted_peak_bytes <= limit) return free;
    choices_ = read_choices(model_, step_.front(), layer_count_);
    savings_ = ordered_savings(choices_);
    std::size_t too_few = 0, enough = savings_.size();
    MemoryChoice best = with(enough);
    if (best.predicted_peak_bytes > limit) {
      model_.set_checkpointing({});
      throw OutOfMemoryError(fmt::format(
          "a training step takes at least {}, of which {} are there before it: more than the limit of {}; "
          "lower the batch size or the sequence length, or raise the limit",
          format_bytes(static_cast<std::int64_t>(
              bounds_.own + std::min(best.predicted_peak_bytes, free.predicted_peak_bytes))),
          format_bytes(static_cast<std::int64_t>(bounds_.own + held_bytes_)),
          format_bytes(static_cast<std::int64_t>(bounds_.limit))));
    }
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
    return with(enough);
  }

 private:
  MemoryChoice with(std::size_t savings) {
    std::vector<std::size_t> answers(layer_count_, 0);
    for (std::size_t k = 0; k < savings; ++k) answers[savings_[k].layer] = savings_[k].answer;
    Layers layers(layer_count_);
    std::int64_t checkpointed = 0;
    double again = 0, all = 0;
    for (std::size_t i = 0; i < layer_count_; ++i) {
      const std::vector<KeepAnswer>& own = choices_[i].answers;
      if (own.empty()) continue;
      all += own.back().seconds;
      if (answers[i] == 0) continue;
      ++checkpointed;
      again += own[answers[i]].seconds;
      layers[i] = keep_at(own[answers[i]].kept);
    }
    return planned(std::move(layers), checkpointed, all > 0 ? again / all : 0);
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
  Search search(model, step, bounds, layers);
  MemoryChoice choice = how == Checkpointing::layer                           ? search.whole_layers()
                        : how == Checkpointing::automatic && bounds.limit > 0 ? search.within()
                                                                              : search.none();
  choice.limit_bytes = bounds.limit;
  return choice;
}

}  // namespace caldera
