// The entries of the family `random`.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
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

constexpr EntriesOf entry{.family = "random", .gradient = Gradient::none};

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
          Types{}, R::argument,
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
          "The normal distribution between two bounds, far tails included.", Types{}, R::argument,
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
            "The density exp(-x), x > 0.", Types{}, R::argument, call_made<random_exponential>,
            floating_samples, made_errors),
      entry("random_gumbel", "random_gumbel(shape, seed, dtype=float32)",
            "The standard Gumbel distribution, -log(-log(uniform)).", Types{}, R::argument,
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
          "random_permutation", "random_permutation(n, seed)", "0 to n - 1 in random order.", Types{},
          R::index,
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

}  // namespace caldera::catalogue
