#include "training/rl/envs/monitor.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "engine/base/error.h"

namespace caldera::rl {
namespace {

double mean_of_window(const std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

void Monitor::add(const VectorStep& step) {
  for (std::size_t i = 0; i < returns_.size(); ++i) {
    returns_[i] += step.rewards[i];
    ++lengths_[i];
    if (!step.ended(i)) continue;
    ++episodes_;
    for (auto [all, one] :
         {std::pair(&last_returns_, &returns_[i]), std::pair(&last_lengths_, &lengths_[i])}) {
      if (all->size() == kWindow) all->erase(all->begin());
      all->push_back(*one);
      *one = 0;
    }
  }
}

double Monitor::mean_return() const { return mean_of_window(last_returns_); }
double Monitor::mean_length() const { return mean_of_window(last_lengths_); }

std::vector<double> Monitor::state() const {
  std::vector<double> state{static_cast<double>(episodes_), static_cast<double>(last_returns_.size())};
  for (const std::vector<double>* part : {&returns_, &lengths_, &last_returns_, &last_lengths_})
    state.insert(state.end(), part->begin(), part->end());
  return state;
}

void Monitor::set_state(const std::vector<double>& state) {
  const double window = state.size() < 2 ? -1 : state[1];
  if (!(window >= 0 && window <= static_cast<double>(kWindow)) ||
      state.size() != 2 + 2 * returns_.size() + 2 * static_cast<std::size_t>(window))
    throw ShapeError("Monitor: this is the state of another number of environments");
  episodes_ = static_cast<std::int64_t>(state[0]);
  last_returns_.resize(static_cast<std::size_t>(window));
  last_lengths_.resize(last_returns_.size());
  auto at = state.begin() + 2;
  for (std::vector<double>* part : {&returns_, &lengths_, &last_returns_, &last_lengths_}) {
    std::copy_n(at, part->size(), part->begin());
    at += static_cast<std::ptrdiff_t>(part->size());
  }
}

}  // namespace caldera::rl
