#include "training/rl/envs/running_moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace caldera::rl {

RunningMoments::RunningMoments(std::vector<double> mean, std::vector<double> variance, double count)
    : mean_(std::move(mean)), variance_(std::move(variance)), count_(count) {
  if (mean_.size() != variance_.size())
    throw ShapeError(
        fmt::format("RunningMoments: {} means and {} variances", mean_.size(), variance_.size()));
}

void RunningMoments::add(std::span<const double> rows) {
  if (mean_.empty() || rows.size() % mean_.size() != 0)
    throw ShapeError(fmt::format("RunningMoments: {} numbers are no rows of {}", rows.size(), mean_.size()));
  const std::size_t count = rows.size() / mean_.size();
  const auto n = static_cast<double>(count);
  if (n == 0) return;
  const double total = count_ + n;
  for (std::size_t k = 0; k < mean_.size(); ++k) {
    double mean = 0, squares = 0;
    for (std::size_t i = k; i < rows.size(); i += mean_.size()) mean += rows[i];
    mean /= n;
    for (std::size_t i = k; i < rows.size(); i += mean_.size())
      squares += (rows[i] - mean) * (rows[i] - mean);
    const double delta = mean - mean_[k];
    const double before = count_ == 0 ? 0 : variance_[k] * count_;
    variance_[k] = (before + squares + delta * delta * count_ * n / total) / total;
    mean_[k] += delta * n / total;
  }
  count_ = total;
}

void RunningMoments::normalize(std::span<double> rows) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t k = i % mean_.size();
    rows[i] = std::clamp((rows[i] - mean_[k]) / std::sqrt(variance_[k] + 1e-8), -10.0, 10.0);
  }
}

}  // namespace caldera::rl
