#include "engine/device/cpu/convolution/flat_convolution.h"

#include <algorithm>
#include <vector>

#include "engine/device/cpu/convolution/convolution_ops.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"

namespace caldera::cpu {
namespace {

constexpr std::int64_t kMostResults = 16;
constexpr std::int64_t kMostWeights = 8192;
/// Images whose lines are held at a time by a gradient of weights.
constexpr std::int64_t kImagesTogether = 16;
constexpr double kNanosecondsPerLineFlop = 0.03;

enum FlatScratch { kLines, kLineResults, kLineGradients, kTurnedWeights, kFlatScratches };

template <class T>
T* flat_scratch(FlatScratch use, std::int64_t elements) {
  thread_local Scratch scratch[kFlatScratches];
  return reinterpret_cast<T*>(scratch[use].get(static_cast<std::size_t>(elements) * sizeof(T)));
}

/// Planes with margins: what taps from `first` on see of height x width elements, for results of rows x
/// columns.
struct Lines {
  std::int64_t height, width, rows, columns;
  std::array<std::int64_t, 2> first, last;  // offsets of the outermost taps

  std::int64_t above() const { return std::max<std::int64_t>(0, -first[0]); }
  std::int64_t ahead() const { return std::max<std::int64_t>(0, -first[1]); }
  std::int64_t line() const { return std::max(ahead() + width, columns + last[1] + ahead()); }
  std::int64_t plane() const { return std::max(above() + height, rows + last[0] + above()) * line(); }
  /// Where the tap at such an offset begins.
  std::int64_t start(std::int64_t row, std::int64_t column) const {
    return (row + above()) * line() + column + ahead();
  }
  /// Results on the line, from the first that is needed to the last.
  std::int64_t results() const { return (rows - 1) * line() + columns; }

  /// Copies planes into margins of zeros.
  template <class T>
  void widen(const T* from, std::int64_t planes, T* to) const {
    for (std::int64_t k = 0; k < planes; ++k, to += plane()) {
      std::fill_n(to, plane(), T(0));
      for (std::int64_t i = 0; i < height; ++i, from += width)
        std::copy_n(from, width, to + (i + above()) * line() + ahead());
    }
  }
};

std::int64_t whole_vectors(std::int64_t count, std::int64_t lanes) {
  return (count + lanes - 1) / lanes * lanes;
}

/// result (n, m) = sum over channels and taps of factors (m, channel, tap) and source (n, channel).
template <class T>
void gather_lines(const Lines& lines, std::int64_t images, std::int64_t channels, std::int64_t results,
                  const T* factors, const std::vector<std::int64_t>& offsets, const T* source, T* result) {
  const ConvolutionOps<T>& ops = convolution_ops<T>();
  const auto depth = static_cast<std::int64_t>(offsets.size());
  const std::int64_t row = whole_vectors(lines.results(), ops.columns),
                     held = channels * lines.plane() + 2 * ops.columns, rows = even_rows(results, ops.rows);
  const double time = 2 * kNanosecondsPerLineFlop * static_cast<double>(images * results * depth * row);
  parallel_ranges(images, in_parallel() ? 1 : threads_for(time, images),
                  [&](std::int64_t first, std::int64_t last) {
                    T* const wide = flat_scratch<T>(kLines, held);
                    T* const sums = flat_scratch<T>(kLineResults, results * row);
                    std::fill_n(wide + held - 2 * ops.columns, 2 * ops.columns, T(0));
                    for (std::int64_t n = first; n < last; ++n) {
                      lines.widen(source + n * channels * lines.height * lines.width, channels, wide);
                      for (std::int64_t p = 0; p < row; p += ops.columns) {
                        for (std::int64_t m = 0; m < results; m += rows)
                          ops.tile_at(std::min(rows, results - m), depth, factors + m * depth, depth,
                                      wide + p, offsets.data(), sums + m * row + p, row);
                      }
                      T* to = result + n * results * lines.rows * lines.columns;
                      for (std::int64_t m = 0; m < results; ++m) {
                        for (std::int64_t i = 0; i < lines.rows; ++i, to += lines.columns)
                          std::copy_n(sums + m * row + i * lines.line(), lines.columns, to);
                      }
                    }
                  });
}

/// What each tap of each channel sees begins so far on.
std::vector<std::int64_t> starts_of(const ConvolutionExtents& e, const Lines& lines, std::int64_t channels,
                                    bool turned) {
  std::vector<std::int64_t> starts;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t k = 0; k < e.kernel[0]; ++k) {
      for (std::int64_t l = 0; l < e.kernel[1]; ++l) {
        const std::int64_t row = k * e.dilation[0] - e.padding[0], column = l * e.dilation[1] - e.padding[1];
        starts.push_back(c * lines.plane() +
                         (turned ? lines.start(-row, -column) : lines.start(row, column)));
      }
    }
  }
  return starts;
}

