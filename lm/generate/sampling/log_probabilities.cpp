#include "lm/generate/sampling/log_probabilities.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "lm/generate/sampling/ranked_logits.h"

namespace caldera {

TokenReport report_token(std::span<const float> logits, std::int32_t id, std::size_t top) {
  if (logits.empty()) throw ValueError("log-probabilities: no logits");
  if (id < 0 || static_cast<std::size_t>(id) >= logits.size())
    throw ValueError("log-probabilities: the token lies outside of the logits");
  const detail::LogitEnds ends = detail::ends_of(logits);
  if (!ends.sound || !std::isfinite(ends.most))
    throw ValueError("log-probabilities: no logit is finite, or one is not a number");
  thread_local detail::RankedLogits ranked;
  ranked.take(logits, ends, 1);
  const double scale = static_cast<double>(ends.most) + std::log(ranked.all().sum);
  const auto at = [&](std::int32_t i) {
    return TokenLogProbability{i, static_cast<double>(logits[static_cast<std::size_t>(i)]) - scale};
  };

  TokenReport report{at(id), {}};
  top = std::min(top, logits.size());
  for (const detail::RankedToken& token : ranked.list(ranked.first(top))) report.top.push_back(at(token.id));
  // What is ruled out comes last.
  for (std::size_t i = 0; i < logits.size() && report.top.size() < top; ++i)
    if (!std::isfinite(logits[i])) report.top.push_back(at(static_cast<std::int32_t>(i)));
  return report;
}

}  // namespace caldera
