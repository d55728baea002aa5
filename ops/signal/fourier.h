// Fast Fourier transforms of any length, with PyTorch's arguments: torch.fft. Part of ops/ops.h.
//
// Composites of matrix products and element-wise operations (ops/signal/dft.h), so that derivatives, vmap and
// every device follow. Operands are floating (DTypeError); those of 16 bits are transformed in float32. An
// axis of another length than `n` (or `s`, one for each axis) is cut, or continued by zeros, at its end.
// ShapeError for an axis that is not there, ValueError for lengths below 1, for repeated axes, and for
// numbers of lengths and axes that differ.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "engine/tensor/axes.h"
#include "ops/signal/complex_tensor.h"

namespace caldera {

/// Says which direction is divided by the number of elements n: the inverse one, none but both by sqrt(n), or
/// the forward one.
enum class FourierNorm : std::uint8_t { backward, ortho, forward };

/// The sums of x[j] exp(-2 pi i j k / n) along an axis, for k = 0 ... n - 1.
ComplexTensor fft(const ComplexTensor& x, std::optional<std::int64_t> n = {}, AxisIndex axis = -1,
                  FourierNorm norm = FourierNorm::backward);
ComplexTensor fft(const LazyTensor& x, std::optional<std::int64_t> n = {}, AxisIndex axis = -1,
                  FourierNorm norm = FourierNorm::backward);
/// Undoes fft().
ComplexTensor ifft(const ComplexTensor& x, std::optional<std::int64_t> n = {}, AxisIndex axis = -1,
                   FourierNorm norm = FourierNorm::backward);
/// fft() of real numbers: the first n / 2 + 1 elements, of which the others are conjugates.
ComplexTensor rfft(const LazyTensor& x, std::optional<std::int64_t> n = {}, AxisIndex axis = -1,
                   FourierNorm norm = FourierNorm::backward);
/// Undoes rfft(): n real numbers (by default 2 (extent - 1)). Imaginary parts of the first element and, of
/// even n, of the last one do not count.
LazyTensor irfft(const ComplexTensor& x, std::optional<std::int64_t> n = {}, AxisIndex axis = -1,
                 FourierNorm norm = FourierNorm::backward);

/// fft() of the n numbers (by default 2 (extent - 1)) of which the first n / 2 + 1 are given, and the others
/// are their conjugates in reverse order: n real numbers.
LazyTensor hfft(const ComplexTensor& x, std::optional<std::int64_t> n = {}, AxisIndex axis = -1,
                FourierNorm norm = FourierNorm::backward);
/// Undoes hfft(): the first n / 2 + 1 elements of ifft() of real numbers.
ComplexTensor ihfft(const LazyTensor& x, std::optional<std::int64_t> n = {}, AxisIndex axis = -1,
                    FourierNorm norm = FourierNorm::backward);

using FourierSizes = std::vector<std::int64_t>;

/// Transforms along several axes: by default the last ones, as many as there are lengths, or all. Those of
/// real numbers halve the last axis named.
ComplexTensor fftn(const ComplexTensor& x, const FourierSizes& s = {}, const Axes& axes = {},
                   FourierNorm norm = FourierNorm::backward);
ComplexTensor fftn(const LazyTensor& x, const FourierSizes& s = {}, const Axes& axes = {},
                   FourierNorm norm = FourierNorm::backward);
ComplexTensor ifftn(const ComplexTensor& x, const FourierSizes& s = {}, const Axes& axes = {},
                    FourierNorm norm = FourierNorm::backward);
ComplexTensor rfftn(const LazyTensor& x, const FourierSizes& s = {}, const Axes& axes = {},
                    FourierNorm norm = FourierNorm::backward);
LazyTensor irfftn(const ComplexTensor& x, const FourierSizes& s = {}, const Axes& axes = {},
                  FourierNorm norm = FourierNorm::backward);

/// Transforms along two axes, by default the last.
ComplexTensor fft2(const ComplexTensor& x, const FourierSizes& s = {}, const Axes& axes = {-2, -1},
                   FourierNorm norm = FourierNorm::backward);
ComplexTensor fft2(const LazyTensor& x, const FourierSizes& s = {}, const Axes& axes = {-2, -1},
                   FourierNorm norm = FourierNorm::backward);
ComplexTensor ifft2(const ComplexTensor& x, const FourierSizes& s = {}, const Axes& axes = {-2, -1},
                    FourierNorm norm = FourierNorm::backward);
ComplexTensor rfft2(const LazyTensor& x, const FourierSizes& s = {}, const Axes& axes = {-2, -1},
                    FourierNorm norm = FourierNorm::backward);
LazyTensor irfft2(const ComplexTensor& x, const FourierSizes& s = {}, const Axes& axes = {-2, -1},
                  FourierNorm norm = FourierNorm::backward);

/// Frequencies of the elements of fft(), in cycles for a step of `d`: 0, 1, ..., -2, -1 over n d.
LazyTensor fftfreq(std::int64_t n, double d = 1, DType dtype = DType::f32, std::optional<Device> device = {});
/// Frequencies of the elements of rfft(): 0, 1, ..., n / 2 over n d.
LazyTensor rfftfreq(std::int64_t n, double d = 1, DType dtype = DType::f32,
                    std::optional<Device> device = {});
/// Moves frequency 0 from the front to the middle of the axes (by default all), and back.
LazyTensor fftshift(const LazyTensor& x, const Axes& axes = {});
ComplexTensor fftshift(const ComplexTensor& x, const Axes& axes = {});
LazyTensor ifftshift(const LazyTensor& x, const Axes& axes = {});
ComplexTensor ifftshift(const ComplexTensor& x, const Axes& axes = {});

}  // namespace caldera
