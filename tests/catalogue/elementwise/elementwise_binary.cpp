// The entries of the family `elementwise_binary`.
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

constexpr EntriesOf entry{.family = "elementwise_binary", .samples = binary_samples, .errors = binary_errors};

/// Never a multiple of the other operand, nor equal to it: there is no slope.
constexpr Range kBetween{.offset = 1.0 / 128};

/// Integers are drawn from the range times 4, and of them only powers that are not negative are defined.
std::vector<Sample> pow_samples(const Operation& operation) {
  std::vector<Sample> out = binary_samples(operation);
  // No real one is 0, where PyTorch's second derivative lacks the term 1 / a.
  const Range exponents{.low = 0, .high = 1.25, .offset = 1.0 / 128};
  for (const auto& [a, b] : {std::pair<Shape, Shape>{{}, {}}, {{33}, {33}}, {{2, 3}, {3}}, {{0, 3}, {3}}})
    out.push_back({{{a, operation.ranges[0]}, {b, exponents}}});
  return out;
}

std::vector<Sample> where_samples(const Operation&) {
  struct Shapes {
    Shape condition, a, b;
  };
  static const Shapes kShapes[] = {
      {{}, {}, {}},      {{7}, {7}, {7}},       {{2, 3}, {2, 3}, {2, 3}}, {{3}, {2, 3}, {2, 1}},
      {{2, 1}, {3}, {}}, {{0, 3}, {0, 3}, {3}}, {{2, 3, 4}, {4}, {3, 1}}, {{33}, {}, {33}}};
  std::vector<Sample> out;
  for (const Shapes& s : kShapes) {
    out.push_back({{{.shape = s.condition, .dtype = DType::boolean}, {s.a}, {s.b}}});
  }
  return out;
}

std::vector<ErrorSample> where_errors(const Operation&) {
  const Operand condition{.shape = {2}, .dtype = DType::boolean};
  return {{.refusal = Refusal::shape, .operands = {condition, {{3}}, {{3}}}, .mentions = "(3,)"},
          {.refusal = Refusal::dtype, .operands = {{{2}}, {{2}}, {{2}}}, .mentions = "float32"}};
}

}  // namespace

std::span<const Operation> elementwise_binary_operations() {
  using R = ResultType;
  using G = Gradient;
  static const Operation kTable[] = {
      entry("add", "add(a, b)", "a + b.", kNumeric, R::same, G::full, call_binary<caldera::add>),
      entry("subtract", "subtract(a, b)", "a - b.", kNumeric, R::same, G::full,
            call_binary<caldera::subtract>),
      entry("multiply", "multiply(a, b)", "a * b.", kNumeric, R::same, G::full,
            call_binary<caldera::multiply>),
      entry("divide", "divide(a, b)", "a / b, true division: integers give float32.", kAnyType, R::floating,
            G::full, Range{}, Range{.away_from_zero = 0.25}, call_binary<caldera::divide>),
      entry("floor_divide", "floor_divide(a, b)", "The quotient rounded towards minus infinity.", kNumeric,
            R::same, G::zero, kBetween, Range{.away_from_zero = 0.25}, call_binary<caldera::floor_divide>),
      entry("remainder", "remainder(a, b)", "a - b * floor(a / b): it has the sign of b, as in Python.",
            kNumeric, R::same, G::full, kBetween, Range{.away_from_zero = 0.25},
            call_binary<caldera::remainder>),
      entry("pow", "pow(a, b)", "a to the power of b.", kNumeric, R::same, G::full,
            Range{.low = 0.25, .high = 2}, Range{.low = -1, .high = 2, .away_from_zero = 0.125},
            call_binary<caldera::pow>, pow_samples),
      entry("maximum", "maximum(a, b)",
            "The larger of two; NaN if either is. The gradient of ties is split equally.", kNumeric, R::same,
            G::full, Range{}, kBetween, call_binary<caldera::maximum>),
      entry("minimum", "minimum(a, b)",
            "The smaller of two; NaN if either is. The gradient of ties is split equally.", kNumeric, R::same,
            G::full, Range{}, kBetween, call_binary<caldera::minimum>),
      entry("atan2", "atan2(y, x)", "The angle of the point (x, y) in radians, in [-pi, pi].", kAnyType,
            R::floating, G::full, Range{.away_from_zero = 0.25}, Range{.away_from_zero = 0.25},
            call_binary<caldera::atan2>),
      entry("logical_and", "logical_and(a, b)", "Whether both are true.", kBoolean, R::boolean, G::none,
            call_binary<caldera::logical_and>),
      entry("logical_or", "logical_or(a, b)", "Whether either is true.", kBoolean, R::boolean, G::none,
            call_binary<caldera::logical_or>),
      entry("logical_xor", "logical_xor(a, b)", "Whether exactly one is true.", kBoolean, R::boolean, G::none,
            call_binary<caldera::logical_xor>),
      entry("equal", "equal(a, b)", "Whether a = b. NaN equals nothing.", kAnyType, R::boolean, G::none,
            Range{.low = -1, .high = 1}, Range{.low = -1, .high = 1}, call_binary<caldera::equal>),
      entry("not_equal", "not_equal(a, b)", "Whether a and b differ.", kAnyType, R::boolean, G::none,
            Range{.low = -1, .high = 1}, Range{.low = -1, .high = 1}, call_binary<caldera::not_equal>),
      entry("less", "less(a, b)", "Whether a < b.", kNumeric, R::boolean, G::none,
            call_binary<caldera::less>),
      entry("less_equal", "less_equal(a, b)", "Whether a <= b.", kNumeric, R::boolean, G::none,
            call_binary<caldera::less_equal>),
      entry("greater", "greater(a, b)", "Whether a > b.", kNumeric, R::boolean, G::none,
            call_binary<caldera::greater>),
      entry("greater_equal", "greater_equal(a, b)", "Whether a >= b.", kNumeric, R::boolean, G::none,
            call_binary<caldera::greater_equal>),
      {.name = "where",
       .family = "elementwise_binary",
       .signature = "where(condition, a, b)",
       .summary = "condition ? a : b, element by element. What is not chosen passes no gradient.",
       .types = kAnyType,
       .call = call_ternary<caldera::where>,
       .samples = where_samples,
       .errors = where_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
