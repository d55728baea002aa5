#include "ops/signal/fourier.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"
#include "ops/shape/manipulation.h"
#include "ops/signal/dft.h"

namespace caldera {
namespace {

constexpr int kForward = -1, kInverse = 1;
constexpr std::int64_t kMostLength = std::int64_t{1} << 30;

using Length = std::optional<std::int64_t>;

std::int64_t checked_length(const char* op, Length n, std::int64_t otherwise) {
  const std::int64_t length = n.value_or(otherwise);
  if (length < 1 || length > kMostLength)
    throw ValueError(fmt::format("{}: a length of {}, want 1 to 2^30", op, length));
  return length;
}

/// x cut or continued by zeros along an axis.
LazyTensor sized(const LazyTensor& x, int axis, std::int64_t length) {
  const std::int64_t extent = x.shape(axis);
  if (extent >= length) return extent == length ? x : slice(x, axis, 0, length);
  std::vector<std::int64_t> low(static_cast<std::size_t>(x.rank()), 0), high = low;
  high[static_cast<std::size_t>(axis)] = length - extent;
  return pad(x, low, high, 0);
}

double scale_of(FourierNorm norm, int direction, std::int64_t n) {
  const auto count = static_cast<double>(n);
  if (norm == FourierNorm::ortho) return 1 / std::sqrt(count);
  return (norm == FourierNorm::forward) == (direction == kForward) ? 1 / count : 1;
}

/// Lines along an axis as rows of a matrix, and back.
struct AxisRows {
  Shape shape;  // of other axes, the last one in place of the axis
  int axis;
  DType type;

  AxisRows(const LazyTensor& like, int along) : shape(like.shape()), axis(along), type(like.dtype()) {
    std::swap(shape[axis], shape[shape.rank() - 1]);
  }
  std::int64_t count() const {
    std::int64_t rows = 1;
    for (int i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
    return rows;
  }
  /// Cut to n elements or continued, (rows, n).
  LazyTensor of(const LazyTensor& x, std::int64_t n) const {
    const LazyTensor moved = swapaxes(sized(astype(x, compute_type(type)), axis, n), axis, -1);
    return reshape(moved, Shape{count(), n});
  }
  /// (rows, n).
  LazyTensor back(const LazyTensor& rows) const {
    Shape whole = shape;
    whole[whole.rank() - 1] = rows.shape(1);
    return astype(swapaxes(reshape(rows, whole), axis, -1), type);
  }
  /// (rows, 2, n).
  ComplexTensor parts(const LazyTensor& y) const {
    return {back(squeeze(slice(y, 1, 0, 1), 1)), back(squeeze(slice(y, 1, 1, 2), 1))};
  }
};

/// The transform of parts, the imaginary one undefined where there is none, along an axis of this length.
ComplexTensor along(const LazyTensor& real, const LazyTensor& imag, int axis, std::int64_t n, int direction,
                    FourierNorm norm) {
  const AxisRows rows(real, axis);
  const LazyTensor given =
      imag.defined() ? stack({rows.of(real, n), rows.of(imag, n)}, 1) : expand_dims(rows.of(real, n), 1);
  return rows.parts(ops::dft(given, direction, scale_of(norm, direction, n)));
}

/// Checks a transform along one axis of a tensor.
int checked_axis(const char* op, const LazyTensor& x, int axis) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  return x.shape().normalize_axis(axis, op);
}

ComplexTensor along_checked(const char* op, const LazyTensor& real, const LazyTensor& imag, Length n,
                            int given, int direction, FourierNorm norm) {
  const int axis = checked_axis(op, real, given);
  return along(real, imag, axis, checked_length(op, n, real.shape(axis)), direction, norm);
}

ComplexTensor half_of_real(const char* op, const LazyTensor& x, Length n, int given, FourierNorm norm) {
  const int axis = checked_axis(op, x, given);
  const std::int64_t length = checked_length(op, n, x.shape(axis));
  const AxisRows rows(x, axis);
  return rows.parts(ops::real_dft(rows.of(x, length), scale_of(norm, kForward, length)));
}

LazyTensor real_of_half(const char* op, const ComplexTensor& x, Length n, int given, FourierNorm norm) {
  const int axis = checked_axis(op, x.real(), given);
  const std::int64_t length = checked_length(op, n, 2 * (x.shape(axis) - 1)), half = length / 2 + 1;
  const AxisRows rows(x.real(), axis);
  const LazyTensor both = stack({rows.of(x.real(), half), rows.of(x.imag(), half)}, 1);
  return rows.back(ops::real_inverse_dft(both, length, scale_of(norm, kInverse, length)));
}

/// The axes of a transform along several, and the length of each.
struct Lines {
  std::vector<int> axes;
  std::vector<Length> lengths;

