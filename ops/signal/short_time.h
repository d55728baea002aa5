// Fourier transforms of windows along a signal, and windows, with PyTorch's arguments: torch.stft,
// torch.istft, torch.hann_window and its like. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/lazy_tensor.h"
#include "ops/shape/padding.h"
#include "ops/signal/complex_tensor.h"

namespace caldera {

struct StftOptions {
  std::int64_t n_fft = 0;                       // elements of a frame
  std::optional<std::int64_t> hop_length = {};  // from one frame to the next; by default n_fft / 4
  std::optional<std::int64_t> win_length = {};  // of a window, which stands in the middle; by default n_fft
  LazyTensor window = {};                       // (win_length); undefined: ones
  bool center = true;                           // frame t is around element t * hop_length
  PadMode pad_mode = PadMode::reflect;          // of stft: what is beyond the ends of centred frames
  bool normalized = false;                      // divides by sqrt(n_fft)
  bool onesided = true;                         // frequencies up to n_fft / 2 alone
};
/// Transforms frames of x (..., time), each times the window: (..., frequencies, frames). Throws ShapeError
/// for signals shorter than a frame and windows of another length, ValueError, DTypeError unless floating.
ComplexTensor stft(const LazyTensor& x, const StftOptions& options);
/// Undoes stft(): frames times the window are added up and divided by the sums of the windows' squares, which
/// must not be 0 (PyTorch checks that; here it gives NaN or infinities). Signals are real: of all frequencies
/// those up to n_fft / 2 count. `length` elements, or as many as the frames reach.
LazyTensor istft(const ComplexTensor& x, const StftOptions& options, std::optional<std::int64_t> length = {});

/// Windows of n elements: symmetric ones, or without the last of n + 1, so that periods join (PyTorch's
/// default). ValueError for negative n, DTypeError unless floating.
/// 1/2 - 1/2 cos(2 pi i / n).
LazyTensor hann_window(std::int64_t n, bool periodic = true, DType dtype = DType::f32,
                       std::optional<Device> device = {});
/// alpha - beta cos(2 pi i / n).
LazyTensor hamming_window(std::int64_t n, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                          DType dtype = DType::f32, std::optional<Device> device = {});
/// 0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n).
LazyTensor blackman_window(std::int64_t n, bool periodic = true, DType dtype = DType::f32,
                           std::optional<Device> device = {});
/// 1 at the middle, falling to 0 at both ends.
LazyTensor bartlett_window(std::int64_t n, bool periodic = true, DType dtype = DType::f32,
                           std::optional<Device> device = {});
/// I0(beta sqrt(1 - r^2)) / I0(beta), r from -1 to 1 (Kaiser and Schafer 1980).
LazyTensor kaiser_window(std::int64_t n, bool periodic = true, double beta = 12, DType dtype = DType::f32,
                         std::optional<Device> device = {});

}  // namespace caldera
