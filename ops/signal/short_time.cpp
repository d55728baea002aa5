#include "ops/signal/short_time.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "engine/graph/data_leaf.h"
#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/repetition.h"
#include "ops/signal/fourier.h"

namespace caldera {
namespace {

/// Frames as options describe them.
struct Frames {
  std::int64_t size, hop;
  LazyTensor window;  // (size)
  FourierNorm norm;

  Frames(const char* op, const StftOptions& options, DType type, Device device)
      : size(options.n_fft),
        hop(options.hop_length.value_or(options.n_fft / 4)),
        norm(options.normalized ? FourierNorm::ortho : FourierNorm::backward) {
    const std::int64_t length = options.win_length.value_or(size);
    if (size < 1 || hop < 1 || length < 1 || length > size)
      throw ValueError(
          fmt::format("{}: n_fft {}, hop_length {}, win_length {}; want 1 or more, and no window "
                      "longer than a frame",
                      op, size, hop, length));
    if (!options.window.defined()) {
      window = ones(Shape{length}, type, device);
    } else {
      ops::check_domain(op, ScalarDomain::floating, options.window.dtype());
      if (options.window.shape() != Shape{length})
        throw ShapeError(
            fmt::format("{}: a window {} of win_length {}", op, options.window.shape().to_string(), length));
      window = astype(options.window, type);
    }
    const std::int64_t left = (size - length) / 2;
    window = pad(window, {left}, {size - length - left}, 0);
  }

  /// (rows, frames, size) added up where they come from, (rows, all that they reach).
  LazyTensor joined(const LazyTensor& frames) const {
    // In pieces of `hop`: piece q of frame t comes to place t + q.
    const std::int64_t rows = frames.shape(0), count = frames.shape(1), pieces = (size + hop - 1) / hop;
    const LazyTensor wide = pad(frames, {0, 0, 0}, {0, 0, pieces * hop - size}, 0);
    const LazyTensor split = reshape(wide, Shape{rows, count, pieces, hop});
    LazyTensor total;
    for (std::int64_t q = 0; q < pieces; ++q) {
      const LazyTensor own = pad(squeeze(slice(split, 2, q, q + 1), 2), {0, q, 0}, {0, pieces - 1 - q, 0}, 0);
      total = total.defined() ? total + own : own;
    }
    return slice(reshape(total, Shape{rows, (count + pieces - 1) * hop}), 1, 0, size + hop * (count - 1));
  }
};

std::int64_t rows_ahead(const Shape& shape, int axes) {
  std::int64_t rows = 1;
  for (int i = 0; i < shape.rank() - axes; ++i) rows *= shape[i];
  return rows;
}

}  // namespace

ComplexTensor stft(const LazyTensor& x, const StftOptions& options) {
  const char* const op = "stft";
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  if (x.rank() == 0) throw ShapeError(fmt::format("{}: () has no axis of time", op));
  const DType type = compute_type(x.dtype());
  const Frames frames(op, options, type, x.device());
  LazyTensor signal = astype(x, type);
  if (options.center) {
    const std::int64_t margin = frames.size / 2;
    if (options.pad_mode == PadMode::reflect && margin >= x.shape(-1))
      throw ShapeError(fmt::format("{}: {} is too short to be continued by {} elements", op,
                                   x.shape().to_string(), margin));
    std::vector<std::int64_t> margins(static_cast<std::size_t>(x.rank()), 0);
    margins.back() = margin;
    signal = pad(signal, margins, margins, options.pad_mode);
  }
  if (signal.shape(-1) < frames.size)
    throw ShapeError(
        fmt::format("{}: {} is shorter than a frame of {}", op, x.shape().to_string(), frames.size));
  const LazyTensor windows = unfold(signal, -1, frames.size, frames.hop) * frames.window;
  const ComplexTensor y =
      options.onesided ? rfft(windows, {}, -1, frames.norm) : fft(windows, {}, -1, frames.norm);
  return astype(swapaxes(y, -1, -2), x.dtype());
}

LazyTensor istft(const ComplexTensor& x, const StftOptions& options, std::optional<std::int64_t> length) {
  const char* const op = "istft";
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  const DType type = compute_type(x.dtype());
  const Frames frames(op, options, type, x.device());
  const std::int64_t frequencies = options.onesided ? frames.size / 2 + 1 : frames.size;
  if (x.rank() < 2 || x.shape(-2) != frequencies || x.shape(-1) == 0)
    throw ShapeError(
        fmt::format("{}: {} is not (..., {} frequencies, frames)", op, x.shape().to_string(), frequencies));
  if (length && *length < 0) throw ValueError(fmt::format("{}: a length of {}", op, *length));
  const std::int64_t rows = rows_ahead(x.shape(), 2), count = x.shape(-1);
  const ComplexTensor spectra = astype(swapaxes(x, -1, -2), type);
  const ComplexTensor half = slice(spectra, -1, 0, frames.size / 2 + 1);
  const LazyTensor parts = irfft(half, frames.size, -1, frames.norm);
  const LazyTensor squares = broadcast_to(square(frames.window), Shape{1, count, frames.size});
  LazyTensor signal = frames.joined(reshape(parts * frames.window, Shape{rows, count, frames.size})),
             weight = frames.joined(squares);
  const std::int64_t first = options.center ? frames.size / 2 : 0, all = signal.shape(1);
  const std::int64_t stop = length ? first + *length : all - first;
  if (first >= stop) throw ShapeError(fmt::format("{}: {} frames give no element", op, count));
  const auto cut = [&](const LazyTensor& y) { return slice(y, 1, first, std::min(stop, all)); };
  signal = cut(signal) / cut(weight);
  if (stop > all) signal = pad(signal, {0, 0}, {0, stop - all}, 0);
  Shape shape;
  for (int i = 0; i + 2 < x.rank(); ++i) shape.push_back(x.shape(i));
  shape.push_back(signal.shape(1));
  return astype(reshape(signal, shape), x.dtype());
}

namespace {

/// f(i, n) for i = 0 ... where n is the length of a period.
template <class F>
LazyTensor window_of(const char* op, std::int64_t n, bool periodic, DType dtype, std::optional<Device> device,
                     const F& f) {
  if (n < 0 || n > std::numeric_limits<std::int32_t>::max())
    throw ValueError(fmt::format("{}: {} elements", op, n));
  ops::check_domain(op, ScalarDomain::floating, dtype);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(n));
  const auto period = static_cast<double>(periodic ? n : n - 1);
  for (std::int64_t i = 0; i < n; ++i) values.push_back(n == 1 ? 1 : f(static_cast<double>(i), period));
  const Device place = device.value_or(default_device());
  if (dtype == DType::f64) return host_leaf<double>(values, Shape{n}, place);
  return astype(host_leaf<float>(std::vector<float>(values.begin(), values.end()), Shape{n}, place), dtype);
}

double turn(double i, double period) { return std::cos(2 * std::numbers::pi * i / period); }

/// The modified Bessel function I0, by its series: all terms are positive.
double bessel_i0(double x) {
  double term = 1, total = 1;
  for (int k = 1; term > total * 1e-17; ++k) {
    term *= x * x / 4 / (static_cast<double>(k) * k);
    total += term;
  }
  return total;
}

}  // namespace

