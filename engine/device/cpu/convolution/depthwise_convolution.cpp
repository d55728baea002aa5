#include "engine/device/cpu/convolution/depthwise_convolution.h"

#include <algorithm>

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
