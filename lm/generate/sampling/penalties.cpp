#include "lm/generate/sampling/penalties.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

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

}  // namespace

void apply_repetition_penalty(std::span<float> logits, std::span<const std::int32_t> seen, double penalty) {
  if (penalty == 1) return;
  std::unordered_set<std::int32_t> done;
  for (const std::int32_t id : seen) {
    if (!is_of(id, logits) || !done.insert(id).second) continue;
    float& logit = logits[static_cast<std::size_t>(id)];
    logit = penalised(logit, logit > 0 ? logit / penalty : logit * penalty);
  }
}

void apply_count_penalties(std::span<float> logits, std::span<const std::int32_t> generated, double frequency,
                           double presence) {
  if (frequency == 0 && presence == 0) return;
  std::unordered_map<std::int32_t, std::int64_t> counts;
  for (const std::int32_t id : generated)
    if (is_of(id, logits)) ++counts[id];
  for (const auto& [id, count] : counts) {
    float& logit = logits[static_cast<std::size_t>(id)];
    logit = penalised(logit, logit - frequency * static_cast<double>(count) - presence);
  }
}

void apply_logit_bias(std::span<float> logits, std::span<const std::pair<std::int32_t, float>> bias) {
  for (const auto& [id, number] : bias)
    if (is_of(id, logits)) {
      float& logit = logits[static_cast<std::size_t>(id)];
      const double sum = static_cast<double>(logit) + number;
      logit = std::isfinite(number) ? penalised(logit, sum) : static_cast<float>(sum);
    }
}

void apply_token_set(std::span<float> logits, TokenSet allowed) {
  constexpr float kRuledOut = -std::numeric_limits<float>::infinity();
  for (std::size_t begin = 0; begin < logits.size(); begin += 64) {
    const std::uint64_t word = begin / 64 < allowed.size() ? allowed[begin / 64] : 0;
    if (~word == 0) continue;
    const std::size_t end = std::min(begin + 64, logits.size());
    for (std::size_t i = begin; i < end; ++i)
      if (((word >> (i - begin)) & 1U) == 0) logits[i] = kRuledOut;
  }
}

}  // namespace caldera
