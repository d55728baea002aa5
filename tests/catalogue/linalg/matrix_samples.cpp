#include "tests/catalogue/linalg/matrix_samples.h"

namespace caldera::catalogue {

Operand apart(const Shape& shape, bool positive) {
  // Off zero and without repeats: norms have kinks there.
  Operand out{.shape = shape, .range = {.low = -0.5, .high = 0.5, .offset = 1.0 / 256}};
  out.values = values_of(out, 0, DType::f64);
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape.back();
  for (std::size_t at = 0; at < out.values.size(); ++at) {
    const auto i = static_cast<std::int64_t>(at) / columns % rows,
               j = static_cast<std::int64_t>(at) % columns;
    if (i == j) out.values[at] += static_cast<double>(2 * (i + 1)) * (positive || i % 2 == 0 ? 1 : -1);
  }
  return out;
}

std::vector<ErrorSample> matrix_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{3}}}, .mentions = "(3,)"},
          {.refusal = Refusal::shape, .operands = {{{}}}, .mentions = "()"},
          {.refusal = Refusal::dtype, .operands = {{{2, 2}}}, .mentions = "float16", .type = DType::f16}};
}
std::vector<ErrorSample> square_errors(const Operation& operation) {
  std::vector<ErrorSample> out = matrix_errors(operation);
  out.push_back({.refusal = Refusal::shape, .operands = {{{2, 3}}}, .mentions = "(2, 3)"});
  out.push_back({.refusal = Refusal::shape, .operands = {{{4, 3, 2}}}, .mentions = "(4, 3, 2)"});
  return out;
}

}  // namespace caldera::catalogue
