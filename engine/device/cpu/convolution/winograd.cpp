#include "engine/device/cpu/convolution/winograd.h"

#include <algorithm>

#include "engine/device/cpu/convolution/convolution_ops.h"
#include "engine/device/cpu/convolution/winograd_ops.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"

namespace caldera::cpu {
namespace {

constexpr std::int64_t kTile = 4, kWide = 6, kPoints = kWide * kWide, kTaps = 9;
/// Tiles that are worked on together: their transforms stay in an L2 cache for 64 channels.
constexpr std::int64_t kTilesTogether = 32;
/// Channels below which transforms cost more than they save, and results.
constexpr std::int64_t kFewestChannels = 32;
constexpr std::int64_t kFewestTiles = 56;

enum WinogradScratch {
  kWinogradWeights,
  kWinogradImages,
  kWinogradFactors,
  kWinogradProducts,
  kWinogradResults,
  kWinogradGradients,
  kWinogradScratches
};

float* winograd_scratch(WinogradScratch use, std::int64_t elements) {
  thread_local Scratch scratch[kWinogradScratches];
  return reinterpret_cast<float*>(scratch[use].get(static_cast<std::size_t>(elements) * sizeof(float)));
}

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Images and rows of tiles that are worked on together: several whole images, or some rows of one.
struct Unit {
  std::int64_t first_image, images, first_row, rows;
};

/// One side of the convolution: planes (images, channels, height, width).
struct Planes {
  std::int64_t channels, height, width;
  std::int64_t area() const { return height * width; }
  /// Elements between the channels of a pixel in channels-last order; odd many vectors.
  std::int64_t pixel() const { return rounded_up(channels, 32) + 16; }
};

/// The tiles of results.
struct Tiling {
  std::int64_t images, rows, columns;  // of tiles

