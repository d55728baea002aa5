#include "engine/device/cpu/convolution/depthwise_convolution.h"

#include <algorithm>
#include <array>
#include <vector>

#include "engine/device/cpu/convolution/convolution_ops.h"
#include "engine/device/cpu/host/parallel.h"

namespace caldera::cpu {
namespace {

constexpr double kNanosecondsPerTap = 0.15;

/// Calls visit(tap, y's first element, x's first element, count) for each row of y of one channel and each
/// tap that sees a row of x.
template <class Visit>
void for_each_row(const ConvolutionExtents& e, const Visit& visit) {
  const auto up = [](std::int64_t a, std::int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; };
  for (std::int64_t i = 0; i < e.out[0]; ++i) {
    for (std::int64_t k = 0; k < e.kernel[0]; ++k) {
      const std::int64_t row = i * e.stride[0] - e.padding[0] + k * e.dilation[0];
      if (row < 0 || row >= e.in[0]) continue;
      for (std::int64_t l = 0; l < e.kernel[1]; ++l) {
        const std::int64_t offset = l * e.dilation[1] - e.padding[1];
        const std::int64_t first = up(-offset, e.stride[1]),
                           last = std::min(e.out[1], up(e.in[1] - offset, e.stride[1]));
        if (first < last)
          visit(k * e.kernel[1] + l, i * e.out[1] + first, row * e.in[1] + first * e.stride[1] + offset,
                last - first);
      }
    }
  }
}

/// Correlates planes with a kernel each, in steps of one, as long runs: rows lie side by side with their
/// margins, so that every tap of all points of a block is at one distance. What is computed across two rows
/// is left out.
template <class T>
class DensePlanes {
 public:
  using Pair = std::array<std::int64_t, 2>;

  DensePlanes(const Pair& in, const Pair& out, const Pair& kernel, const Pair& padding, const Pair& dilation)
      : in_(in), out_(out), kernel_(kernel), padding_(padding), dilation_(dilation) {
    width_ = out[1] + (kernel[1] - 1) * dilation[1];
    const std::int64_t more = (kernel[0] - 1) * dilation[0];
    lines_ = std::clamp<std::int64_t>(kBlock / width_ - more, 1, std::max<std::int64_t>(out[0], 1));
    for (std::int64_t k = 0; k < kernel[0]; ++k)
      for (std::int64_t l = 0; l < kernel[1]; ++l)
        offsets_.push_back(k * dilation[0] * width_ + l * dilation[1]);
    const std::int64_t columns = convolution_ops<T>().columns;
    count_ = (lines_ * width_ + columns - 1) / columns * columns;
    plane_.resize(static_cast<std::size_t>(count_ + offsets_.back()));
    sums_.resize(static_cast<std::size_t>(count_));
  }

  void run(const T* from, const T* weights, T* to) {
    for (std::int64_t first = 0; first < out_[0]; first += lines_) {
      const std::int64_t lines = std::min(lines_, out_[0] - first);
      const std::int64_t rows = lines + (kernel_[0] - 1) * dilation_[0];
      const std::int64_t left = std::clamp<std::int64_t>(padding_[1], 0, width_),
                         skipped = std::max<std::int64_t>(-padding_[1], 0),
                         taken = std::clamp<std::int64_t>(in_[1] - skipped, 0, width_ - left);
      for (std::int64_t r = 0; r < rows; ++r) {
        T* const line = plane_.data() + r * width_;
        const std::int64_t row = first + r - padding_[0];
        if (row < 0 || row >= in_[0]) {
          std::fill_n(line, width_, T(0));
          continue;
        }
        std::fill_n(line, left, T(0));
        std::copy_n(from + row * in_[1] + skipped, taken, line + left);
        std::fill(line + left + taken, line + width_, T(0));
      }
      convolution_ops<T>().weighted_sum(count_, static_cast<std::int64_t>(offsets_.size()), weights,
                                        plane_.data(), offsets_.data(), sums_.data());
      for (std::int64_t i = 0; i < lines; ++i)
        std::copy_n(sums_.data() + i * width_, out_[1], to + (first + i) * out_[1]);
    }
  }

 private:
  static constexpr std::int64_t kBlock = 4096;  // elements: of the first cache

