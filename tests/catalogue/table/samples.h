// Samples that many operations share, and the calls that go with them.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tests/catalogue/table/operation.h"

namespace caldera::catalogue {

/// Calls of functions of tensors alone.
template <auto F>
std::vector<LazyTensor> call_unary(Tensors x, const Arguments&) {
  return {F(x[0])};
}
template <auto F>
std::vector<LazyTensor> call_binary(Tensors x, const Arguments&) {
  return {F(x[0], x[1])};
}
template <auto F>
std::vector<LazyTensor> call_ternary(Tensors x, const Arguments&) {
  return {F(x[0], x[1], x[2])};
}

/// One operand: a scalar, vectors shorter and longer than a SIMD register, matrices, nothing, many axes.
std::vector<Sample> unary_samples(const Operation& operation);
/// The same, and a few shapes with each of the variants of the arguments.
std::vector<Sample> unary_samples_with(const Operation& operation, std::initializer_list<Arguments> variants);
/// Two operands of equal shapes, and every kind of broadcasting.
std::vector<Sample> binary_samples(const Operation& operation);
/// Shapes that do not broadcast.
std::vector<ErrorSample> binary_errors(const Operation& operation);
/// Reductions: axes (one, several, none), with and without keepdims.
std::vector<Sample> reduction_samples(const Operation& operation);
/// Axes that are not there, and one named twice.
std::vector<ErrorSample> reduction_errors(const Operation& operation);
/// Functions along one axis.
std::vector<Sample> axis_samples(const Operation& operation);
std::vector<ErrorSample> axis_errors(const Operation& operation);
/// Calls of a vector with arguments that are refused as values, and what the message says of each.
std::vector<ErrorSample> refused_values(
    std::initializer_list<std::pair<Arguments, std::string>> arguments_and_mentions);
/// For operations that refuse nothing but types.
std::vector<ErrorSample> no_errors(const Operation& operation);

/// Makes entries, all with one builder: a family, or a part of it, says once what most of its entries have,
/// and each entry names what it has of its own, in any order, which their types tell apart:
///
///   constexpr EntriesOf entry{.family = "activations", .types = kFloating};
///   entry("glu", "glu(x, axis=-1)", "The first half ...", call_glu, glu_samples, glu_errors)
///
/// Ranges are those of the first operands, one after the other.
struct EntriesOf {
  using Call = std::vector<LazyTensor> (*)(Tensors, const Arguments&);
  using Samples = std::vector<Sample> (*)(const Operation&);
  using Errors = std::vector<ErrorSample> (*)(const Operation&);

  std::string_view family;
  Types types = kAnyType;
  ResultType result = ResultType::same;
  Gradient gradient = Gradient::full;
  Ranges ranges = {};
  Samples samples = unary_samples;
  Errors errors = no_errors;

  template <class... Parts>
  constexpr Operation operator()(std::string_view name, std::string_view signature, std::string_view summary,
                                 const Parts&... parts) const {
    Maker made{{.name = name,
                .family = family,
                .signature = signature,
                .summary = summary,
                .types = types,
                .result = result,
                .gradient = gradient,
                .call = nullptr,
                .ranges = ranges,
                .samples = samples,
                .errors = errors}};
    (made.take(parts), ...);
    return made.operation;
  }

 private:
  struct Maker {
    Operation operation;
    std::size_t drawn = 0;

    constexpr void take(Types types) { operation.types = types; }
    constexpr void take(ResultType result) { operation.result = result; }
    constexpr void take(Gradient gradient) { operation.gradient = gradient; }
    constexpr void take(const Range& range) { operation.ranges.at(drawn++) = range; }
    constexpr void take(const Ranges& ranges) { operation.ranges = ranges; }
    constexpr void take(Call call) { operation.call = call; }
    constexpr void take(Samples samples) { operation.samples = samples; }
    constexpr void take(Errors errors) { operation.errors = errors; }
  };
};

}  // namespace caldera::catalogue
