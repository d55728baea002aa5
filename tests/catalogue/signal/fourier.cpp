// Entries of the family `signal`. Complex operands and results are tensors with a last axis of 2, as
// view_as_real() makes them; axes and lengths are those of the complex tensor.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;
using Length = std::optional<std::int64_t>;

FourierNorm norm_of(const Arguments& a) {
  const std::string norm = a.text("norm", "backward");
  if (norm == "ortho") return FourierNorm::ortho;
  return norm == "forward" ? FourierNorm::forward : FourierNorm::backward;
}
Length length_of(const Arguments& a) { return a.has("n") ? Length(a.integer("n", 1)) : Length(); }
Axes axes_of(const Arguments& a, const Axes& otherwise) {
  return a.has("axes") ? Axes(a.axes("axes")) : otherwise;
}

ComplexTensor complex_of(const LazyTensor& x) { return view_as_complex(x); }

using FromComplex = ComplexTensor (*)(const ComplexTensor&, Length, AxisIndex, FourierNorm);
using FromReal = ComplexTensor (*)(const LazyTensor&, Length, AxisIndex, FourierNorm);

template <FromComplex F>
Results call_line(Tensors x, const Arguments& a) {
  return {view_as_real(F(complex_of(x[0]), length_of(a), a.axis("axis", -1), norm_of(a)))};
}
/// Complex operands, and real ones of the samples that say so.
Results call_fft(Tensors x, const Arguments& a) {
  if (!a.flag("real", false)) return call_line<caldera::fft>(x, a);
  return {view_as_real(fft(x[0], length_of(a), a.axis("axis", -1), norm_of(a)))};
}
Results call_rfft(Tensors x, const Arguments& a) {
  return {view_as_real(rfft(x[0], length_of(a), a.axis("axis", -1), norm_of(a)))};
}
Results call_irfft(Tensors x, const Arguments& a) {
  return {irfft(complex_of(x[0]), length_of(a), a.axis("axis", -1), norm_of(a))};
}

Results call_hfft(Tensors x, const Arguments& a) {
  return {hfft(complex_of(x[0]), length_of(a), a.axis("axis", -1), norm_of(a))};
}
Results call_ihfft(Tensors x, const Arguments& a) {
  return {view_as_real(ihfft(x[0], length_of(a), a.axis("axis", -1), norm_of(a)))};
}

using ComplexLines = ComplexTensor (*)(const ComplexTensor&, const FourierSizes&, const Axes&, FourierNorm);
using RealLines = ComplexTensor (*)(const LazyTensor&, const FourierSizes&, const Axes&, FourierNorm);
using LinesToReal = LazyTensor (*)(const ComplexTensor&, const FourierSizes&, const Axes&, FourierNorm);

template <ComplexLines F, bool two>
Results call_lines(Tensors x, const Arguments& a) {
  const Axes otherwise = two ? Axes{-2, -1} : Axes();
  return {view_as_real(F(complex_of(x[0]), a.integers("s"), axes_of(a, otherwise), norm_of(a)))};
}
template <RealLines F, bool two>
Results call_real_lines(Tensors x, const Arguments& a) {
  const Axes otherwise = two ? Axes{-2, -1} : Axes();
  return {view_as_real(F(x[0], a.integers("s"), axes_of(a, otherwise), norm_of(a)))};
}
template <LinesToReal F, bool two>
Results call_lines_to_real(Tensors x, const Arguments& a) {
  const Axes otherwise = two ? Axes{-2, -1} : Axes();
  return {F(complex_of(x[0]), a.integers("s"), axes_of(a, otherwise), norm_of(a))};
}

/// The shape of a sample's operand: with an axis of 2 behind it if it is complex.
Operand operand_of(Shape shape, bool is_complex) {
  if (is_complex) shape.push_back(2);
  return {shape};
}

