#include "training/objectives/metric.h"

namespace caldera {

void MetricTotals::add(const std::vector<MetricSum>& sums, std::span<const double> values,
                       std::int64_t count) {
  if (totals_.empty()) {
    for (const MetricSum& sum : sums) totals_.push_back({sum.name, 0});
    counts_.assign(sums.size(), 0);
  }
  for (std::size_t i = 0; i < totals_.size(); ++i) {
    totals_[i].value += values[i];
    counts_[i] += sums[i].count < 0 ? count : sums[i].count;
  }
}

std::vector<Metric> MetricTotals::means() const {
  std::vector<Metric> means = totals_;
  for (std::size_t i = 0; i < means.size(); ++i)
    means[i].value = counts_[i] == 0 ? 0 : means[i].value / static_cast<double>(counts_[i]);
  return means;
}

}  // namespace caldera
