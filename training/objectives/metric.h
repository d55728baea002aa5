// Metrics: the figures that an objective reports besides its loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A figure that an objective reports besides its loss, summed over what the batch counts.
struct MetricSum {
  std::string name;  ///< a key of the log's lines, such as "accuracy"
  LazyTensor sum;    ///< a scalar
};

/// A figure of a record: a mean over what counts.
struct Metric {
  std::string name;
  double value = 0;

  bool operator==(const Metric&) const = default;
};

/// Adds values[i] / count to totals[i], with the names of `sums`. `totals` may be empty: it gets those names.
void add_metrics(std::vector<Metric>& totals, const std::vector<MetricSum>& sums,
                 const std::vector<double>& values, std::int64_t count);

}  // namespace caldera
