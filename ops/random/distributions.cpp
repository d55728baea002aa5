#include "ops/random/distributions.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/random/generator.h"
#include "ops/random/normal_quantile.h"
#include "ops/random/uniform_normal.h"
#include "ops/reduce/extrema.h"
#include "ops/sort/sorting.h"

namespace caldera {
namespace {

/// Throws naming `op`, where random_uniform would name itself.
void check_floating_sample(const char* op, const Shape& shape, DType dtype) {
  ops::check_domain(op, ScalarDomain::floating, dtype);
  ops::check_extents(op, shape, DType::i32);
}

/// Half the distance between two draws of random_uniform: added, draws are in the middle of their intervals.
constexpr double half_step(DType wide) { return wide == DType::f64 ? 0x1p-33 : 0x1p-25; }

/// Bits of one draw in f32 that are integers.
constexpr int kDrawBits = 24;

/// `count` tensors of independent integers from 0 to 2^24 - 1, i32.
std::vector<LazyTensor> integer_draws(int count, const Shape& shape, std::uint64_t seed, Device device) {
  const LazyTensor uniform = random_uniform(Shape{count, shape.numel()}, seed, DType::f32, device);
  const LazyTensor integers = astype(uniform * static_cast<double>(1 << kDrawBits), DType::i32);
  std::vector<LazyTensor> out;
  out.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) out.push_back(reshape(slice(integers, 0, i, i + 1), shape));
  return out;
}

/// floor(range * random / 2^(4 * bits)) for a random number of four limbs of `bits` bits, the least first, in
/// a type that holds products of limbs; as if integers of any length were there.
LazyTensor scaled(const std::vector<LazyTensor>& random, std::uint64_t range, int bits) {
  const std::int64_t base = std::int64_t{1} << bits;
  std::vector<std::int64_t> factor;
  for (std::uint64_t rest = range; rest > 0; rest >>= bits) {
    factor.push_back(static_cast<std::int64_t>(rest & static_cast<std::uint64_t>(base - 1)));
  }
  const std::size_t limbs = random.size();
  LazyTensor carry;
  LazyTensor out;
  std::int64_t weight = 1;
  for (std::size_t column = 0; column < limbs + factor.size(); ++column) {
    LazyTensor total = carry;
    for (std::size_t k = 0; k < factor.size(); ++k) {
      if (column < k || column - k >= limbs) continue;
      const LazyTensor part = random[column - k] * factor[k];
      total = total.defined() ? total + part : part;
    }
    carry = floor_divide(total, base);
    if (column < limbs) continue;
    if (column > limbs) weight *= base;
    const LazyTensor digit = (total - carry * base) * weight;
    out = out.defined() ? out + digit : digit;
  }
  return out;
}

/// Exponential, from both ends of the uniform distribution so that neither is rounded off.
LazyTensor exponential(const Shape& shape, std::uint64_t seed, DType wide, Device device) {
  const LazyTensor u = random_uniform(shape, seed, wide, device);
  const double half = half_step(wide);
  return where(u < 0.5, -log1p(-(u + half)), -log((1.0 - u) - half));
}

/// What a number given for a tensor is.
double value_of(const LazyTensor& number) {
  const FillValue value = ops::number_of(number);
  return value.is_integer() ? static_cast<double>(value.integer()) : value.real();
}

}  // namespace

LazyTensor random_bernoulli(const LazyTensor& p, const Shape& shape, std::uint64_t seed, DType dtype) {
  const bool is_number = p.node().is_scalar_leaf();
  if (is_number) {
    if (!(value_of(p) >= 0 && value_of(p) <= 1))
      throw ValueError(
          fmt::format("random_bernoulli: the probability {} is not between 0 and 1", value_of(p)));
  } else {
    ops::check_domain("random_bernoulli", ScalarDomain::floating, p.dtype());
  }
  ops::check_extents("random_bernoulli", shape, DType::i32);
  if (broadcast_shapes(p.shape(), shape, "random_bernoulli") != shape) {
    throw ShapeError(fmt::format("random_bernoulli: probabilities of {} do not broadcast to {}",
                                 p.shape().to_string(), shape.to_string()));
  }
  const DType wide = p.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Device device = is_number ? default_device() : p.device();
  const LazyTensor u = random_uniform(shape, seed, wide, device);
  return astype(u < ops::broadcast_operand(ops::as_operand(p, wide), shape), dtype);
}

LazyTensor random_randint(std::int64_t low, std::int64_t high, const Shape& shape, std::uint64_t seed,
                          DType dtype, Device device) {
  if (!is_integral(dtype))
    throw DTypeError(
        fmt::format("random_randint: {} is no integer type; convert with astype()", name(dtype)));
  ops::check_extents("random_randint", shape, DType::i32);
  const TypeFacts& limits = facts(dtype);
  if (low >= high || low < limits.lowest || high - 1 > limits.highest) {
    throw ValueError(fmt::format("random_randint: no {} from {} to below {}; it holds {} to {}", name(dtype),
                                 low, high, limits.lowest, limits.highest));
  }
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const bool is_long = limits.highest > std::numeric_limits<std::int32_t>::max();
  std::vector<LazyTensor> limbs;
  for (const LazyTensor& draw : integer_draws(is_long ? 4 : 2, shape, seed, device)) {
    if (is_long) {
      limbs.push_back(astype(draw, DType::i64));
    } else {
      constexpr std::int64_t kBase = 1 << (kDrawBits / 2);
      limbs.push_back(remainder(draw, kBase));
      limbs.push_back(floor_divide(draw, kBase));
    }
  }
  return astype(scaled(limbs, range, is_long ? kDrawBits : kDrawBits / 2) + low, dtype);
}
LazyTensor random_randint(std::int64_t low, std::int64_t high, const Shape& shape, std::uint64_t seed,
                          DType dtype) {
  return random_randint(low, high, shape, seed, dtype, default_device());
}

