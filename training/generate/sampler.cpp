#include "training/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "engine/tensor/error.h"
#include "ops/core/comparison.h"
#include "ops/core/selection.h"
#include "ops/reduce/extrema.h"

namespace caldera {
namespace {

void require(bool ok, const char* message) {
  if (!ok) throw ValueError(message);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// In place of an id. -inf is how a token is ruled out; NaN and +inf mean that the model computed nonsense.
constexpr std::int32_t kNoNumber = -1;
constexpr std::int32_t kAllRuledOut = -2;

std::int32_t argmax(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < kInfinity)) return checked_choice(kNoNumber);
    if (logits[i] > logits[best]) best = i;
  }
  return checked_choice(std::isfinite(logits[best]) ? static_cast<std::int32_t>(best) : kAllRuledOut);
}

}  // namespace

LazyTensor most_likely(const LazyTensor& logits) {
  const LazyTensor best = max(logits, {-1}, true);  // NaN if any is
  const LazyTensor ruled_out = where(best > -kInfinity, argmax(logits, -1, true), kAllRuledOut);
  return where(best < kInfinity, ruled_out, kNoNumber);
}

std::int32_t checked_choice(std::int32_t id) {
  require(id != kNoNumber,
          "sampling: a logit is not a number; the weights of the model or of the adapter are damaged");
  require(id != kAllRuledOut, "sampling: every token is ruled out; all logits are -infinity");
  return id;
}

void SamplingOptions::validate() const {
  require(std::isfinite(temperature) && temperature >= 0,
          "sampling: temperature must be 0 (greedy) or positive");
  require(top_k >= 0, "sampling: top-k must be 0 (off) or positive");
  require(top_p > 0 && top_p <= 1, "sampling: top-p must lie in (0, 1]");
  require(min_p >= 0 && min_p <= 1, "sampling: min-p must lie in [0, 1]");
  require(std::isfinite(repetition_penalty) && repetition_penalty > 0,
          "sampling: repetition-penalty must be positive (1 is off)");
}

void apply_repetition_penalty(std::span<float> logits, std::span<const std::int32_t> seen, double penalty) {
  if (penalty == 1) return;
  std::unordered_set<std::int32_t> done;
  for (const std::int32_t id : seen) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits.size() || !done.insert(id).second) continue;
    float& logit = logits[static_cast<std::size_t>(id)];
    logit = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
  }
}

Sampler::Sampler(const SamplingOptions& options) : options_(options), engine_(options.seed) {
  options_.validate();
}

std::int32_t Sampler::next(std::span<const float> logits, std::span<const std::int32_t> seen) {
  require(!logits.empty(), "sampling: no logits");
  if (options_.repetition_penalty != 1) {
    penalised_.assign(logits.begin(), logits.end());
    apply_repetition_penalty(penalised_, seen, options_.repetition_penalty);
    logits = penalised_;
  }
  return options_.temperature == 0 ? argmax(logits) : draw(logits);
}

std::int32_t Sampler::draw(std::span<const float> logits) {
  const auto best = static_cast<double>(logits[static_cast<std::size_t>(argmax(logits))]);
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (std::isfinite(logits[i])) candidates_.push_back({logits[i], static_cast<std::int32_t>(i)});
  ordered_ = 0;

  std::size_t kept = candidates_.size();
  if (options_.top_k > 0) {
    kept = std::min(kept, static_cast<std::size_t>(options_.top_k));
    order(kept);
  }

  probabilities_.resize(kept);
  double total = 0;
  const auto weight = [&](std::size_t i) {
    return std::exp((static_cast<double>(candidates_[i].logit) - best) / options_.temperature);
  };
  for (std::size_t i = 0; i < kept; ++i) total += weight(i);
  // From here on candidates are put in order as far as they are asked for: their weights are soon small.
  std::size_t known = 0;
  const auto probability = [&](std::size_t i) {
    for (; known <= i; ++known) {
      order(known + 1);
      probabilities_[known] = weight(known);
    }
    return probabilities_[i];
  };
  if (options_.top_p < 1) {
    double sum = 0;
    std::size_t n = 0;
    while (n < kept && sum < options_.top_p * total) sum += probability(n++);
    kept = std::max<std::size_t>(n, 1);
  }
  // Unnormalised, the best token's weight is exp(0) = 1.
  if (options_.min_p > 0) {
    std::size_t n = 1;
    while (n < kept && probability(n) >= options_.min_p) ++n;
    kept = std::min(n, kept);
  }

  if (kept < candidates_.size()) {
    total = 0;
    for (std::size_t i = 0; i < kept; ++i) total += probability(i);
  }
  double point = uniform() * total;
  for (std::size_t i = 0; i < kept; ++i) {
    point -= probability(i);
    if (point < 0) return candidates_[i].id;
  }
  return candidates_[kept - 1].id;  // rounding left a remainder
}

// Most likely first; equals in the order of their ids, so that the choice does not depend on the library's
// sort.
void Sampler::order(std::size_t count) {
  if (count <= ordered_) return;
  constexpr std::size_t kLeast = 64;
  const auto by_logit = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  count = std::min(std::max({count, 4 * ordered_, kLeast}), candidates_.size());
  const auto at = [&](std::size_t i) { return candidates_.begin() + static_cast<std::ptrdiff_t>(i); };
  if (count < candidates_.size()) std::nth_element(at(ordered_), at(count), candidates_.end(), by_logit);
  std::sort(at(ordered_), at(count), by_logit);
  ordered_ = count;
}

// std::uniform_real_distribution may differ between standard libraries; the engine may not.
double Sampler::uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

}  // namespace caldera
