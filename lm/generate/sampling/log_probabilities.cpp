#include "lm/generate/sampling/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/error.h"

namespace caldera {

TokenReport report_token(std::span<const float> logits, std::int32_t id, std::size_t top) {
  if (logits.empty()) throw ValueError("log-probabilities: no logits");
  if (id < 0 || static_cast<std::size_t>(id) >= logits.size())
    throw ValueError("log-probabilities: the token lies outside of the logits");
  const auto best = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - best);
  const double scale = best + std::log(total);
  const auto at = [&](std::int32_t i) {
    return TokenLogProbability{i, static_cast<double>(logits[static_cast<std::size_t>(i)]) - scale};
  };

  TokenReport report{at(id), {}};
  top = std::min(top, logits.size());
  if (top == 0) return report;
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto more_likely = [&](std::int32_t a, std::int32_t b) {
    const float left = logits[static_cast<std::size_t>(a)];
    const float right = logits[static_cast<std::size_t>(b)];
    return left != right ? left > right : a < b;
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(top);
  std::partial_sort(order.begin(), end, order.end(), more_likely);
  for (auto i = order.begin(); i != end; ++i) report.top.push_back(at(*i));
  return report;
}

}  // namespace caldera