  Tiling(std::int64_t of_images, const Planes& results)
      : images(of_images),
        rows((results.height + kTile - 1) / kTile),
        columns((results.width + kTile - 1) / kTile) {}
  std::int64_t of_image() const { return rows * columns; }
  std::int64_t rows_together() const {
    return std::max<std::int64_t>(1, std::min(rows, kTilesTogether / columns));
  }
  std::int64_t images_together() const {
    return rows_together() < rows ? 1 : std::max<std::int64_t>(1, kTilesTogether / of_image());
  }
  std::int64_t units_of_image() const { return (rows + rows_together() - 1) / rows_together(); }
  std::int64_t units() const {
    return (images + images_together() - 1) / images_together() * units_of_image();
  }
  Unit unit(std::int64_t number) const {
    const std::int64_t image = number / units_of_image() * images_together(),
                       row = number % units_of_image() * rows_together();
    return {image, std::min(images_together(), images - image), row, std::min(rows_together(), rows - row)};
  }
  std::int64_t tiles(const Unit& unit) const { return unit.images * unit.rows * columns; }
  std::int64_t most_tiles() const { return images_together() * rows_together() * columns; }
};

/// Copies a unit's part of images to channels-last order, with zeros around: rows of `across` pixels from row
/// `top`, column -`left` on.
void spread(const Planes& planes, const float* from, std::int64_t images, std::int64_t top, std::int64_t left,
            std::int64_t down, std::int64_t across, float* to) {
  const ConvolutionOps<float>& ops = convolution_ops<float>();
  const std::int64_t pixel = planes.pixel();
  const std::int64_t first = std::min(left, across), count = std::min(planes.width, across - first);
  for (std::int64_t n = 0; n < images; ++n, from += planes.channels * planes.area()) {
    for (std::int64_t i = 0; i < down; ++i, to += across * pixel) {
      const std::int64_t row = top + i;
      if (row < 0 || row >= planes.height) {
        std::fill_n(to, across * pixel, 0.0F);
        continue;
      }
      std::fill_n(to, first * pixel, 0.0F);
      ops.transpose(planes.channels, count, from + row * planes.width, planes.area(), to + first * pixel,
                    pixel);
      std::fill_n(to + (first + count) * pixel, (across - first - count) * pixel, 0.0F);
    }
  }
}

/// Calls visit(tile's number, its image, row, column within the unit).
template <class Visit>
void for_each_tile(const Tiling& tiling, const Unit& unit, const Visit& visit) {
  std::int64_t number = 0;
  for (std::int64_t n = 0; n < unit.images; ++n) {
    for (std::int64_t i = 0; i < unit.rows; ++i) {
      for (std::int64_t j = 0; j < tiling.columns; ++j) visit(number++, n, i, j);
    }
  }
}

/// Transforms what tiles see of images: (points, tiles, pixel).
void transform_images(const Planes& planes, const Tiling& tiling, const Unit& unit, std::int64_t padding_row,
                      std::int64_t padding_column, const float* images, float* to, std::int64_t plane) {
  const WinogradOps& ops = winograd_ops();
  const std::int64_t down = kTile * unit.rows + 2, across = kTile * tiling.columns + 2,
                     pixel = planes.pixel();
  float* const wide = winograd_scratch(kWinogradImages, unit.images * down * across * pixel);
  spread(planes, images + unit.first_image * planes.channels * planes.area(), unit.images,
         unit.first_row * kTile - padding_row, padding_column, down, across, wide);
  const std::int64_t vectors = (planes.channels + ops.lanes - 1) / ops.lanes;
  for_each_tile(tiling, unit, [&](std::int64_t t, std::int64_t n, std::int64_t i, std::int64_t j) {
    ops.image(vectors, wide + ((n * down + i * kTile) * across + j * kTile) * pixel, across * pixel, pixel,
              to + t * pixel, kWide * plane, plane);
  });
}

/// Weights transformed, (points, panels of results, channels, columns of a tile of products).
/// `place(result, channel, tap)` is where an element is.
template <class Place>
void transform_weights(std::int64_t channels, std::int64_t results, const float* weights, const Place& place,
                       float* to) {
  const WinogradOps& ops = winograd_ops();
  const std::int64_t columns = convolution_ops<float>().columns, panels = (results + columns - 1) / columns,
                     plane = panels * channels * columns;
  const double time = 4.0 * static_cast<double>(channels * results);
  parallel_ranges(channels, in_parallel() ? 1 : threads_for(time, channels),
                  [&](std::int64_t first, std::int64_t last) {
                    float* const held = winograd_scratch(kWinogradGradients, kTaps * columns);
                    for (std::int64_t panel = 0; panel < panels; ++panel) {
                      const std::int64_t begin = panel * columns, count = std::min(columns, results - begin);
                      for (std::int64_t c = first; c < last; ++c) {
                        for (std::int64_t tap = 0; tap < kTaps; ++tap) {
                          for (std::int64_t k = 0; k < count; ++k)
                            held[tap * columns + k] = weights[place(begin + k, c, tap)];
                          std::fill_n(held + tap * columns + count, columns - count, 0.0F);
                        }
                        ops.weight(columns / ops.lanes, held, 3 * columns, columns,
                                   to + (panel * channels + c) * columns, kWide * plane, plane);
                      }
                    }
                  });
}

/// Results of images, whose channels `weights` (transformed) multiplies.
void convolve_tiles(std::int64_t images, const Planes& source, const Planes& result, std::int64_t padding_row,
                    std::int64_t padding_column, const float* weights, const float* from, float* to) {
  const ConvolutionOps<float>& ops = convolution_ops<float>();
  const WinogradOps& transforms = winograd_ops();
  const Tiling tiling(images, result);
  const std::int64_t panels = (result.channels + ops.columns - 1) / ops.columns, most = tiling.most_tiles(),
                     in_pixel = source.pixel(), out_pixel = result.pixel(),
                     weight_plane = panels * source.channels * ops.columns, factor_plane = most * in_pixel,
                     product_plane = most * out_pixel;
  parallel_ranges(
      tiling.units(), in_parallel() ? 1 : threads_for(1e9, tiling.units()),
      [&](std::int64_t first, std::int64_t last) {
        float* const factors = winograd_scratch(kWinogradFactors, kPoints * factor_plane);
        float* const products = winograd_scratch(kWinogradProducts, kPoints * product_plane);
        const std::int64_t across = kTile * tiling.columns;
        float* const tiles = winograd_scratch(kWinogradResults, kTile * across * out_pixel);
        for (std::int64_t u = first; u < last; ++u) {
          const Unit unit = tiling.unit(u);
          transform_images(source, tiling, unit, padding_row, padding_column, from, factors, factor_plane);
          const std::int64_t count = tiling.tiles(unit);
          const std::int64_t rows = even_rows(count, ops.rows);
          for (std::int64_t p = 0; p < kPoints; ++p) {
            for (std::int64_t t = 0; t < count; t += rows) {
              for (std::int64_t panel = 0; panel < panels; ++panel)
                ops.tile(
                    std::min(rows, count - t), source.channels, factors + p * factor_plane + t * in_pixel,
                    in_pixel, weights + p * weight_plane + panel * source.channels * ops.columns, ops.columns,
                    products + p * product_plane + t * out_pixel + panel * ops.columns, out_pixel, false);
            }
          }
          // A row of tiles at a time: its pixels, then its planes.
          const std::int64_t vectors = (result.channels + transforms.lanes - 1) / transforms.lanes;
          for (std::int64_t line = 0; line < unit.images * unit.rows; ++line) {
            for (std::int64_t j = 0; j < tiling.columns; ++j)
              transforms.result(vectors, products + (line * tiling.columns + j) * out_pixel,
                                kWide * product_plane, product_plane, tiles + j * kTile * out_pixel,
                                across * out_pixel, out_pixel);
            float* const planes =
                to + (unit.first_image + line / unit.rows) * result.channels * result.area();
            for (std::int64_t i = 0; i < kTile; ++i) {
              const std::int64_t row = (unit.first_row + line % unit.rows) * kTile + i;
              if (row < result.height)
                ops.transpose(result.width, result.channels, tiles + i * across * out_pixel, out_pixel,
                              planes + row * result.width, result.area());
            }
          }
        }
      });
}

/// The sums over tiles of transformed images times transformed gradients, transformed back. Each thread has a
/// part of the results, so that sums have one order.
void gradient_of_weights(const ConvolutionExtents& e, const float* x, const float* y, float* w) {
  const ConvolutionOps<float>& ops = convolution_ops<float>();
  const WinogradOps& transforms = winograd_ops();
  const Planes source{e.channels, e.in[0], e.in[1]}, result{e.outputs, e.out[0], e.out[1]};
  const Tiling tiling(e.images, result);
  const std::int64_t panels = (e.outputs + ops.columns - 1) / ops.columns, most = tiling.most_tiles(),
                     in_pixel = source.pixel(), factor_plane = most * in_pixel, channels = e.channels;
  parallel_ranges(
      panels, in_parallel() ? 1 : threads_for(1e9, panels), [&](std::int64_t first, std::int64_t last) {
        const std::int64_t begin = first * ops.columns,
                           count = std::min(e.outputs, last * ops.columns) - begin, own = last - first;
        const Planes part{count, result.height, result.width};
        const std::int64_t pixel = part.pixel(), sum_row = own * ops.columns, sum_plane = channels * sum_row,
                           panel_size = most * ops.columns, rows = even_rows(channels, ops.rows),
                           gradient_plane = own * panel_size, across = kTile * tiling.columns;
        float* const factors = winograd_scratch(kWinogradFactors, kPoints * factor_plane);
        float* const gradients = winograd_scratch(kWinogradProducts, kPoints * gradient_plane);
        float* const sums = winograd_scratch(kWinogradGradients, kPoints * sum_plane);
        float* const wide = winograd_scratch(
            kWinogradResults, std::max(most * kTile * kTile * pixel, kTaps * transforms.lanes));
        for (std::int64_t u = 0; u < tiling.units(); ++u) {
          const Unit unit = tiling.unit(u);
          transform_images(source, tiling, unit, e.padding[0], e.padding[1], x, factors, factor_plane);
          const float* from = y + (unit.first_image * e.outputs + begin) * result.area();
          for (std::int64_t n = 0; n < unit.images; ++n, from += e.outputs * result.area())
            spread(part, from, 1, unit.first_row * kTile, 0, kTile * unit.rows, across,
                   wide + n * kTile * unit.rows * across * pixel);
          for_each_tile(tiling, unit, [&](std::int64_t t, std::int64_t n, std::int64_t i, std::int64_t j) {
            const float* const corner = wide + ((n * unit.rows + i) * kTile * across + j * kTile) * pixel;
            for (std::int64_t panel = 0; panel < own; ++panel)
              transforms.result_gradient(
                  ops.columns / transforms.lanes, corner + panel * ops.columns, across * pixel, pixel,
                  gradients + panel * panel_size + t * ops.columns, kWide * gradient_plane, gradient_plane);
          });
          const std::int64_t tiles = tiling.tiles(unit);
          for (std::int64_t p = 0; p < kPoints; ++p) {
            for (std::int64_t c = 0; c < channels; c += rows) {
              for (std::int64_t panel = 0; panel < own; ++panel)
                ops.tile_across(std::min(rows, channels - c), tiles, factors + p * factor_plane + c, in_pixel,
                                gradients + p * gradient_plane + panel * panel_size, ops.columns,
                                sums + p * sum_plane + c * sum_row + panel * ops.columns, sum_row, u > 0);
            }
          }
        }
        for (std::int64_t c = 0; c < channels; ++c) {
          for (std::int64_t o = 0; o < count; o += transforms.lanes) {
            transforms.weight_gradient(1, sums + c * sum_row + o, kWide * sum_plane, sum_plane, wide,
                                       3 * transforms.lanes, transforms.lanes);
            for (std::int64_t k = 0; k < std::min(transforms.lanes, count - o); ++k) {
              for (std::int64_t tap = 0; tap < kTaps; ++tap)
                w[((begin + o + k) * channels + c) * kTaps + tap] = wide[tap * transforms.lanes + k];
            }
          }
        }
      });
}

}  // namespace

bool is_for_winograd(const ConvolutionExtents& e, ConvolutionWork work) {
  for (std::size_t d = 0; d < 2; ++d) {
    if (e.kernel[d] != 3 || e.stride[d] != 1 || e.dilation[d] != 1 || e.padding[d] > 2 || e.in[d] < kTile ||
        e.out[d] < kTile)
      return false;
  }
  static_cast<void>(work);
  const std::int64_t tiles = e.images * ((e.out[0] + kTile - 1) / kTile) * ((e.out[1] + kTile - 1) / kTile);
  return e.groups == 1 && e.channels >= kFewestChannels && e.outputs >= kFewestChannels &&
         tiles >= kFewestTiles;
}

void convolve_winograd(const ConvolutionExtents& e, ConvolutionWork work, const float* a, const float* b,
                       float* out) {
  const Planes x{e.channels, e.in[0], e.in[1]}, y{e.outputs, e.out[0], e.out[1]};
  const std::int64_t columns = convolution_ops<float>().columns;
  if (work == ConvolutionWork::weight_gradient) return gradient_of_weights(e, a, b, out);
  const bool is_forward = work == ConvolutionWork::forward;
  const Planes &source = is_forward ? x : y, &result = is_forward ? y : x;
  float* const weights =
      winograd_scratch(kWinogradWeights, kPoints * source.channels * rounded_up(result.channels, columns));
  if (is_forward) {
    transform_weights(
        e.channels, e.outputs, b,
        [&](std::int64_t o, std::int64_t c, std::int64_t tap) { return (o * e.channels + c) * kTaps + tap; },
        weights);
    convolve_tiles(e.images, x, y, e.padding[0], e.padding[1], weights, a, out);
  } else {
    transform_weights(
        e.outputs, e.channels, b,
        [&](std::int64_t c, std::int64_t o, std::int64_t tap) {
          return (o * e.channels + c) * kTaps + kTaps - 1 - tap;
        },
        weights);
    convolve_tiles(e.images, y, x, 2 - e.padding[0], 2 - e.padding[1], weights, a, out);
  }
}

}  // namespace caldera::cpu
