#include "lm/generate/sampling/penalties.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lm/generate/sampling/logit_rows.h"

namespace caldera {
namespace {

bool is_of(std::int32_t id, std::span<const float> logits) {
  return id >= 0 && static_cast<std::size_t>(id) < logits.size();
}

/// What is left of a finite logit is finite, however large a penalty is: else it could not be told from what
/// damaged weights give. What was not finite stays so.
float penalised(float logit, double result) {
  constexpr double kMost = 1e30;  // temperatures divide it
  return static_cast<float>(std::isfinite(logit) ? std::clamp(result, -kMost, kMost) : result);
}

/// Calls change(logit, count) once for each id of the logits that `ids` have, with the times that they do.
template <class Change>
void for_each_distinct(std::span<float> logits, std::span<const std::int32_t> ids, const Change& change) {
  // Between calls all are 0, so that a call takes as long as there are ids.
  thread_local std::vector<std::uint32_t> counts;
  if (counts.size() < logits.size()) counts.resize(logits.size());
  for (const std::int32_t id : ids)
    if (is_of(id, logits)) ++counts[static_cast<std::size_t>(id)];
  for (const std::int32_t id : ids) {
    if (!is_of(id, logits)) continue;
    const auto at = static_cast<std::size_t>(id);
    if (counts[at] > 0) change(logits[at], std::exchange(counts[at], 0));
  }
}

}  // namespace

void apply_repetition_penalty(std::span<float> logits, std::span<const std::int32_t> seen, double penalty) {
  if (penalty == 1) return;
  for_each_distinct(logits, seen, [&](float& logit, std::uint32_t) {
    logit = penalised(logit, logit > 0 ? logit / penalty : logit * penalty);
  });
}

void apply_count_penalties(std::span<float> logits, std::span<const std::int32_t> generated, double frequency,
                           double presence) {
  if (frequency == 0 && presence == 0) return;
  for_each_distinct(logits, generated, [&](float& logit, std::uint32_t count) {
    logit = penalised(logit, logit - frequency * static_cast<double>(count) - presence);
  });
}

void apply_logit_bias(std::span<float> logits, std::span<const std::pair<std::int32_t, float>> bias) {
  for (const auto& [id, number] : bias)
    if (is_of(id, logits)) {
      float& logit = logits[static_cast<std::size_t>(id)];
      const double sum = static_cast<double>(logit) + number;
      logit = std::isfinite(number) ? penalised(logit, sum) : static_cast<float>(sum);
    }
}

void apply_token_set(std::span<float> logits, TokenSet allowed) { detail::rule_out(logits, allowed); }

}  // namespace caldera
