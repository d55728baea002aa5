// What the files of the family `functions` share: their entries of the table, and how those are written.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {

/// The entries of special_functions.cpp and of limits.cpp; those of functions.cpp stand before them.
std::span<const Operation> special_functions();
std::span<const Operation> limit_functions();

using Results = std::vector<LazyTensor>;
using Call = Results (*)(Tensors, const Arguments&);

inline Operation of_one(std::string_view name, std::string_view signature, std::string_view summary,
                        Range range, Call call, Types types = kAnyType,
                        ResultType result = ResultType::floating, Gradient gradient = Gradient::full) {
  return {.name = name,
          .family = "functions",
          .signature = signature,
          .summary = summary,
          .types = types,
          .result = result,
          .gradient = gradient,
          .call = call,
          .ranges = {range},
          .samples = unary_samples,
          .errors = no_errors};
}

inline Operation of_two(std::string_view name, std::string_view signature, std::string_view summary,
                        Range first, Range second, Call call, Types types, ResultType result) {
  return {.name = name,
          .family = "functions",
          .signature = signature,
          .summary = summary,
          .types = types,
          .result = result,
          .call = call,
          .ranges = {first, second},
          .samples = binary_samples,
          .errors = binary_errors};
}

/// `operation` with other samples and errors than its operands alone would give.
inline Operation with(Operation operation, std::vector<Sample> (*samples)(const Operation&),
                      std::vector<ErrorSample> (*errors)(const Operation&)) {
  operation.samples = samples;
  operation.errors = errors;
  return operation;
}

}  // namespace caldera::catalogue
