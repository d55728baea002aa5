#include "training/memory/layer_problem.h"

#include <algorithm>
#include <limits>

namespace caldera {
namespace {

/// Kept bytes are counted in so many parts of the limit.
constexpr std::int64_t kGrains = 4096;

/// The layers so far, with some choice of their options.
struct State {
  std::int64_t bytes = 0;  // kept
  double seconds = 0;
  std::size_t before = 0;  // place of the state that it comes from
  std::size_t option = 0;  // of the last of them
};

/// Leaves out what another state beats in both bytes and seconds.
std::vector<State> best_of(std::vector<State> states) {
  std::ranges::sort(states, [](const State& a, const State& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.seconds < b.seconds;
  });
  std::vector<State> best;
  for (const State& state : states) {
    if (best.empty() || state.seconds < best.back().seconds) best.push_back(state);
  }
  return best;
}

}  // namespace

std::optional<std::vector<std::size_t>> cheapest_options(std::span<const std::vector<LayerOption>> layers,
                                                         std::int64_t bytes) {
  const std::int64_t grain = std::max<std::int64_t>(1, bytes / kGrains);
  std::vector<std::vector<State>> reached{{State{}}};
  for (const std::vector<LayerOption>& options : layers) {
    std::vector<State> states;
    const std::vector<State>& before = reached.back();
    for (std::size_t at = 0; at < before.size(); ++at) {
      for (std::size_t i = 0; i < options.size(); ++i) {
        if (before[at].bytes + options[i].working_bytes > bytes) continue;
        const std::int64_t kept = (options[i].kept_bytes + grain - 1) / grain * grain;
        states.push_back({before[at].bytes + kept, before[at].seconds + options[i].seconds, at, i});
      }
    }
    if (states.empty()) return std::nullopt;
    reached.push_back(best_of(std::move(states)));
  }
  std::vector<std::size_t> chosen(layers.size());
  std::size_t at = reached.back().size() - 1;  // the most bytes, the fewest seconds
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    const State& state = reached[layer + 1][at];
    chosen[layer] = state.option;
    at = state.before;
  }
  return chosen;
}

std::vector<std::size_t> smallest_options(std::span<const std::vector<LayerOption>> layers) {
  std::int64_t low = 0, high = 0, working = 0;
  for (const std::vector<LayerOption>& options : layers) {
    std::int64_t kept = 0;
    for (const LayerOption& option : options) {
      working = std::max(working, option.working_bytes);
      kept = std::max(kept, option.kept_bytes);
    }
    high += kept + 1;
  }
  high += high / 16 + working;  // kept bytes are rounded up
  std::vector<std::size_t> chosen = cheapest_options(layers, high).value();
  while (high - low > high / 1024 + 1 || (high - low > 1 && high < kGrains)) {
    const std::int64_t middle = low + (high - low) / 2;
    if (auto options = cheapest_options(layers, middle)) {
      chosen = std::move(*options);
      high = middle;
    } else {
      low = middle;
    }
  }
  return chosen;
}

}  // namespace caldera
