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

/// Makes a family's usual entries: results of the operands' type, with a gradient.
struct EntriesOf {
  std::string_view family;
  Types types;

  constexpr Operation operator()(std::string_view name, std::string_view signature, std::string_view summary,
                                 std::vector<LazyTensor> (*call)(Tensors, const Arguments&),
                                 std::vector<Sample> (*samples)(const Operation&),
                                 std::vector<ErrorSample> (*errors)(const Operation&),
                                 Range range = {}) const {
    return {.name = name,
            .family = family,
            .signature = signature,
            .summary = summary,
            .types = types,
            .call = call,
            .ranges = {range},
            .samples = samples,
            .errors = errors};
  }
};

/// One operand: a scalar, vectors shorter and longer than a SIMD register, matrices, nothing, many axes.
std::vector<Sample> unary_samples(const Operation& operation);
/// The same, and a few shapes with each of the variants of the arguments.
std::vector<Sample> unary_samples(const Operation& operation, std::initializer_list<Arguments> variants);
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

}  // namespace caldera::catalogue