  Lines(const char* op, const Shape& shape, const FourierSizes& s, const Axes& given) {
    const int rank = shape.rank();
    if (given.are_all()) {
      const int count = s.empty() ? rank : static_cast<int>(s.size());
      if (count > rank)
        throw ValueError(fmt::format("{}: {} lengths for the axes of {}", op, count, shape.to_string()));
      for (int i = rank - count; i < rank; ++i) axes.push_back(i);
    } else {
      for (const int axis : given.list()) {
        axes.push_back(shape.normalize_axis(axis, op));
        if (std::ranges::count(axes, axes.back()) > 1)
          throw ValueError(fmt::format("{}: axis {} is named twice", op, axis));
      }
    }
    if (!s.empty() && s.size() != axes.size())
      throw ValueError(fmt::format("{}: {} lengths for {} axes", op, s.size(), axes.size()));
    for (std::size_t i = 0; i < axes.size(); ++i) lengths.push_back(s.empty() ? Length() : Length(s[i]));
  }
  void check_some(const char* op) const {
    if (axes.empty()) throw ValueError(fmt::format("{}: no axis to transform along", op));
  }
};

/// Along all but the last `left` of the lines, the last first.
ComplexTensor along_lines(const char* op, ComplexTensor y, const Lines& lines, std::size_t left,
                          int direction, FourierNorm norm) {
  for (std::size_t i = lines.axes.size() - left; i-- > 0;)
    y = along_checked(op, y.real(), y.imag(), lines.lengths[i], lines.axes[i], direction, norm);
  return y;
}

ComplexTensor complex_lines(const char* op, const ComplexTensor& x, const FourierSizes& s, const Axes& axes,
                            int direction, FourierNorm norm) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  return along_lines(op, x, Lines(op, x.shape(), s, axes), 0, direction, norm);
}
ComplexTensor real_lines(const char* op, const LazyTensor& x, const FourierSizes& s, const Axes& axes,
                         FourierNorm norm, bool half) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  const Lines lines(op, x.shape(), s, axes);
  if (!half && lines.axes.empty()) return ComplexTensor(x);
  lines.check_some(op);
  const Length n = lines.lengths.back();
  const int last = lines.axes.back();
  return along_lines(
      op, half ? half_of_real(op, x, n, last, norm) : along_checked(op, x, {}, n, last, kForward, norm),
      lines, 1, kForward, norm);
}
LazyTensor lines_to_real(const char* op, const ComplexTensor& x, const FourierSizes& s, const Axes& axes,
                         FourierNorm norm) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  const Lines lines(op, x.shape(), s, axes);
  lines.check_some(op);
  return real_of_half(op, along_lines(op, x, lines, 1, kInverse, norm), lines.lengths.back(),
                      lines.axes.back(), norm);
}

/// Shifts that bring frequency 0 to the middle, or back.
template <class T>
T shifted(const char* op, const T& x, const Axes& given, bool back) {
  const Lines lines(op, x.shape(), {}, given);
  std::vector<std::int64_t> shifts;
  for (const int axis : lines.axes) {
    const std::int64_t n = x.shape(axis);
    shifts.push_back(back ? n - n / 2 : n / 2);
  }
  return lines.axes.empty() || x.numel() == 0 ? x : roll(x, shifts, lines.axes);
}

}  // namespace

ComplexTensor fft(const ComplexTensor& x, Length n, AxisIndex axis, FourierNorm norm) {
  return along_checked("fft", x.real(), x.imag(), n, axis, kForward, norm);
}
ComplexTensor fft(const LazyTensor& x, Length n, AxisIndex axis, FourierNorm norm) {
  return along_checked("fft", x, {}, n, axis, kForward, norm);
}
ComplexTensor ifft(const ComplexTensor& x, Length n, AxisIndex axis, FourierNorm norm) {
  return along_checked("ifft", x.real(), x.imag(), n, axis, kInverse, norm);
}
ComplexTensor rfft(const LazyTensor& x, Length n, AxisIndex axis, FourierNorm norm) {
  return half_of_real("rfft", x, n, axis, norm);
}
LazyTensor irfft(const ComplexTensor& x, Length n, AxisIndex axis, FourierNorm norm) {
  return real_of_half("irfft", x, n, axis, norm);
}