LazyTensor hann_window(std::int64_t n, bool periodic, DType dtype, std::optional<Device> device) {
  return window_of("hann_window", n, periodic, dtype, device,
                   [](double i, double period) { return 0.5 - 0.5 * turn(i, period); });
}
LazyTensor hamming_window(std::int64_t n, bool periodic, double alpha, double beta, DType dtype,
                          std::optional<Device> device) {
  return window_of("hamming_window", n, periodic, dtype, device,
                   [&](double i, double period) { return alpha - beta * turn(i, period); });
}
LazyTensor blackman_window(std::int64_t n, bool periodic, DType dtype, std::optional<Device> device) {
  return window_of("blackman_window", n, periodic, dtype, device, [](double i, double period) {
    return 0.42 - 0.5 * turn(i, period) + 0.08 * turn(2 * i, period);
  });
}
LazyTensor bartlett_window(std::int64_t n, bool periodic, DType dtype, std::optional<Device> device) {
  return window_of("bartlett_window", n, periodic, dtype, device,
                   [](double i, double period) { return 1 - std::abs(2 * i / period - 1); });
}
LazyTensor kaiser_window(std::int64_t n, bool periodic, double beta, DType dtype,
                         std::optional<Device> device) {
  if (!(std::abs(beta) <= 500))
    throw ValueError(fmt::format("kaiser_window: beta is {}, want at most 500", beta));
  return window_of("kaiser_window", n, periodic, dtype, device, [&](double i, double period) {
    const double r = 2 * i / period - 1;
    return bessel_i0(beta * std::sqrt(std::max(0.0, 1 - r * r))) / bessel_i0(beta);
  });
}

}  // namespace caldera
