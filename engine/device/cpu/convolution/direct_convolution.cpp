#include "engine/device/cpu/convolution/direct_convolution.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/device/cpu/convolution/convolution_ops.h"
#include "engine/device/cpu/convolution/depthwise_convolution.h"
#include "engine/device/cpu/convolution/window_runs.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"

namespace caldera::cpu {
namespace {

/// Elements of a sum that are laid out at a time, and tiles of columns side by side: a tile's 144 x 32 f32
/// stay in an L1 cache of 32 KiB, all of them in L2. Positions that a gradient of weights sums at a time.
constexpr std::int64_t kDepth = 144;
constexpr std::int64_t kPositions = 192;
constexpr std::int64_t kTilesAcross = 6;
constexpr double kNanosecondsPerFlop = 0.02;
/// Bytes between rows of factors are no multiple of this: such rows would share few sets of the L1 cache.
constexpr std::int64_t kEvenRow = 256;

enum ConvScratch { kWindows, kSums, kFactors, kRowsOfWindows, kConvScratches };

template <class T>
T* conv_scratch(ConvScratch use, std::int64_t elements) {
  thread_local Scratch scratch[kConvScratches];
  return reinterpret_cast<T*>(scratch[use].get(static_cast<std::size_t>(elements) * sizeof(T)));
}

template <class T>
std::int64_t uneven(std::int64_t row) {
  return row % (kEvenRow / static_cast<std::int64_t>(sizeof(T))) == 0
             ? row + 64 / static_cast<std::int64_t>(sizeof(T))
             : row;
}

/// A tap of a window: what it adds to positions, and its place in the kernel.
struct Tap {
  std::int64_t row, column, place;
};

/// A convolution that gathers: result (n, m, i, j) = sum over c and taps of factor[m, (c, tap)] source(n, c,
/// i * stride + tap), which goes to place (i * step + first) of the result's images.
struct Gathering {
  std::int64_t images, channels, results;  // of a group
  WindowAxis rows, columns;
  std::vector<Tap> taps;
  std::int64_t source_image, result_image;  // elements from one to the next, of all groups
  std::array<std::int64_t, 2> step{1, 1}, first{0, 0}, result_extents{};
};

/// Copies what one tap of a window sees of a channel: `count` elements, zeros where that is nothing.
template <class T>
void take_runs(const std::vector<WindowRun>& runs, std::size_t begin, std::size_t end, const T* plane,
               std::int64_t stride, std::int64_t count, T* to) {
  std::int64_t done = 0;
  for (std::size_t r = begin; r < end; ++r) {
    const WindowRun& run = runs[r];
    const T* from = plane + run.from;
    for (; done < run.at; ++done) to[done] = T(0);
    if (stride == 1) {
      std::memcpy(to + run.at, from, static_cast<std::size_t>(run.length) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < run.length; ++i) to[run.at + i] = from[i * stride];
    }
    done += run.length;
  }
  for (; done < count; ++done) to[done] = T(0);
}

/// Writes a block of sums, (results, columns from `begin` on), to images.
template <class T>
void put_sums(const Gathering& g, const T* sums, std::int64_t row, std::int64_t begin, std::int64_t count,
              T* result) {
  const std::int64_t area = g.rows.outputs * g.columns.outputs,
                     plane = g.result_extents[0] * g.result_extents[1];
  for (std::int64_t at = begin; at < begin + count;) {
    const std::int64_t n = at / area, i = at % area / g.columns.outputs, j = at % g.columns.outputs;
    const bool dense = g.step[0] == 1 && g.step[1] == 1 && g.columns.outputs == g.result_extents[1];
    const std::int64_t left = begin + count - at;
    const std::int64_t length = std::min(left, dense ? area - at % area : g.columns.outputs - j);
    T* to = result + n * g.result_image + (i * g.step[0] + g.first[0]) * g.result_extents[1] + j * g.step[1] +
            g.first[1];
    const T* from = sums + at - begin;
    for (std::int64_t m = 0; m < g.results; ++m, to += plane, from += row) {
      if (g.step[1] == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(length) * sizeof(T));
      } else {
        for (std::int64_t k = 0; k < length; ++k) to[k * g.step[1]] = from[k];
      }
    }
    at += length;
  }
}

/// factors: (results, channels x taps), rows `factor_row` apart.
template <class T>
void gather_products(const Gathering& g, const T* factors, std::int64_t factor_row, const T* source,
                     T* result) {
  const ConvolutionOps<T>& ops = convolution_ops<T>();
  const auto taps = static_cast<std::int64_t>(g.taps.size());
  const std::int64_t positions = g.images * g.rows.outputs * g.columns.outputs;
  const std::int64_t tiles = (positions + ops.columns - 1) / ops.columns,
                     plane = g.rows.inputs * g.columns.inputs;
  const double time =
      2 * static_cast<double>(positions * g.results * g.channels * taps) * kNanosecondsPerFlop;
  const std::int64_t rows = even_rows(g.results, ops.rows);
  const std::int64_t channels_at_once = std::max<std::int64_t>(1, kDepth / std::max<std::int64_t>(1, taps));
  parallel_ranges(
      tiles, in_parallel() ? 1 : threads_for(time, tiles), [&](std::int64_t first, std::int64_t last) {
        const std::int64_t across = std::min(kTilesAcross, last - first) * ops.columns,
                           row = across + 64 / static_cast<std::int64_t>(sizeof(T));
        T* const windows = conv_scratch<T>(kWindows, channels_at_once * taps * row);
        T* const sums = conv_scratch<T>(kSums, g.results * row);
        std::vector<WindowRun> runs;
        std::vector<std::size_t> ends;  // of the runs of each tap
        for (std::int64_t begin = first * ops.columns; begin < last * ops.columns; begin += across) {
          const std::int64_t width = std::min(across, last * ops.columns - begin),
                             count = std::min(width, positions - begin);
          runs.clear();
          ends.assign(1, 0);
          for (const Tap& tap : g.taps) {
            append_runs(runs, begin, begin + count, g.rows, g.columns, tap.row, tap.column, g.source_image);
            ends.push_back(runs.size());
          }
          for (std::int64_t c0 = 0; c0 < g.channels; c0 += channels_at_once) {
            const std::int64_t c1 = std::min(g.channels, c0 + channels_at_once), depth = (c1 - c0) * taps;
            T* to = windows;
            for (std::int64_t c = c0; c < c1; ++c) {
              for (std::size_t tap = 0; tap < g.taps.size(); ++tap, to += row)
                take_runs(runs, ends[tap], ends[tap + 1], source + c * plane, g.columns.stride, width, to);
            }
            for (std::int64_t j = 0; j < width; j += ops.columns) {
              for (std::int64_t m = 0; m < g.results; m += rows)
                ops.tile(std::min(rows, g.results - m), depth, factors + m * factor_row + c0 * taps,
                         factor_row, windows + j, row, sums + m * row + j, row, c0 > 0);
            }
          }
          put_sums(g, sums, row, begin, count, result);
        }
      });
}

std::vector<Tap> all_taps(const ConvolutionExtents& e) {
  std::vector<Tap> taps;
  for (std::int64_t k = 0; k < e.kernel[0]; ++k) {
    for (std::int64_t l = 0; l < e.kernel[1]; ++l)
      taps.push_back(
          {k * e.dilation[0] - e.padding[0], l * e.dilation[1] - e.padding[1], k * e.kernel[1] + l});
  }
  return taps;
}

template <class T>
void forward(const ConvolutionExtents& e, const T* x, const T* w, T* y) {
  Gathering g{e.images,
              e.channels,
              e.outputs,
              {e.in[0], e.out[0], e.stride[0]},
              {e.in[1], e.out[1], e.stride[1]},
              all_taps(e),
              e.groups * e.channels * e.in_area(),
              e.groups * e.outputs * e.out_area()};
  g.result_extents = e.out;
  const std::int64_t depth = e.channels * e.taps(), row = uneven<T>(depth);
  for (std::int64_t group = 0; group < e.groups; ++group) {
    const T* factors = w + group * e.outputs * depth;
    if (row != depth) {
      T* copy = conv_scratch<T>(kFactors, e.outputs * row);
      for (std::int64_t m = 0; m < e.outputs; ++m) std::copy_n(factors + m * depth, depth, copy + m * row);
      factors = copy;
    }
    gather_products(g, factors, row, x + group * e.channels * e.in_area(),
                    y + group * e.outputs * e.out_area());
  }
}

/// Rows of x with the same remainder by the stride see the same taps: each such phase is a convolution.
template <class T>
void input_gradient(const ConvolutionExtents& e, const T* y, const T* w, T* x) {
  const std::vector<Tap> all = all_taps(e);
  for (std::int64_t pi = 0; pi < std::min(e.stride[0], e.in[0]); ++pi) {
    for (std::int64_t pj = 0; pj < std::min(e.stride[1], e.in[1]); ++pj) {
      Gathering g{e.images,
                  e.outputs,
                  e.channels,
                  {e.out[0], (e.in[0] - pi + e.stride[0] - 1) / e.stride[0], 1},
                  {e.out[1], (e.in[1] - pj + e.stride[1] - 1) / e.stride[1], 1},
                  {},
                  e.groups * e.outputs * e.out_area(),
                  e.groups * e.channels * e.in_area(),
                  e.stride,
                  {pi, pj},
                  e.in};
      for (const Tap& tap : all) {
        const std::int64_t row = pi - tap.row, column = pj - tap.column;
        if (row % e.stride[0] == 0 && column % e.stride[1] == 0)
          g.taps.push_back({row / e.stride[0], column / e.stride[1], tap.place});
      }
      const auto taps = static_cast<std::int64_t>(g.taps.size());
      const std::int64_t depth = e.outputs * taps, row = uneven<T>(depth);
      T* const factors = conv_scratch<T>(kFactors, std::max<std::int64_t>(1, e.channels * row));
      for (std::int64_t group = 0; group < e.groups; ++group) {
        const T* from = w + group * e.outputs * e.channels * e.taps();
        for (std::int64_t c = 0; c < e.channels; ++c) {
          T* to = factors + c * row;
          for (std::int64_t o = 0; o < e.outputs; ++o) {
            for (const Tap& tap : g.taps) *to++ = from[(o * e.channels + c) * e.taps() + tap.place];
          }
        }
        T* const result = x + group * e.channels * e.in_area();
        if (taps == 0) {
          const std::vector<T> zeros(static_cast<std::size_t>(g.columns.outputs), T(0));
          Gathering line = g;
          line.results = 1;
          for (std::int64_t at = 0; at < e.images * g.rows.outputs; ++at) {
            for (std::int64_t c = 0; c < e.channels; ++c)
              put_sums(line, zeros.data(), 0, at * g.columns.outputs, g.columns.outputs,
                       result + c * e.in_area());
          }
        } else {
          gather_products(g, factors, row, y + group * e.outputs * e.out_area(), result);
        }
      }
    }
  }
}

/// Sums over outputs' positions: columns are (channel, tap), rows outputs.
template <class T>
void weight_gradient(const ConvolutionExtents& e, const T* x, const T* y, T* w) {
  const ConvolutionOps<T>& ops = convolution_ops<T>();
  const std::vector<Tap> taps = all_taps(e);
  const WindowAxis rows{e.in[0], e.out[0], e.stride[0]}, columns{e.in[1], e.out[1], e.stride[1]};
  const std::int64_t width = e.channels * e.taps(), tiles = (width + ops.columns - 1) / ops.columns,
                     positions = e.images * e.out_area(), area = e.out_area();
  const double time = 2 * static_cast<double>(positions * width * e.outputs) * kNanosecondsPerFlop;
  const WindowAxis line{area, area, 1}, one{1, 1, 1};
  for (std::int64_t group = 0; group < e.groups; ++group) {
    const T* const xs = x + group * e.channels * e.in_area();
    const T* const ys = y + group * e.outputs * area;
    T* const ws = w + group * e.outputs * width;
    const auto part = [&](std::int64_t first, std::int64_t last, std::int64_t m0, std::int64_t m1) {
      const std::int64_t across = last - first, row = across * ops.columns + 16, factor_row = kPositions + 16;
      T* const sums = conv_scratch<T>(kSums, (m1 - m0) * row);
      T* const factors = conv_scratch<T>(kFactors, (m1 - m0) * factor_row);
      T* const lines = conv_scratch<T>(kRowsOfWindows, ops.columns * factor_row);
      T* const panel = conv_scratch<T>(kWindows, ops.columns * kPositions);
      const std::int64_t height = even_rows(m1 - m0, ops.rows);
      std::vector<WindowRun> runs, whole;
      std::vector<std::size_t> ends;
      for (std::int64_t begin = 0; begin < positions; begin += kPositions) {
        const std::int64_t end = std::min(positions, begin + kPositions), depth = end - begin;
        whole.clear();
        append_runs(whole, begin, end, one, line, 0, 0, e.groups * e.outputs * area);
        for (std::int64_t m = m0; m < m1; ++m)
          take_runs(whole, 0, whole.size(), ys + m * area, 1, depth, factors + (m - m0) * factor_row);
        runs.clear();
        ends.assign(1, 0);
        for (const Tap& tap : taps) {
          append_runs(runs, begin, end, rows, columns, tap.row, tap.column,
                      e.groups * e.channels * e.in_area());
          ends.push_back(runs.size());
        }
        for (std::int64_t tile = first; tile < last; ++tile) {
          for (std::int64_t j = 0; j < ops.columns; ++j) {
            const std::int64_t column = tile * ops.columns + j, c = column / e.taps();
            const auto tap = static_cast<std::size_t>(column % e.taps());
            T* const to = lines + j * factor_row;
            if (column < width)
              take_runs(runs, ends[tap], ends[tap + 1], xs + c * e.in_area(), e.stride[1], depth, to);
            else
              std::fill_n(to, depth, T(0));
          }
          ops.transpose(ops.columns, depth, lines, factor_row, panel, ops.columns);
          for (std::int64_t m = m0; m < m1; m += height)
            ops.tile(std::min(height, m1 - m), depth, factors + (m - m0) * factor_row, factor_row, panel,
                     ops.columns, sums + (m - m0) * row + (tile - first) * ops.columns, row, begin > 0);
        }
      }
      const std::int64_t from = first * ops.columns, count = std::min(width, last * ops.columns) - from;
      for (std::int64_t m = m0; m < m1; ++m) std::copy_n(sums + (m - m0) * row, count, ws + m * width + from);
    };
    const int threads = in_parallel() ? 1 : threads_for(time, std::max(tiles, e.outputs));
    if (tiles >= 2 * threads)
      parallel_ranges(tiles, threads,
                      [&](std::int64_t first, std::int64_t last) { part(first, last, 0, e.outputs); });
    else
      parallel_ranges(e.outputs, static_cast<int>(std::min<std::int64_t>(threads, e.outputs)),
                      [&](std::int64_t first, std::int64_t last) { part(0, tiles, first, last); });
  }
}

}  // namespace

template <class T>
void convolve(const ConvolutionExtents& e, ConvolutionWork work, const T* a, const T* b, T* out) {
  if (e.is_depthwise()) return convolve_depthwise<T>(e, work, a, b, out);
  switch (work) {
    case ConvolutionWork::forward:
      return forward(e, a, b, out);
    case ConvolutionWork::input_gradient:
      return input_gradient(e, a, b, out);
    case ConvolutionWork::weight_gradient:
      return weight_gradient(e, a, b, out);
  }
}

template void convolve<float>(const ConvolutionExtents&, ConvolutionWork, const float*, const float*, float*);
template void convolve<double>(const ConvolutionExtents&, ConvolutionWork, const double*, const double*,
                               double*);

}  // namespace caldera::cpu