LazyTensor random_truncated_normal(double lower, double upper, const Shape& shape, std::uint64_t seed,
                                   DType dtype, Device device) {
  check_floating_sample("random_truncated_normal", shape, dtype);
  if (!(lower < upper)) {
    throw ValueError(fmt::format("random_truncated_normal: no number is between {} and {}", lower, upper));
  }
  const DType wide = compute_type(dtype);
  const double half = half_step(wide);
  const LazyTensor u = random_uniform(shape, seed, wide, device) + half;
  // The lower tail has the finer probabilities: what is above is drawn there and turned round.
  const bool turned = lower + upper > 0;
  const LazyTensor x = turned ? -ops::truncated_normal_quantile(u, half, -upper, -lower)
                              : ops::truncated_normal_quantile(u, half, lower, upper);
  // Rounding does not pass the bounds, nor that to 16 bits after it.
  const LazyTensor inside =
      minimum(maximum(x, ops::rounded_up(lower, dtype)), -ops::rounded_up(-upper, dtype));
  return astype(inside, dtype);
}
LazyTensor random_truncated_normal(double lower, double upper, const Shape& shape, std::uint64_t seed,
                                   DType dtype) {
  return random_truncated_normal(lower, upper, shape, seed, dtype, default_device());
}

LazyTensor random_exponential(const Shape& shape, std::uint64_t seed, DType dtype, Device device) {
  check_floating_sample("random_exponential", shape, dtype);
  return astype(exponential(shape, seed, compute_type(dtype), device), dtype);
}
LazyTensor random_exponential(const Shape& shape, std::uint64_t seed, DType dtype) {
  return random_exponential(shape, seed, dtype, default_device());
}

LazyTensor random_gumbel(const Shape& shape, std::uint64_t seed, DType dtype, Device device) {
  check_floating_sample("random_gumbel", shape, dtype);
  return astype(-log(exponential(shape, seed, compute_type(dtype), device)), dtype);
}
LazyTensor random_gumbel(const Shape& shape, std::uint64_t seed, DType dtype) {
  return random_gumbel(shape, seed, dtype, default_device());
}

LazyTensor random_categorical(const LazyTensor& logits, std::uint64_t seed,
                              std::optional<std::int64_t> count) {
  ops::check_domain("random_categorical", ScalarDomain::floating, logits.dtype());
  if (logits.rank() == 0 || logits.shape(-1) == 0) {
    throw ShapeError(
        fmt::format("random_categorical: logits of {} have no classes", logits.shape().to_string()));
  }
  const DType wide = compute_type(logits.dtype());
  LazyTensor scores = astype(logits, wide);
  Shape shape = logits.shape();
  if (count) {
    scores = expand_dims(scores, -2);
    shape.insert(shape.rank() - 1, *count);
    ops::check_extents("random_categorical", shape, wide);
  }
  return argmax(scores + random_gumbel(shape, seed, wide, logits.device()), -1);
}

LazyTensor random_permutation(std::int64_t n, std::uint64_t seed, Device device) {
  ops::check_extents("random_permutation", Shape{n}, DType::i32);
  // The other draw's highest 8 bits make 32 of 24.
  const std::vector<LazyTensor> draws = integer_draws(2, Shape{n}, seed, device);
  constexpr std::int64_t kMore = 1 << (32 - kDrawBits);
  const LazyTensor high = (draws[0] - (1 << (kDrawBits - 1))) * kMore;
  return argsort(high + floor_divide(draws[1], (1 << kDrawBits) / kMore));
}
LazyTensor random_permutation(std::int64_t n, std::uint64_t seed) {
  return random_permutation(n, seed, default_device());
}

// ---- with the global generator's seeds

LazyTensor random_bernoulli(const LazyTensor& p, const Shape& shape, DType dtype) {
  return random_bernoulli(p, shape, next_seed(), dtype);
}
LazyTensor random_randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype) {
  return random_randint(low, high, shape, next_seed(), dtype);
}
LazyTensor random_randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype,
                          Device device) {
  return random_randint(low, high, shape, next_seed(), dtype, device);
}
LazyTensor random_truncated_normal(double lower, double upper, const Shape& shape, DType dtype) {
  return random_truncated_normal(lower, upper, shape, next_seed(), dtype);
}
LazyTensor random_truncated_normal(double lower, double upper, const Shape& shape, DType dtype,
                                   Device device) {
  return random_truncated_normal(lower, upper, shape, next_seed(), dtype, device);
}
LazyTensor random_exponential(const Shape& shape, DType dtype) {
  return random_exponential(shape, next_seed(), dtype);
}
LazyTensor random_exponential(const Shape& shape, DType dtype, Device device) {
  return random_exponential(shape, next_seed(), dtype, device);
}
LazyTensor random_gumbel(const Shape& shape, DType dtype) { return random_gumbel(shape, next_seed(), dtype); }
LazyTensor random_gumbel(const Shape& shape, DType dtype, Device device) {
  return random_gumbel(shape, next_seed(), dtype, device);
}
LazyTensor random_categorical(const LazyTensor& logits) { return random_categorical(logits, next_seed()); }
LazyTensor random_permutation(std::int64_t n) { return random_permutation(n, next_seed()); }
LazyTensor random_permutation(std::int64_t n, Device device) {
  return random_permutation(n, next_seed(), device);
}

}  // namespace caldera
