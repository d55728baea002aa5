#include "training/objectives/metric.h"

namespace caldera {

void add_metrics(std::vector<Metric>& totals, const std::vector<MetricSum>& sums,
                 const std::vector<double>& values, std::int64_t count) {
  if (totals.empty())
    for (const MetricSum& sum : sums) totals.push_back({sum.name, 0});
  for (std::size_t i = 0; i < totals.size(); ++i)
    totals[i].value += values.at(i) / static_cast<double>(count);
}

}  // namespace caldera
