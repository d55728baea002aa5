#include "lm/generate/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/error.h"
#include "lm/generate/sampling/penalties.h"
#include "ops/core/comparison.h"
#include "ops/core/selection.h"
#include "ops/reduce/extrema.h"

namespace caldera {
namespace {

void require_logits(bool ok, const char* message) {
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
  require_logits(id != kNoNumber,
                 "sampling: a logit is not a number; the weights of the model or of the adapter are damaged");
  require_logits(id != kAllRuledOut, "sampling: every token is ruled out; all logits are -infinity");
  return id;
}

Sampler::Sampler(const SamplingOptions& options) : options_(options), engine_(options.seed) {
  options_.validate();
}

std::span<const float> Sampler::changed(std::span<const float> logits, const SamplingContext& context) {
  require_logits(!logits.empty(), "sampling: no logits");
  if (options_.keeps_logits() && !context.allowed) return logits;
  changed_.assign(logits.begin(), logits.end());
  if (context.allowed) {
    // What is not allowed stays out of sight, but not a number that means that the model computed nonsense.
    argmax(logits);
    apply_token_set(changed_, *context.allowed);
  }
  apply_logit_bias(changed_, options_.logit_bias);
  apply_repetition_penalty(changed_, context.seen, options_.repetition_penalty);
  const std::size_t prompt = std::min(context.prompt_size, context.seen.size());
  apply_count_penalties(changed_, context.seen.subspan(prompt), options_.frequency_penalty,
                        options_.presence_penalty);
  return changed_;
}

std::int32_t Sampler::next(std::span<const float> logits, const SamplingContext& context) {
  logits = changed(logits, context);
  if (options_.temperature == 0) return argmax(logits);
  const double total = filter(logits);
  double point = uniform() * total;
  for (std::size_t i = 0; i < kept_; ++i) {
    point -= probability(i);
    if (point < 0) return candidates_[i].id;
  }
  return candidates_[kept_ - 1].id;  // rounding left a remainder
}

std::vector<TokenProbability> Sampler::distribution(std::span<const float> logits,
                                                    const SamplingContext& context) {
  logits = changed(logits, context);
  if (options_.temperature == 0) return {{argmax(logits), 1.0}};
  const double total = filter(logits);
  std::vector<TokenProbability> result;
  result.reserve(kept_);
  order(kept_);
  for (std::size_t i = 0; i < kept_; ++i) result.push_back({candidates_[i].id, probability(i) / total});
  return result;
}

double Sampler::probability(std::size_t i) {
  // Candidates are put in order as far as they are asked for: their probabilities are soon small.
  for (; known_ <= i; ++known_) {
    order(known_ + 1);
    const double logit = candidates_[known_].logit;
    probabilities_[known_] = std::exp((logit - best_) / options_.temperature);
  }
  return probabilities_[i];
}

// Leaves the first kept_ candidates, and returns the sum of their probabilities.
double Sampler::filter(std::span<const float> logits) {
  best_ = static_cast<double>(logits[static_cast<std::size_t>(argmax(logits))]);
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (std::isfinite(logits[i])) candidates_.push_back({logits[i], static_cast<std::int32_t>(i)});
  ordered_ = 0;
  known_ = 0;

  kept_ = candidates_.size();
  if (options_.top_k > 0) {
    kept_ = std::min(kept_, static_cast<std::size_t>(options_.top_k));
    order(kept_);
  }
  probabilities_.resize(kept_);
  double total = 0;
  for (std::size_t i = 0; i < kept_; ++i)
    total += std::exp((static_cast<double>(candidates_[i].logit) - best_) / options_.temperature);
  if (options_.top_p < 1) {
    double sum = 0;
    std::size_t n = 0;
    while (n < kept_ && sum < options_.top_p * total) sum += probability(n++);
    kept_ = std::max<std::size_t>(n, 1);
  }
  // Unnormalised, the best token's probability is exp(0) = 1.
  if (options_.min_p > 0) {
    std::size_t n = 1;
    while (n < kept_ && probability(n) >= options_.min_p) ++n;
    kept_ = std::min(n, kept_);
  }
  if (options_.typical_p < 1) return keep_typical();
  if (kept_ == candidates_.size()) return total;
  total = 0;
  for (std::size_t i = 0; i < kept_; ++i) total += probability(i);
  return total;
}

// Leaves those whose information is nearest to the entropy, still the most likely first.
double Sampler::keep_typical() {
  order(kept_);
  double total = 0;
  for (std::size_t i = 0; i < kept_; ++i) total += probability(i);
  double entropy = 0;
  for (std::size_t i = 0; i < kept_; ++i) {
    const double p = probabilities_[i] / total;
    if (p > 0) entropy -= p * std::log(p);
  }
  const auto distance = [&](std::size_t i) {
    return std::abs(-std::log(probabilities_[i] / total) - entropy);
  };
  std::vector<std::pair<double, std::size_t>> nearest;
  for (std::size_t i = 0; i < kept_; ++i) nearest.emplace_back(distance(i), i);
  std::sort(nearest.begin(), nearest.end());
  double sum = 0;
  std::size_t n = 0;
  while (n < nearest.size() && sum < options_.typical_p * total) sum += probabilities_[nearest[n++].second];
  nearest.resize(std::max<std::size_t>(n, 1));
  std::sort(nearest.begin(), nearest.end(), [](const auto& a, const auto& b) { return a.second < b.second; });

  sum = 0;
  for (std::size_t to = 0; to < nearest.size(); ++to) {
    const std::size_t from = nearest[to].second;
    candidates_[to] = candidates_[from];
    probabilities_[to] = probabilities_[from];
    sum += probabilities_[to];
  }
  kept_ = nearest.size();
  known_ = kept_;
  candidates_.resize(kept_);
  ordered_ = kept_;
  return sum;
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
