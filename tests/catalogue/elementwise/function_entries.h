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

inline constexpr EntriesOf of_one{.family = "functions",
                                  .types = kAnyType,
                                  .result = ResultType::floating,
                                  .gradient = Gradient::full,
                                  .samples = unary_samples,
                                  .errors = no_errors};

inline constexpr EntriesOf of_two{.family = "functions", .samples = binary_samples, .errors = binary_errors};

/// `operation` with other samples and errors than its operands alone would give.
inline Operation with(Operation operation, std::vector<Sample> (*samples)(const Operation&),
                      std::vector<ErrorSample> (*errors)(const Operation&)) {
  operation.samples = samples;
  operation.errors = errors;
  return operation;
}

}  // namespace caldera::catalogue
