#include "training/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "engine/tensor/error.h"

namespace caldera {
namespace {

void require(bool ok, const char* message) {
  if (!ok) throw ValueError(message);
}

std::int32_t argmax(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    // -inf is how a token is ruled out; NaN and +inf mean that the model computed nonsense.
    require(logits[i] < std::numeric_limits<float>::infinity(),
            "sampling: a logit is not a number; the weights of the model or of the adapter are damaged");
    if (logits[i] > logits[best]) best = i;
  }
  require(std::isfinite(logits[best]), "sampling: every token is ruled out; all logits are -infinity");
  return static_cast<std::int32_t>(best);
}

}  // namespace

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
  // Most likely first; equals in the order of their ids, so that the choice does not depend on the library's
  // sort.
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });

  std::size_t kept = candidates_.size();
  if (options_.top_k > 0) kept = std::min(kept, static_cast<std::size_t>(options_.top_k));

  probabilities_.resize(kept);
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    probabilities_[i] = std::exp((static_cast<double>(candidates_[i].logit) - best) / options_.temperature);
    total += probabilities_[i];
  }
  if (options_.top_p < 1) {
    double sum = 0;
    std::size_t n = 0;
    while (n < kept && sum < options_.top_p * total) sum += probabilities_[n++];
    kept = std::max<std::size_t>(n, 1);
  }
  // Unnormalised, the best token's weight is exp(0) = 1.
  while (kept > 1 && probabilities_[kept - 1] < options_.min_p) --kept;

  total = 0;
  for (std::size_t i = 0; i < kept; ++i) total += probabilities_[i];
  double point = uniform() * total;
  for (std::size_t i = 0; i < kept; ++i) {
    point -= probabilities_[i];
    if (point < 0) return candidates_[i].id;
  }
  return candidates_[kept - 1].id;  // rounding left a remainder
}

// std::uniform_real_distribution may differ between standard libraries; the engine may not.
double Sampler::uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

}  // namespace caldera