namespace {

/// The norm that scales the other direction by as much.
FourierNorm opposite(FourierNorm norm) {
  if (norm == FourierNorm::ortho) return norm;
  return norm == FourierNorm::forward ? FourierNorm::backward : FourierNorm::forward;
}

}  // namespace

LazyTensor hfft(const ComplexTensor& x, Length n, AxisIndex axis, FourierNorm norm) {
  ops::check_domain("hfft", ScalarDomain::floating, x.dtype());
  return real_of_half("hfft", conj(x), n, axis, opposite(norm));
}
ComplexTensor ihfft(const LazyTensor& x, Length n, AxisIndex axis, FourierNorm norm) {
  return conj(half_of_real("ihfft", x, n, axis, opposite(norm)));
}

ComplexTensor fftn(const ComplexTensor& x, const FourierSizes& s, const Axes& axes, FourierNorm norm) {
  return complex_lines("fftn", x, s, axes, kForward, norm);
}
ComplexTensor fftn(const LazyTensor& x, const FourierSizes& s, const Axes& axes, FourierNorm norm) {
  return real_lines("fftn", x, s, axes, norm, false);
}
ComplexTensor ifftn(const ComplexTensor& x, const FourierSizes& s, const Axes& axes, FourierNorm norm) {
  return complex_lines("ifftn", x, s, axes, kInverse, norm);
}
ComplexTensor rfftn(const LazyTensor& x, const FourierSizes& s, const Axes& axes, FourierNorm norm) {
  return real_lines("rfftn", x, s, axes, norm, true);
}
LazyTensor irfftn(const ComplexTensor& x, const FourierSizes& s, const Axes& axes, FourierNorm norm) {
  return lines_to_real("irfftn", x, s, axes, norm);
}

ComplexTensor fft2(const ComplexTensor& x, const FourierSizes& s, const Axes& axes, FourierNorm norm) {
  return complex_lines("fft2", x, s, axes, kForward, norm);
}
ComplexTensor fft2(const LazyTensor& x, const FourierSizes& s, const Axes& axes, FourierNorm norm) {
  return real_lines("fft2", x, s, axes, norm, false);
}
ComplexTensor ifft2(const ComplexTensor& x, const FourierSizes& s, const Axes& axes, FourierNorm norm) {
  return complex_lines("ifft2", x, s, axes, kInverse, norm);
}
ComplexTensor rfft2(const LazyTensor& x, const FourierSizes& s, const Axes& axes, FourierNorm norm) {
  return real_lines("rfft2", x, s, axes, norm, true);
}
LazyTensor irfft2(const ComplexTensor& x, const FourierSizes& s, const Axes& axes, FourierNorm norm) {
  return lines_to_real("irfft2", x, s, axes, norm);
}

namespace {

enum class Spectrum : std::uint8_t { whole, half };

/// Numbers of cycles over n d.
LazyTensor frequencies(const char* op, std::int64_t n, double d, Spectrum spectrum, DType dtype,
                       std::optional<Device> device) {
  if (n < 1 || n > kMostLength) throw ValueError(fmt::format("{}: n is {}, want 1 to 2^30", op, n));
  ops::check_domain(op, ScalarDomain::floating, dtype);
  const bool is_half = spectrum == Spectrum::half;
  const Shape count{is_half ? n / 2 + 1 : n};
  const LazyTensor i = iota(count, 0, DType::i32, device.value_or(default_device()));
  const LazyTensor cycles = is_half ? i : where(i < static_cast<int>(n - n / 2), i, i - static_cast<int>(n));
  return astype(astype(cycles, compute_type(dtype)) / (static_cast<double>(n) * d), dtype);
}

}  // namespace

LazyTensor fftfreq(std::int64_t n, double d, DType dtype, std::optional<Device> device) {
  return frequencies("fftfreq", n, d, Spectrum::whole, dtype, device);
}
LazyTensor rfftfreq(std::int64_t n, double d, DType dtype, std::optional<Device> device) {
  return frequencies("rfftfreq", n, d, Spectrum::half, dtype, device);
}
LazyTensor fftshift(const LazyTensor& x, const Axes& axes) { return shifted("fftshift", x, axes, false); }
ComplexTensor fftshift(const ComplexTensor& x, const Axes& axes) {
  return shifted("fftshift", x, axes, false);
}
LazyTensor ifftshift(const LazyTensor& x, const Axes& axes) { return shifted("ifftshift", x, axes, true); }
ComplexTensor ifftshift(const ComplexTensor& x, const Axes& axes) {
  return shifted("ifftshift", x, axes, true);
}

}  // namespace caldera
