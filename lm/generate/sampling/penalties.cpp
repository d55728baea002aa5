#include "lm/generate/sampling/penalties.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
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

void apply_repeat_penalty(std::span<float> logits, std::span<const std::int32_t> seen,
                          const RepeatPenalty& penalty) {
  constexpr std::size_t kLongest = 50;
  if (penalty.multiplier == 0) return;
  if (penalty.last >= 0) seen = seen.last(std::min(static_cast<std::size_t>(penalty.last), seen.size()));
  const auto breaks = [&](std::int32_t id) {
    return std::binary_search(penalty.breakers.begin(), penalty.breakers.end(), id);
  };
  const std::size_t size = seen.size();
  const auto back = [&](std::size_t i) { return seen[size - 1 - i]; };  // the i-th from the end
  std::size_t most = 0;                                                 // a repetition has no breaker within
  while (most < std::min(size, kLongest) && !breaks(back(most))) ++most;
  if (most == 0) return;
  // lengths[i]: how many tokens in front of the i-th from the end, and it, are those of the text's end. By
  // the Z-algorithm: from left to right, what was matched tells what matches within.
  std::vector<std::size_t> lengths(size);
  std::unordered_map<std::int32_t, std::size_t> longest;
  for (std::size_t i = 1, begin = 0, end = 0; i < size; ++i) {
    std::size_t length = i < end ? std::min(end - i, lengths[i - begin]) : 0;
    while (i + length < size && back(length) == back(i + length)) ++length;
    lengths[i] = length;
    if (i + length > end) {
      begin = i;
      end = i + length;
    }
    length = std::min(length, most);
    if (length < static_cast<std::size_t>(penalty.allowed_length)) continue;
    std::size_t& known = longest[back(i - 1)];
    known = std::max(known, length);
  }
  for (const auto& [id, length] : longest) {
    if (!is_of(id, logits) || breaks(id)) continue;
    const double exponent = static_cast<double>(length) - static_cast<double>(penalty.allowed_length);
    float& logit = logits[static_cast<std::size_t>(id)];
    logit = penalised(logit, logit - penalty.multiplier * std::pow(penalty.base, exponent));
  }
}

void apply_least_length(std::span<float> logits, std::span<const std::int32_t> ends) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  std::vector<std::pair<std::size_t, float>> before;
  for (const std::int32_t id : ends)
    if (is_of(id, logits))
      before.emplace_back(id, std::exchange(logits[static_cast<std::size_t>(id)], kNever));
  if (before.empty() || detail::ends_of(logits).most != kNever) return;
  // The last entry of an id that is there twice is what stands there already.
  for (auto it = before.rbegin(); it != before.rend(); ++it) logits[it->first] = it->second;
}

void apply_token_set(std::span<float> logits, TokenSet allowed) { detail::rule_out(logits, allowed); }

}  // namespace caldera
