#include "ops/distributions/normal.h"

#include <cmath>
#include <numbers>

#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/core/sum.h"
#include "ops/core/type_info.h"
#include "ops/distributions/parameters.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/nn/activations.h"
#include "ops/random/uniform_normal.h"

namespace caldera {
namespace {

const double kHalfLogTwoPi = 0.5 * std::log(2 * std::numbers::pi);

LazyTensor standard_noise(const LazyTensor& like, std::uint64_t seed) {
  return random_normal(like.shape(), seed, like.dtype(), like.device());
}

}  // namespace

Normal::Normal(LazyTensor mean, LazyTensor std) : mean_(std::move(mean)), std_(std::move(std)) {
  ops::check_floating("Normal", "mean", mean_);
  ops::check_floating("Normal", "std", std_);
  ops::share_shape("Normal", mean_, std_);
}

LazyTensor Normal::log_prob(const LazyTensor& value) const {
  return square((value - mean_) / std_) * -0.5 - log(std_) - kHalfLogTwoPi;
}

LazyTensor Normal::entropy() const { return log(std_) + (0.5 + kHalfLogTwoPi); }

LazyTensor Normal::cdf(const LazyTensor& value) const {
  return erfc((mean_ - value) / std_ * (1 / std::numbers::sqrt2)) * 0.5;
}

LazyTensor Normal::rsample(std::uint64_t seed) const { return rsample(standard_noise(mean_, seed)); }
LazyTensor Normal::rsample(const LazyTensor& noise) const { return mean_ + std_ * noise; }
LazyTensor Normal::sample(std::uint64_t seed) const { return stop_gradient(rsample(seed)); }

LazyTensor kl_divergence(const Normal& p, const Normal& q) {
  const LazyTensor ratio = p.std() / q.std(), shift = (p.mean() - q.mean()) / q.std();
  return (square(ratio) + square(shift) - 1) * 0.5 - log(ratio);
}

DiagonalNormal::DiagonalNormal(LazyTensor mean, LazyTensor log_std)
    : mean_(std::move(mean)), log_std_(std::move(log_std)) {
  ops::check_floating("DiagonalNormal", "mean", mean_);
  ops::check_floating("DiagonalNormal", "log_std", log_std_);
  ops::share_shape("DiagonalNormal", mean_, log_std_);
  if (mean_.rank() == 0) throw ShapeError("DiagonalNormal: a vector has an axis; use Normal for numbers");
}

LazyTensor DiagonalNormal::std() const { return exp(log_std_); }

LazyTensor DiagonalNormal::log_prob(const LazyTensor& value) const {
  return sum(square((value - mean_) * exp(-log_std_)) * -0.5 - log_std_ - kHalfLogTwoPi, -1);
}

LazyTensor DiagonalNormal::entropy() const { return sum(log_std_ + (0.5 + kHalfLogTwoPi), -1); }

LazyTensor DiagonalNormal::rsample(std::uint64_t seed) const { return rsample(standard_noise(mean_, seed)); }
LazyTensor DiagonalNormal::rsample(const LazyTensor& noise) const { return mean_ + std() * noise; }
LazyTensor DiagonalNormal::sample(std::uint64_t seed) const { return stop_gradient(rsample(seed)); }

LazyTensor kl_divergence(const DiagonalNormal& p, const DiagonalNormal& q) {
  const LazyTensor narrower = p.log_std() - q.log_std();
  const LazyTensor shift = (p.mean() - q.mean()) * exp(-q.log_std());
  return sum((exp(narrower * 2.0) + square(shift) - 1) * 0.5 - narrower, -1);
}

LazyTensor TanhNormal::mode() const { return tanh(inner_.mean()); }

LazyTensor TanhNormal::log_prob(const LazyTensor& value) const {
  const double largest = 1 - finfo(inner_.mean().dtype()).eps / 2;
  return log_prob_before(atanh(clip(value, LazyTensor(-largest), LazyTensor(largest))));
}

LazyTensor TanhNormal::log_prob_before(const LazyTensor& before) const {
  const LazyTensor slope = (std::numbers::ln2 - before - softplus(before * -2.0)) * 2.0;
  return inner_.log_prob(before) - sum(slope, -1);
}

Squashed TanhNormal::rsample(std::uint64_t seed) const {
  return rsample(standard_noise(inner_.mean(), seed));
}

Squashed TanhNormal::rsample(const LazyTensor& noise) const {
  const LazyTensor before = inner_.rsample(noise);
  return {tanh(before), before};
}

LazyTensor TanhNormal::sample(std::uint64_t seed) const { return stop_gradient(rsample(seed).value); }

LazyTensor kl_divergence(const TanhNormal& p, const TanhNormal& q) {
  return kl_divergence(p.inner(), q.inner());
}

}  // namespace caldera
