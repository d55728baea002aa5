#include "engine/check/doctor/report.h"

#include <algorithm>
#include <limits>

namespace caldera::doctor {
namespace {

/// Error in units of the tolerance, for the order of checks.
double badness(const Check& check) {
  if (!check.good()) return std::numeric_limits<double>::infinity();
  return check.tolerance > 0 ? check.error / check.tolerance : 0;
}

}  // namespace

std::int64_t Report::failed() const {
  return std::count_if(checks.begin(), checks.end(), [](const Check& c) { return !c.good(); });
}

std::vector<const Check*> Report::worst(std::size_t count) const {
  std::vector<const Check*> order;
  order.reserve(checks.size());
  for (const Check& check : checks) order.push_back(&check);
  std::stable_sort(order.begin(), order.end(),
                   [](const Check* a, const Check* b) { return badness(*a) > badness(*b); });
  order.resize(std::min(order.size(), count));
  return order;
}

}  // namespace caldera::doctor
