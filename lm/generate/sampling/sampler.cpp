#include "lm/generate/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
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

/// The ends of a row from which something can be drawn. Throws as Sampler::next.
detail::LogitEnds checked_ends(std::span<const float> logits) {
  const detail::LogitEnds ends = detail::ends_of(logits);
  if (!ends.sound) checked_choice(kNoNumber);
  if (!std::isfinite(ends.most)) checked_choice(kAllRuledOut);
  return ends;
}

std::int32_t argmax(std::span<const float> logits) {
  const float most = checked_ends(logits).most;
  return static_cast<std::int32_t>(std::find(logits.begin(), logits.end(), most) - logits.begin());
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

Sampler::Sampler(const SamplingOptions& options)
    : options_(options), engine_(options.seed), surprise_(2 * options.mirostat.tau) {
  options_.validate();
  std::ranges::sort(options_.repeats.breakers);
  if (!options_.mirostat.on) return;
  options_.top_k = 0;
  options_.top_p = options_.typical_p = 1;
  options_.min_p = options_.xtc_probability = 0;
}

std::span<const float> Sampler::changed(std::span<const float> logits, const SamplingContext& context) {
  require_logits(!logits.empty(), "sampling: no logits");
  if (options_.keeps_logits() && !context.allowed && context.avoided.empty()) return logits;
  changed_.assign(logits.begin(), logits.end());
  if (context.allowed) {
    // What is not allowed stays out of sight, but not a number that means that the model computed nonsense.
    checked_ends(logits);
    apply_token_set(changed_, *context.allowed);
  }
  apply_logit_bias(changed_, options_.logit_bias);
  apply_repetition_penalty(changed_, context.seen, options_.repetition_penalty);
  const std::size_t prompt = std::min(context.prompt_size, context.seen.size());
  apply_count_penalties(changed_, context.seen.subspan(prompt), options_.frequency_penalty,
                        options_.presence_penalty);
  apply_repeat_penalty(changed_, context.seen, options_.repeats);
  apply_least_length(changed_, context.avoided);
  return changed_;
}

std::int32_t Sampler::next(std::span<const float> logits, const SamplingContext& context) {
  logits = changed(logits, context);
  if (options_.temperature == 0) return argmax(logits);
  if (options_.typical_p < 1 && options_.xtc_probability > 0) {
    // What is left is no beginning of the order: it is listed.
    double point = uniform();
    const std::vector<TokenProbability> tokens = left(logits);
    for (const TokenProbability& token : tokens)
      if ((point -= token.probability) < 0) return token.id;
    return tokens.back().id;
  }
  const Cut cut = filter(logits);
  if (options_.typical_p == 1) {
    const bool excludes = options_.xtc_probability > 0 && uniform() < options_.xtc_probability;
    const Cut excluded = excludes ? ranked_.first(top_choices(cut)) : Cut{};
    const detail::RankedToken token = ranked_.at(uniform() * (cut.sum - excluded.sum), cut, excluded.count);
    if (options_.mirostat.on) follow(ranked_.weight(token.logit) / cut.sum);
    return token.id;
  }
  const detail::RankedLogits::Typical kept = ranked_.typical(options_.typical_p, cut);
  return ranked_.at(uniform() * kept.sum, kept).id;
}

std::vector<TokenProbability> Sampler::distribution(std::span<const float> logits,
                                                    const SamplingContext& context) {
  logits = changed(logits, context);
  if (options_.temperature == 0) return {{argmax(logits), 1.0}};
  return left(logits);
}

/// The tokens that the filters leave and their probabilities; those of XTC with and without it, mixed.
std::vector<TokenProbability> Sampler::left(std::span<const float> logits) {
  const Cut cut = filter(logits);
  std::vector<TokenProbability> tokens;
  double total = 0;
  for (const detail::RankedToken& token :
       options_.typical_p < 1 ? ranked_.list(ranked_.typical(options_.typical_p, cut)) : ranked_.list(cut)) {
    tokens.push_back({token.id, ranked_.weight(token.logit)});
    total += tokens.back().probability;
  }
  for (TokenProbability& token : tokens) token.probability /= total;
  if (options_.xtc_probability == 0) return tokens;
  std::size_t excluded = 0;
  while (excluded + 1 < tokens.size() && tokens[excluded + 1].probability >= options_.xtc_threshold)
    ++excluded;
  double rest = 0;
  for (std::size_t i = excluded; i < tokens.size(); ++i) rest += tokens[i].probability;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const double without = i < excluded ? 0 : 1 / rest;
    tokens[i].probability *= 1 - options_.xtc_probability + options_.xtc_probability * without;
  }
  std::erase_if(tokens, [](const TokenProbability& token) { return token.probability <= 0; });
  std::ranges::stable_sort(tokens, std::greater<>(), &TokenProbability::probability);
  return tokens;
}

/// Counts the most likely tokens that XTC leaves out.
std::size_t Sampler::top_choices(const Cut& cut) {
  const double weight = options_.xtc_threshold * cut.sum;
  if (weight > 1) return 0;  // the best has 1
  const std::size_t count = ranked_.above(weight, cut).count;
  return std::max<std::size_t>(count, 1) - 1;
}

// Leaves as many of the most likely as the filters do that go by likelihood alone.
Sampler::Cut Sampler::filter(std::span<const float> logits) {
  ranked_.take(logits, checked_ends(logits), options_.temperature, options_.typical_p < 1);
  Cut cut = ranked_.all();
  if (options_.top_k > 0) cut = ranked_.first(static_cast<std::size_t>(options_.top_k));
  if (options_.top_p < 1) cut = ranked_.reaching(options_.top_p * cut.sum, cut);
  if (options_.min_p > 0) cut = ranked_.above(options_.min_p, cut);
  if (options_.mirostat.on) {
    const double weight = cut.sum * std::exp2(-surprise_);
    cut = weight > 1 ? ranked_.first(1) : ranked_.above(weight, cut);  // the best has 1
  }
  return cut;
}

void Sampler::chose(std::int32_t id, std::span<const TokenProbability> among) {
  if (!options_.mirostat.on || options_.temperature == 0) return;
  const auto found = std::ranges::find(among, id, &TokenProbability::id);
  if (found != among.end()) follow(found->probability);
}

/// Moves mu behind a token that had this probability among those that were kept.
void Sampler::follow(double probability) {
  surprise_ -= options_.mirostat.eta * (-std::log2(probability) - options_.mirostat.tau);
}

// std::uniform_real_distribution may differ between standard libraries; the engine may not.
double Sampler::uniform() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

}  // namespace caldera