  Pair in_, out_, kernel_, padding_, dilation_;
  std::int64_t width_, lines_, count_ = 0;
  std::vector<std::int64_t> offsets_;
  std::vector<T> plane_, sums_;
};

/// Forward, or the gradient of the image, which is the same of y with the kernel turned round.
template <class T>
void convolve_densely(const ConvolutionExtents& e, bool is_forward, const T* a, const T* b, T* out,
                      std::int64_t first, std::int64_t last) {
  const std::int64_t taps = e.taps();
  std::array<std::int64_t, 2> padding = e.padding;
  for (std::size_t i = 0; !is_forward && i < 2; ++i)
    padding[i] = e.dilation[i] * (e.kernel[i] - 1) - e.padding[i];
  DensePlanes<T> planes(is_forward ? e.in : e.out, is_forward ? e.out : e.in, e.kernel, padding, e.dilation);
  const std::int64_t source = is_forward ? e.in_area() : e.out_area(),
                     result = is_forward ? e.out_area() : e.in_area();
  std::vector<T> turned(static_cast<std::size_t>(taps));
  for (std::int64_t plane = first; plane < last; ++plane) {
    const T* const w = b + plane % e.groups * taps;
    if (is_forward)
      std::copy_n(w, taps, turned.data());
    else
      std::reverse_copy(w, w + taps, turned.data());
    planes.run(a + plane * source, turned.data(), out + plane * result);
  }
}

}  // namespace

template <class T>
void convolve_depthwise(const ConvolutionExtents& e, ConvolutionWork work, const T* a, const T* b, T* out) {
  const ConvolutionOps<T>& ops = convolution_ops<T>();
  const std::int64_t planes = e.images * e.groups, taps = e.taps(), step = e.stride[1];
  const double time = kNanosecondsPerTap * static_cast<double>(planes * taps * e.out_area());
  if (work == ConvolutionWork::weight_gradient) {
    parallel_ranges(e.groups, in_parallel() ? 1 : threads_for(time, e.groups),
                    [&](std::int64_t first, std::int64_t last) {
                      std::fill(out + first * taps, out + last * taps, T(0));
                      for (std::int64_t c = first; c < last; ++c) {
                        for (std::int64_t n = 0; n < e.images; ++n) {
                          const T *x = a + (n * e.groups + c) * e.in_area(),
                                  *y = b + (n * e.groups + c) * e.out_area();
                          for_each_row(e, [&](std::int64_t tap, std::int64_t of_y, std::int64_t of_x,
                                              std::int64_t count) {
                            out[c * taps + tap] += ops.dot(count, x + of_x, step, y + of_y);
                          });
                        }
                      }
                    });
    return;
  }
  const bool is_forward = work == ConvolutionWork::forward;
  const std::int64_t result = is_forward ? e.out_area() : e.in_area(),
                     source = is_forward ? e.in_area() : e.out_area();
  parallel_ranges(
      planes, in_parallel() ? 1 : threads_for(time, planes), [&](std::int64_t first, std::int64_t last) {
        if (e.stride[0] == 1 && step == 1) return convolve_densely(e, is_forward, a, b, out, first, last);
        std::fill(out + first * result, out + last * result, T(0));
        for (std::int64_t plane = first; plane < last; ++plane) {
          const T *w = b + plane % e.groups * taps, *from = a + plane * source;
          T* const to = out + plane * result;
          for_each_row(e, [&](std::int64_t tap, std::int64_t of_y, std::int64_t of_x, std::int64_t count) {
            if (is_forward) return ops.add_scaled(count, w[tap], from + of_x, step, to + of_y);
            if (step == 1) return ops.add_scaled(count, w[tap], from + of_y, 1, to + of_x);
            for (std::int64_t i = 0; i < count; ++i) to[of_x + i * step] += w[tap] * from[of_y + i];
          });
        }
      });
}

template void convolve_depthwise<float>(const ConvolutionExtents&, ConvolutionWork, const float*,
                                        const float*, float*);
template void convolve_depthwise<double>(const ConvolutionExtents&, ConvolutionWork, const double*,
                                         const double*, double*);

}  // namespace caldera::cpu
