// Entries of the family `signal`. Complex operands and results are tensors with a last axis of 2, as
// view_as_real() makes them.
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

std::vector<Sample> pair_samples(const Operation& operation) {
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{2}, Shape{7, 2}, Shape{2, 3, 2}, Shape{0, 2}})
    out.push_back({{{shape, operation.ranges[0]}}});
  return out;
}
std::vector<ErrorSample> pair_errors(const Operation&) { return {}; }

std::vector<Sample> polar_samples(const Operation&) {
  return {{{{{7}}, {{7}}}}, {{{{2, 1}}, {{3}}}}, {{{{}}, {{}}}}, {{{{0, 3}}, {{3}}}}};
}

std::vector<ErrorSample> view_errors(const Operation&) {
  return {{Refusal::shape, {{{3}}}, {}, "(3,)"}, {Refusal::shape, {{{}}}, {}, "()"}};
}

constexpr Range kAway{.away_from_zero = 0.25};
constexpr EntriesOf entry{
    .family = "signal", .types = kAnyType, .samples = pair_samples, .errors = pair_errors};

}  // namespace

std::span<const Operation> complex_operations() {
  static const Operation kTable[] = {
      entry(
          "view_as_complex", "view_as_complex(x)", "The complex numbers of a last axis of 2.",
          [](Tensors x, const Arguments&) -> Results {
            const ComplexTensor z = view_as_complex(x[0]);
            return {z.real(), z.imag()};
          },
          view_errors),
      entry("view_as_real", "view_as_real(x)", "Real and imaginary parts along a new last axis.",
            [](Tensors x, const Arguments&) -> Results { return {view_as_real(view_as_complex(x[0]))}; }),
      entry("real", "real(x)", "The real part of complex numbers.",
            [](Tensors x, const Arguments&) -> Results { return {real(view_as_complex(x[0]))}; }),
      entry("imag", "imag(x)", "The imaginary part of complex numbers.",
            [](Tensors x, const Arguments&) -> Results { return {imag(view_as_complex(x[0]))}; }),
      entry(
          "conj", "conj(x)", "Complex numbers with the other sign of the imaginary part.",
          [](Tensors x, const Arguments&) -> Results { return {view_as_real(conj(view_as_complex(x[0])))}; },
          kNumeric),
      entry(
          "angle", "angle(x)", "The argument of complex numbers, in [-pi, pi].",
          [](Tensors x, const Arguments&) -> Results { return {angle(view_as_complex(x[0]))}; }, kFloating,
          kAway),
      entry(
          "from_polar", "from_polar(magnitude, angle)",
          "magnitude * (cos(angle) + i sin(angle)): complex numbers of their polar form.",
          [](Tensors x, const Arguments&) -> Results { return {view_as_real(from_polar(x[0], x[1]))}; },
          kFloating, polar_samples, binary_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
