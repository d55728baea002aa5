// Metrics: the figures that an objective reports besides its loss.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A figure that an objective reports besides its loss, summed over what the batch counts.
struct MetricSum {
  std::string name;         ///< a key of the log's lines, such as "accuracy"
  LazyTensor sum;           ///< a scalar
  std::int64_t count = -1;  ///< what the sum is over, where that is not what the objective counts
};

/// A figure of a record: a mean over what counts.
struct Metric {
  std::string name;
  double value = 0;

  bool operator==(const Metric&) const = default;
};

/// Adds metrics up over the batches of a step or a validation.
class MetricTotals {
 public:
  /// `values` are those of the sums, `count` is what the objective counts in the batch.
  void add(const std::vector<MetricSum>& sums, std::span<const double> values, std::int64_t count);
  /// The means, in the order of the sums; 0 where nothing was counted.
  std::vector<Metric> means() const;

 private:
  std::vector<Metric> totals_;
  std::vector<std::int64_t> counts_;
};

}  // namespace caldera
