// The entries of the family `creation`.
#include <array>
#include <cstdint>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Rows = std::vector<Sample>;
using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;

Shape shape_argument(const Arguments& a) {
  Shape shape;
  for (const std::int64_t extent : a.integers("shape")) shape.push_back(extent);
  return shape;
}

/// Of the operand's type, and of types that are named.
Rows like_samples(const Operation& operation) {
  Rows out = unary_samples(operation);
  for (const DType type : {DType::boolean, DType::i32, DType::f16, DType::f64})
    out.push_back({{{{2, 3}}}, {{"dtype", type}}});
  return out;
}

template <LazyTensor (*OfItsType)(const LazyTensor&), LazyTensor (*OfType)(const LazyTensor&, DType)>
Results call_like(Tensors x, const Arguments& a) {
  return {a.has("dtype") ? OfType(x[0], a.dtype("dtype", DType::f32)) : OfItsType(x[0])};
}

constexpr EntriesOf like{.family = "creation",
                         .types = kAnyType,
                         .result = ResultType::argument,
                         .gradient = Gradient::zero,
                         .samples = like_samples,
                         .errors = no_errors};

/// Shapes by types of what is made without operands.
Rows made_samples(const Arguments& more, std::span<const DType> types) {
  Rows out;
  for (const Integers& shape : {Integers{}, Integers{7}, Integers{2, 3}, Integers{0, 3}, Integers{2, 3, 4}}) {
    for (const DType type : types) {
      Arguments arguments{{"shape", shape}, {"dtype", type}};
      for (const auto& [name, value] : more.values()) arguments.set(name, value);
      out.push_back({{}, arguments});
    }
  }
  return out;
}

std::vector<ErrorSample> made_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .arguments = {{"shape", Integers{-2}}}, .mentions = "-2"}};
}

constexpr EntriesOf made{.family = "creation",
                         .types = {},
                         .result = ResultType::argument,
                         .gradient = Gradient::none,
                         .errors = made_errors};

template <LazyTensor (*F)(const Shape&, DType)>
Results call_made(Tensors, const Arguments& a) {
  return {F(shape_argument(a), a.dtype("dtype", DType::f32))};
}
template <LazyTensor (*F)(const Shape&, std::uint64_t, DType)>
Results call_random(Tensors, const Arguments& a) {
  return {
      F(shape_argument(a), static_cast<std::uint64_t>(a.integer("seed", 0)), a.dtype("dtype", DType::f32))};
}

Rows constant_samples(const Operation&) { return made_samples({}, kAllDTypes); }
Rows random_samples(const Operation&) {
  constexpr std::array kTypes{DType::f16, DType::bf16, DType::f32, DType::f64};
  return made_samples({{"seed", std::int64_t{42}}}, kTypes);
}

}  // namespace

std::span<const Operation> creation_operations() {
  static const Operation kTable[] = {
      made("zeros", "LazyTensor::zeros(shape, dtype=float32)", "Zeros.", call_made<LazyTensor::zeros>,
           constant_samples),
      made("ones", "LazyTensor::ones(shape, dtype=float32)", "Ones.", call_made<LazyTensor::ones>,
           constant_samples),
      made(
          "full", "LazyTensor::full(shape, value, dtype=float32)",
          "One value everywhere; another value does not compile again.",
          [](Tensors, const Arguments& a) -> Results {
            return {LazyTensor::full(shape_argument(a), a.real("value", 0), a.dtype("dtype", DType::f32))};
          },
          [](const Operation&) {
            Rows out = made_samples({{"value", 1.0}}, kAllDTypes);
            for (const double value : {0.0, 3.0}) {
              for (const DType type : kAllDTypes)
                out.push_back({{}, {{"shape", Integers{2, 3}}, {"value", value}, {"dtype", type}}});
            }
            return out;
          }),
      made(
          "empty", "empty(shape, dtype=float32)", "For what will be overwritten: zeros.",
          [](Tensors, const Arguments& a) -> Results {
            return {empty(shape_argument(a), a.dtype("dtype", DType::f32))};
          },
          constant_samples),
      like("zeros_like", "zeros_like(x, dtype=that of x)", "Zeros of the shape, type and device of x.",
           call_like<zeros_like, zeros_like>),
      like("ones_like", "ones_like(x, dtype=that of x)", "Ones of the shape, type and device of x.",
           call_like<ones_like, ones_like>),
      like("empty_like", "empty_like(x, dtype=that of x)", "For what will be overwritten: zeros.",
           [](Tensors x, const Arguments& a) -> Results {
             return {empty_like(x[0], a.dtype("dtype", x[0].dtype()))};
           }),
      like(
          "full_like", "full_like(x, value, dtype=that of x)",
          "One value with the shape, type and device of x.",
          [](Tensors x, const Arguments& a) -> Results {
            return {full_like(x[0], a.real("value", 1), a.dtype("dtype", x[0].dtype()))};
          },
          [](const Operation& operation) {
            Rows out = unary_samples_with(operation, {{{"value", 3.0}}, {{"value", 0.0}}});
            for (const DType type : {DType::boolean, DType::i32, DType::f16, DType::f64})
              out.push_back({{{{2, 3}}}, {{"value", 3.0}, {"dtype", type}}});
            return out;
          }),
      {.name = "iota",
       .family = "creation",
       .signature = "iota(shape, axis, dtype, device)",
       .summary = "The coordinate along an axis at every point of a shape.",
       .types = {},
       .result = ResultType::argument,
       .gradient = Gradient::none,
       .call = [](Tensors, const Arguments& a) -> Results {
         return {iota(shape_argument(a), a.axis("axis", 0), a.dtype("dtype", DType::i32), default_device())};
       },
       .samples = [](const Operation&) -> Rows {
         Rows out;
         for (const std::int64_t axis : {0, 1, -1}) {
           out.push_back({{}, {{"shape", Integers{0, 3}}, {"axis", axis}, {"dtype", DType::i32}}});
           for (const DType type : {DType::f32, DType::i32})
             out.push_back({{}, {{"shape", Integers{2, 3, 4}}, {"axis", axis}, {"dtype", type}}});
         }
         return out;
       },
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{.refusal = Refusal::shape,
                  .arguments = {{"shape", Integers{2}}, {"axis", std::int64_t{1}}},
                  .mentions = "(2,)"}};
       }},
      made("random_uniform", "random_uniform(shape, seed, dtype=float32)",
           "Uniform on [0, 1): Philox4x32-10, the same stream on every device.", call_random<random_uniform>,
           random_samples),
      made("random_normal", "random_normal(shape, seed, dtype=float32)",
           "Mean 0, deviation 1: Philox4x32-10 and Box-Muller.", call_random<random_normal>, random_samples),
      {.name = "stop_gradient",
       .family = "creation",
       .signature = "stop_gradient(x)",
       .summary = "x; gradients do not pass.",
       .types = kAnyType,
       .gradient = Gradient::zero,
       .call = call_unary<stop_gradient>,
       .samples = unary_samples,
       .errors = no_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