std::vector<Sample> line_samples(bool is_complex, bool to_real) {
  const auto call = [&](const Shape& shape, Arguments a) {
    return Sample{{operand_of(shape, is_complex)}, std::move(a)};
  };
  std::vector<Sample> out;
  for (const std::int64_t n : {2, 5, 8, 12}) out.push_back(call({n}, {}));
  if (!to_real) out.push_back(call({1}, {}));
  out.push_back(call({2, 6}, {{"n", std::int64_t{9}}, {"norm", std::string("ortho")}}));
  out.push_back(call({2, 9}, {{"n", std::int64_t{6}}, {"norm", std::string("forward")}}));
  out.push_back(call({2, 7, 3}, {{"axis", std::int64_t{1}}}));
  out.push_back(call({5, 2}, {{"axis", std::int64_t{-2}}, {"norm", std::string("forward")}}));
  out.push_back(call({0, 4}, {}));
  return out;
}
std::vector<Sample> complex_line_samples(const Operation& operation) {
  std::vector<Sample> out = line_samples(true, false);
  if (operation.name == "fft") {
    out.push_back({{{{2, 6}}}, {{"real", true}, {"norm", std::string("ortho")}}});
    // Two factors, and a chirp.
    out.push_back({{{{96, 2}}}});
    out.push_back({{{{263, 2}}}});
  }
  return out;
}
std::vector<Sample> real_line_samples(const Operation&) { return line_samples(false, false); }
std::vector<Sample> half_line_samples(const Operation&) { return line_samples(true, true); }

std::vector<ErrorSample> line_errors(const Operation& operation) {
  const bool is_complex = operation.name != "rfft" && operation.name != "ihfft";
  return {{Refusal::shape, {operand_of({2, 3}, is_complex)}, {{"axis", std::int64_t{2}}}, "(2, 3)"},
          {Refusal::value, {operand_of({2, 3}, is_complex)}, {{"n", std::int64_t{0}}}, "length of 0"},
          {Refusal::value, {operand_of({2, 0}, is_complex)}, {}, "a length of"}};
}

std::vector<Sample> lines_samples(bool is_complex, bool two) {
  const auto call = [&](const Shape& shape, Arguments a) {
    return Sample{{operand_of(shape, is_complex)}, std::move(a)};
  };
  std::vector<Sample> out{call({3, 4}, {}), call({2, 5, 3}, {{"norm", std::string("ortho")}}),
                          call({4, 3, 2}, {{"axes", Integers{0, 1}}, {"norm", std::string("forward")}}),
                          call({3, 4}, {{"s", Integers{2, 6}}})};
  if (!two) out.push_back(call({2, 3, 4}, {{"s", Integers{5}}, {"axes", Integers{1}}}));
  return out;
}
std::vector<Sample> complex_lines_samples(const Operation& op) {
  return lines_samples(true, op.name.ends_with('2'));
}
std::vector<Sample> real_lines_samples(const Operation& op) {
  return lines_samples(false, op.name.ends_with('2'));
}

std::vector<ErrorSample> lines_errors(const Operation& operation) {
  const bool is_complex = !operation.name.starts_with("rfft");
  return {{Refusal::value, {operand_of({2, 3}, is_complex)}, {{"s", Integers{2, 3, 4}}}, "3 lengths"},
          {Refusal::value, {operand_of({2, 3}, is_complex)}, {{"axes", Integers{0, -2}}}, "named twice"},
          {Refusal::shape, {operand_of({2, 3}, is_complex)}, {{"axes", Integers{0, 2}}}, "(2, 3)"},
          {Refusal::value, {operand_of({2, 3}, is_complex)}, {{"s", Integers{2, 0}}}, "length of 0"}};
}

template <bool half>
Results call_frequencies(Tensors, const Arguments& a) {
  const std::int64_t n = a.integer("n", 1);
  const double d = a.real("d", 1);
  const DType dtype = a.dtype("dtype", DType::f32);
  return {half ? rfftfreq(n, d, dtype) : fftfreq(n, d, dtype)};
}
std::vector<Sample> frequency_samples(const Operation&) {
  std::vector<Sample> out;
  for (const std::int64_t n : {1, 2, 5, 8})
    out.push_back({{}, {{"n", n}, {"d", n == 5 ? 0.25 : 1.0}, {"dtype", n == 8 ? DType::f64 : DType::f32}}});
  return out;
}
std::vector<ErrorSample> frequency_errors(const Operation&) {
  return {{Refusal::value, {}, {{"n", std::int64_t{0}}}, "n is 0"},
          {Refusal::dtype, {}, {{"n", std::int64_t{2}}, {"dtype", DType::i32}}, "int32"}};
}

