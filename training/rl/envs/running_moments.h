// RunningMoments: mean and variance of rows, as they come.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace caldera::rl {

/// Keeps the mean and the variance of each number of a row, in f64, by the formula of Chan, Golub and LeVeque
/// (1979) a batch. A value type.
class RunningMoments {
 public:
  explicit RunningMoments(std::int64_t width = 0)
      : mean_(static_cast<std::size_t>(width)), variance_(static_cast<std::size_t>(width), 1.0) {}
  RunningMoments(std::vector<double> mean, std::vector<double> variance, double count);

  std::int64_t width() const { return static_cast<std::int64_t>(mean_.size()); }
  const std::vector<double>& mean() const { return mean_; }
  /// Returns the variances with n in the denominator; 1 before the first row.
  const std::vector<double>& variance() const { return variance_; }
  double count() const { return count_; }

  /// Takes rows one behind the other. Throws ShapeError for half a row.
  void add(std::span<const double> rows);
  /// Replaces x by (x - mean) / sqrt(variance + 1e-8), not beyond 10, in each row.
  void normalize(std::span<double> rows) const;

 private:
  std::vector<double> mean_, variance_;
  double count_ = 0;
};

}  // namespace caldera::rl
