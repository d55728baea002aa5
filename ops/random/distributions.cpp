#include "ops/random/distributions.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ops/core/node_builder.h"
#include "ops/random/normal_quantile.h"
#include "ops/table/families.h"
#include "ops/table/samples.h"

namespace caldera {
namespace {

/// Throws naming `op`, where random_uniform would name itself.
void check_floating(const char* op, const Shape& shape, DType dtype) {
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
    const LazyTensor digit = (total - carry * base) * weight;
    out = out.defined() ? out + digit : digit;
    weight *= base;
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
  const std::int64_t bits = number.node().attributes()[0];
  return is_floating(number.dtype()) ? std::bit_cast<double>(bits) : static_cast<double>(bits);
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
  check_floating("random_truncated_normal", shape, dtype);
  if (!(lower < upper)) {
    throw ValueError(fmt::format("random_truncated_normal: no number is between {} and {}", lower, upper));
  }
  const DType wide = compute_type(dtype);
  const double half = half_step(wide);
  const LazyTensor u = random_uniform(shape, seed, wide, device) + half;
  // The lower tail has the finer probabilities: what lies above is drawn there and turned round.
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
  check_floating("random_exponential", shape, dtype);
  return astype(exponential(shape, seed, compute_type(dtype), device), dtype);
}
LazyTensor random_exponential(const Shape& shape, std::uint64_t seed, DType dtype) {
  return random_exponential(shape, seed, dtype, default_device());
}

LazyTensor random_gumbel(const Shape& shape, std::uint64_t seed, DType dtype, Device device) {
  check_floating("random_gumbel", shape, dtype);
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

namespace ops {
namespace {

using Results = std::vector<LazyTensor>;
using Samples = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;
using Integers = Arguments::Integers;

Shape shape_of(const Arguments& a) {
  Shape shape;
  for (const std::int64_t extent : a.integers("shape")) shape.push_back(extent);
  return shape;
}
std::uint64_t seed_of(const Arguments& a) { return static_cast<std::uint64_t>(a.integer("seed", 42)); }

/// Shapes by types, with other arguments.
Samples made_samples(const Arguments& more, std::initializer_list<DType> types) {
  Samples out;
  for (const Integers& shape : {Integers{}, Integers{7}, Integers{2, 3}, Integers{0, 3}}) {
    for (const DType type : types) {
      Arguments arguments{{"shape", shape}, {"seed", std::int64_t{42}}, {"dtype", type}};
      for (const auto& [key, value] : more.values()) arguments.set(key, value);
      out.push_back({{}, arguments});
    }
  }
  return out;
}

constexpr auto kFloats = {DType::f16, DType::bf16, DType::f32, DType::f64};
constexpr auto kIntegers = {DType::u8, DType::u32, DType::i8, DType::i16, DType::i32, DType::i64};

Errors made_errors(const Operation&) {
  return {{Refusal::shape, {}, {{"shape", Integers{-2}}}, "-2"},
          {Refusal::dtype, {}, {{"shape", Integers{2}}, {"dtype", DType::i32}}, "int32"}};
}

Errors bounded_errors(const Operation& operation) {
  Errors out = made_errors(operation);
  const auto bounds = [](double low, double high) {
    return Arguments{{"shape", Integers{2}}, {"lower", low}, {"upper", high}};
  };
  out.push_back({Refusal::value, {}, bounds(2, 1), "2"});
  out.push_back({Refusal::value, {}, bounds(1, 1), "1"});
  return out;
}

Errors integer_errors(const Operation&) {
  const auto between = [](std::int64_t low, std::int64_t high, DType type) {
    return Arguments{{"low", low}, {"high", high}, {"shape", Integers{2}}, {"dtype", type}};
  };
  return {{Refusal::value, {}, between(3, 3, DType::i32), "3"},
          {Refusal::value, {}, between(5, 3, DType::i64), "5"},
          {Refusal::value, {}, between(-1, 3, DType::u8), "-1"},
          {Refusal::value, {}, between(0, 257, DType::u8), "257"},
          {Refusal::dtype, {}, between(0, 3, DType::f32), "float32"},
          {Refusal::shape, {}, {{"shape", Integers{-2}}}, "-2"}};
}

constexpr Range kProbability{.low = 0, .high = 1};

Samples bernoulli_samples(const Operation&) {
  Samples out;
  for (const Shape& p : {Shape{}, Shape{3}, Shape{2, 1}}) {
    out.push_back({{{p, kProbability}}, {{"shape", Integers{2, 3}}, {"dtype", DType::boolean}}});
    out.push_back({{{p, kProbability}}, {{"shape", Integers{2, 3}}, {"dtype", DType::f32}}});
  }
  out.push_back({{{{7}, kProbability}}, {{"shape", Integers{7}}, {"dtype", DType::i32}}});
  out.push_back({{{{3}, kProbability}}, {{"shape", Integers{0, 3}}, {"dtype", DType::boolean}}});
  return out;
}

Errors bernoulli_errors(const Operation&) {
  return {{Refusal::shape, {{{3}, kProbability}}, {{"shape", Integers{2}}}, "(3,)"},
          {Refusal::shape, {{{2, 3}, kProbability}}, {{"shape", Integers{3}}}, "(2, 3)"},
          {Refusal::value, {}, {{"p", 1.5}, {"shape", Integers{3}}}, "1.5"},
          {Refusal::value, {}, {{"p", -0.5}, {"shape", Integers{3}}}, "-0.5"}};
}

Samples categorical_samples(const Operation&) {
  Samples out;
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{33}, Shape{2, 3}, Shape{0, 3}, Shape{2, 3, 4}}) {
    out.push_back({{{shape}}});
    out.push_back({{{shape}}, {{"count", std::int64_t{5}}}});
  }
  out.push_back({{{{2, 3}}}, {{"count", std::int64_t{0}}}});
  return out;
}

Errors categorical_errors(const Operation&) {
  return {{Refusal::shape, {{{}}}, {}, "()"},
          {Refusal::shape, {{{2, 0}}}, {}, "(2, 0)"},
          {Refusal::shape, {{{3}}}, {{"count", std::int64_t{-2}}}, "-2"}};
}

Operation entry(std::string_view name, std::string_view signature, std::string_view summary, Types types,
                ResultType result, Results (*call)(Tensors, const Arguments&),
                Samples (*samples)(const Operation&), Errors (*errors)(const Operation&)) {
  return {.name = name,
          .family = "random",
          .signature = signature,
          .summary = summary,
          .types = types,
          .result = result,
          .gradient = Gradient::none,
          .call = call,
          .samples = samples,
          .errors = errors};
}

template <LazyTensor (*F)(const Shape&, std::uint64_t, DType)>
Results call_made(Tensors, const Arguments& a) {
  return {F(shape_of(a), seed_of(a), a.dtype("dtype", DType::f32))};
}

Samples floating_samples(const Operation&) { return made_samples({}, kFloats); }

}  // namespace

std::span<const Operation> random_operations() {
  using R = ResultType;
  static const Operation kTable[] = {
      entry(
          "random_bernoulli", "random_bernoulli(p, shape, seed, dtype=bool)",
          "True with the probability p, which broadcasts to the shape.", kFloating, R::argument,
          [](Tensors x, const Arguments& a) -> Results {
            const LazyTensor p = x.empty() ? LazyTensor(a.real("p", 0.5)) : x[0];
            return {random_bernoulli(p, shape_of(a), seed_of(a), a.dtype("dtype", DType::boolean))};
          },
          bernoulli_samples, bernoulli_errors),
      entry(
          "random_randint", "random_randint(low, high, shape, seed, dtype=int32)",
          "Integers from low to below high, of equal probability to 2^-16 of it (2^-24 up to a range of "
          "2^24).",
          {}, R::argument,
          [](Tensors, const Arguments& a) -> Results {
            return {random_randint(a.integer("low", 0), a.integer("high", 10), shape_of(a), seed_of(a),
                                   a.dtype("dtype", DType::i32))};
          },
          [](const Operation&) {
            return made_samples({{"low", std::int64_t{3}}, {"high", std::int64_t{100}}}, kIntegers);
          },
          integer_errors),
      entry(
          "random_truncated_normal", "random_truncated_normal(lower, upper, shape, seed, dtype=float32)",
          "The normal distribution between two bounds, far tails included.", {}, R::argument,
          [](Tensors, const Arguments& a) -> Results {
            return {random_truncated_normal(a.real("lower", -2), a.real("upper", 2), shape_of(a), seed_of(a),
                                            a.dtype("dtype", DType::f32))};
          },
          [](const Operation&) {
            Samples out = made_samples({{"lower", -2.0}, {"upper", 2.0}}, kFloats);
            for (const Sample& sample : made_samples({{"lower", 3.0}, {"upper", 9.0}}, kFloats))
              out.push_back(sample);
            return out;
          },
          bounded_errors),
      entry("random_exponential", "random_exponential(shape, seed, dtype=float32)",
            "The density exp(-x), x > 0.", {}, R::argument, call_made<random_exponential>, floating_samples,
            made_errors),
      entry("random_gumbel", "random_gumbel(shape, seed, dtype=float32)",
            "The standard Gumbel distribution, -log(-log(uniform)).", {}, R::argument,
            call_made<random_gumbel>, floating_samples, made_errors),
      entry(
          "random_categorical", "random_categorical(logits, seed, count=none)",
          "A class of the last axis with the probability softmax(logits); with `count`, so many along a new "
          "axis.",
          kFloating, R::index,
          [](Tensors x, const Arguments& a) -> Results {
            const auto count =
                a.has("count") ? std::optional<std::int64_t>(a.integer("count", 1)) : std::nullopt;
            return {random_categorical(x[0], seed_of(a), count)};
          },
          categorical_samples, categorical_errors),
      entry(
          "random_permutation", "random_permutation(n, seed)", "0 to n - 1 in random order.", {}, R::index,
          [](Tensors, const Arguments& a) -> Results {
            return {random_permutation(a.integer("n", 0), seed_of(a))};
          },
          [](const Operation&) {
            Samples out;
            for (const std::int64_t n : {0, 1, 7, 33, 65}) out.push_back({{}, {{"n", n}}});
            return out;
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {}, {{"n", std::int64_t{-3}}}, "-3"}};
          }),
  };
  return kTable;
}

}  // namespace ops
}  // namespace caldera