template <LazyTensor (*F)(const LazyTensor&, const Axes&)>
Results call_shift(Tensors x, const Arguments& a) {
  return {F(x[0], axes_of(a, Axes()))};
}
std::vector<Sample> shift_samples(const Operation&) {
  return {{{{{5}}}},
          {{{{2, 3, 4}}}},
          {{{{3, 4}}}, {{"axes", Integers{-1}}}},
          {{{{3, 5}}}, {{"axes", Integers{0, 1}}}},
          {{{{}}}},
          {{{{0, 3}}}}};
}
std::vector<ErrorSample> shift_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}}, {{"axes", Integers{2}}}, "(2, 3)"}};
}

constexpr EntriesOf line{.family = "signal", .types = kFloating, .errors = line_errors};
constexpr EntriesOf lines{.family = "signal", .types = kFloating, .errors = lines_errors};
constexpr EntriesOf source{.family = "signal",
                           .types = {},
                           .result = ResultType::argument,
                           .gradient = Gradient::none,
                           .samples = frequency_samples,
                           .errors = frequency_errors};
constexpr EntriesOf shift{.family = "signal", .samples = shift_samples, .errors = shift_errors};

}  // namespace

std::span<const Operation> fourier_operations() {
  static const Operation kTable[] = {
      line("fft", "fft(x, n=extent, axis=-1, norm=backward)",
           "The discrete Fourier transform along an axis, cut or continued by zeros to n elements.", call_fft,
           complex_line_samples),
      line("ifft", "ifft(x, n=extent, axis=-1, norm=backward)", "The inverse of fft.",
           call_line<caldera::ifft>, complex_line_samples),
      line("rfft", "rfft(x, n=extent, axis=-1, norm=backward)",
           "fft of real numbers: the first n / 2 + 1 elements, of which the others are conjugates.",
           call_rfft, real_line_samples),
      line("irfft", "irfft(x, n=2 (extent - 1), axis=-1, norm=backward)",
           "The inverse of rfft: real numbers.", call_irfft, half_line_samples),
      line("hfft", "hfft(x, n=2 (extent - 1), axis=-1, norm=backward)",
           "fft of numbers of which the second half is the first one's conjugates, in reverse order: real "
           "numbers.",
           call_hfft, half_line_samples),
      line("ihfft", "ihfft(x, n=extent, axis=-1, norm=backward)",
           "The inverse of hfft: the first n / 2 + 1 elements of ifft of real numbers.", call_ihfft,
           real_line_samples),
      lines("fftn", "fftn(x, s=extents, axes=all, norm=backward)", "fft along several axes.",
            call_lines<caldera::fftn, false>, complex_lines_samples),
      lines("ifftn", "ifftn(x, s=extents, axes=all, norm=backward)", "The inverse of fftn.",
            call_lines<caldera::ifftn, false>, complex_lines_samples),
      lines("rfftn", "rfftn(x, s=extents, axes=all, norm=backward)",
            "fftn of real numbers, half of it along the last axis named.",
            call_real_lines<caldera::rfftn, false>, real_lines_samples),
      lines("irfftn", "irfftn(x, s=extents, axes=all, norm=backward)", "The inverse of rfftn.",
            call_lines_to_real<caldera::irfftn, false>, complex_lines_samples),
      lines("fft2", "fft2(x, s=extents, axes=none, norm=backward)",
            "fft along two axes, by default the last.", call_lines<caldera::fft2, true>,
            complex_lines_samples),
      lines("ifft2", "ifft2(x, s=extents, axes=none, norm=backward)", "The inverse of fft2.",
            call_lines<caldera::ifft2, true>, complex_lines_samples),
      lines("rfft2", "rfft2(x, s=extents, axes=none, norm=backward)",
            "fft2 of real numbers, half of it along the last axis named.",
            call_real_lines<caldera::rfft2, true>, real_lines_samples),
      lines("irfft2", "irfft2(x, s=extents, axes=none, norm=backward)", "The inverse of rfft2.",
            call_lines_to_real<caldera::irfft2, true>, complex_lines_samples),
      source("fftfreq", "fftfreq(n, d=1, dtype=float32)",
             "The frequencies of the elements of fft, in cycles for a step of d.", call_frequencies<false>),
      source("rfftfreq", "rfftfreq(n, d=1, dtype=float32)", "The frequencies of the elements of rfft.",
             call_frequencies<true>),
      shift("fftshift", "fftshift(x, axes=all)", "Frequency 0 moved to the middle.",
            call_shift<caldera::fftshift>),
      shift("ifftshift", "ifftshift(x, axes=all)", "The inverse of fftshift.",
            call_shift<caldera::ifftshift>),
  };
  return kTable;
}

}  // namespace caldera::catalogue