Lines forward_lines(const ConvolutionExtents& e) {
  return {
      e.in[0],
      e.in[1],
      e.out[0],
      e.out[1],
      {-e.padding[0], -e.padding[1]},
      {(e.kernel[0] - 1) * e.dilation[0] - e.padding[0], (e.kernel[1] - 1) * e.dilation[1] - e.padding[1]}};
}

template <class T>
void gradient_of_flat_weights(const ConvolutionExtents& e, const T* x, const T* y, T* w) {
  const ConvolutionOps<T>& ops = convolution_ops<T>();
  const Lines lines = forward_lines(e);
  std::vector<std::int64_t> starts = starts_of(e, lines, e.channels, false);
  const auto width = static_cast<std::int64_t>(starts.size()), lanes = ops.columns / 2;
  const std::int64_t fours = (width + 3) / 4;
  starts.resize(static_cast<std::size_t>(4 * fours), 0);
  const std::int64_t count = whole_vectors(lines.results(), lanes),
                     x_image = e.channels * lines.plane() + ops.columns, y_image = e.outputs * count;
  const double time = 2 * kNanosecondsPerLineFlop * static_cast<double>(e.images * e.outputs * count * width);
  parallel_ranges(
      fours, in_parallel() ? 1 : threads_for(time, fours), [&](std::int64_t first, std::int64_t last) {
        T* const xs = flat_scratch<T>(kLines, kImagesTogether * x_image);
        T* const ys = flat_scratch<T>(kLineGradients, kImagesTogether * y_image);
        const std::int64_t row = 4 * (last - first);
        T* const sums = flat_scratch<T>(kLineResults, e.outputs * row);
        std::fill_n(sums, e.outputs * row, T(0));
        std::fill_n(ys, kImagesTogether * y_image, T(0));
        for (std::int64_t n = 0; n < e.images; n += kImagesTogether) {
          const std::int64_t images = std::min(kImagesTogether, e.images - n);
          for (std::int64_t i = 0; i < images; ++i) {
            lines.widen(x + (n + i) * e.channels * e.in_area(), e.channels, xs + i * x_image);
            std::fill_n(xs + (i + 1) * x_image - ops.columns, ops.columns, T(0));
            const T* from = y + (n + i) * e.outputs * e.out_area();
            for (std::int64_t o = 0; o < e.outputs; ++o) {
              for (std::int64_t r = 0; r < e.out[0]; ++r, from += e.out[1])
                std::copy_n(from, e.out[1], ys + i * y_image + o * count + r * lines.line());
            }
          }
          for (std::int64_t four = first; four < last; ++four) {
            for (std::int64_t o = 0; o < e.outputs; o += ops.dot_rows)
              ops.dots(std::min(ops.dot_rows, e.outputs - o), images, count, ys + o * count, y_image, count,
                       xs, x_image, starts.data() + 4 * four, sums + o * row + 4 * (four - first), row);
          }
        }
        for (std::int64_t o = 0; o < e.outputs; ++o)
          std::copy_n(sums + o * row, std::min(width, 4 * last) - 4 * first, w + o * width + 4 * first);
      });
}

}  // namespace

bool is_for_flat(const ConvolutionExtents& e, ConvolutionWork work) {
  if (e.groups != 1 || e.stride[0] != 1 || e.stride[1] != 1 || e.taps() == 1) return false;
  switch (work) {
    case ConvolutionWork::forward:
      return e.outputs <= kMostResults;
    case ConvolutionWork::input_gradient:
      return e.channels <= kMostResults;
    case ConvolutionWork::weight_gradient:
      break;
  }
  return e.outputs <= 2 * kMostResults && e.outputs * e.channels * e.taps() <= kMostWeights;
}

template <class T>
void convolve_flat(const ConvolutionExtents& e, ConvolutionWork work, const T* a, const T* b, T* out) {
  if (work == ConvolutionWork::weight_gradient) return gradient_of_flat_weights(e, a, b, out);
  Lines lines = forward_lines(e);
  if (work == ConvolutionWork::forward)
    return gather_lines(lines, e.images, e.channels, e.outputs, b, starts_of(e, lines, e.channels, false), a,
                        out);
  lines = {e.out[0],
           e.out[1],
           e.in[0],
           e.in[1],
           {-lines.last[0], -lines.last[1]},
           {-lines.first[0], -lines.first[1]}};
  const std::int64_t taps = e.taps();
  T* const factors = flat_scratch<T>(kTurnedWeights, e.channels * e.outputs * taps);
  for (std::int64_t c = 0; c < e.channels; ++c) {
    for (std::int64_t o = 0; o < e.outputs; ++o)
      std::copy_n(b + (o * e.channels + c) * taps, taps, factors + (c * e.outputs + o) * taps);
  }
  gather_lines(lines, e.images, e.outputs, e.channels, factors, starts_of(e, lines, e.outputs, true), a, out);
}

template void convolve_flat<float>(const ConvolutionExtents&, ConvolutionWork, const float*, const float*,
                                   float*);
template void convolve_flat<double>(const ConvolutionExtents&, ConvolutionWork, const double*, const double*,
                                    double*);

}  // namespace caldera::cpu
