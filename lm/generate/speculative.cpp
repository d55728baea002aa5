#include "lm/generate/speculative.h"

#include <algorithm>
#include <unordered_map>

namespace caldera {
namespace {

double probability_of(std::int32_t id, std::span<const TokenProbability> distribution) {
  const auto found = std::find_if(distribution.begin(), distribution.end(),
                                  [&](const TokenProbability& token) { return token.id == id; });
  return found == distribution.end() ? 0 : found->probability;
}

}  // namespace

bool accepts(std::int32_t guess, std::span<const TokenProbability> p, std::span<const TokenProbability> q,
             Sampler& sampler) {
  return sampler.uniform() * probability_of(guess, q) < probability_of(guess, p);
}

std::int32_t draw_from(std::span<const TokenProbability> distribution, Sampler& sampler) {
  double total = 0;
  for (const TokenProbability& token : distribution) total += token.probability;
  double point = sampler.uniform() * total;
  for (const TokenProbability& token : distribution) {
    point -= token.probability;
    if (point < 0) return token.id;
  }
  return distribution.back().id;  // rounding left a remainder
}

std::vector<TokenProbability> residual(std::span<const TokenProbability> p,
                                       std::span<const TokenProbability> q) {
  std::unordered_map<std::int32_t, double> taken;
  for (const TokenProbability& token : q) taken[token.id] = token.probability;
  std::vector<TokenProbability> left;
  for (const TokenProbability& token : p) {
    const auto found = taken.find(token.id);
    const double rest = token.probability - (found == taken.end() ? 0 : found->second);
    if (rest > 0) left.push_back({token.id, rest});
  }
  if (left.empty()) left.assign(p.begin(), p.end());
  return left;
}

}  // namespace caldera
