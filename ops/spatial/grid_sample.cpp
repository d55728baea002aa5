#include "ops/spatial/grid_sample.h"

#include <fmt/core.h>

#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/rounding.h"
#include "ops/index/scatter.h"
#include "ops/linalg/matmul.h"
#include "ops/shape/joining.h"
#include "ops/spatial/windows.h"

namespace caldera {
namespace {

using windows::kLead;

constexpr double kCubicSlope = -0.75;

/// Elements along one axis beside each of the places, (N, taps, places).
struct GridTaps {
  LazyTensor index;  // whole numbers, though floating; maybe outside
  LazyTensor weight;
};

/// One axis of the image.
class GridLine {
 public:
  GridLine(std::int64_t extent, const GridSampleOptions& options)
      : extent_(static_cast<double>(extent)), options_(options) {}

  /// Of places (N, 1, places) from -1 to 1.
  GridTaps taps(const LazyTensor& grid) const {
    const LazyTensor at =
        options_.align_corners ? (grid + 1.0) * ((extent_ - 1) / 2) : ((grid + 1.0) * extent_ - 1.0) / 2.0;
    if (options_.mode == GridInterpolation::nearest) return {round(continued(at)), {}};
    // Cubic interpolation continues the image at each of the elements that it reads.
    const bool is_cubic = options_.mode == GridInterpolation::cubic;
    const LazyTensor place = is_cubic ? at : continued(at);
    const LazyTensor first = stop_gradient(floor(place)), t = place - first;
    const LazyTensor tap = iota(Shape{1, is_cubic ? 4 : 2, 1}, 1, at.dtype(), at.device());
    if (!is_cubic) return {first + tap, where(tap == 0.0, 1.0 - t, t)};
    const LazyTensor from = t + 1.0 - tap, away = abs(from);
    constexpr double a = kCubicSlope;
    return {continued(first + tap - 1.0), where(away <= 1.0, ((a + 2) * away - (a + 3)) * from * from + 1.0,
                                                ((away - 5.0) * away + 8.0) * away * a - 4 * a)};
  }
  LazyTensor is_inside(const LazyTensor& index) const {
    return logical_and(index >= 0.0, index <= extent_ - 1);
  }
  LazyTensor limited(const LazyTensor& index) const {
    return astype(clip(stop_gradient(index), 0.0, extent_ - 1), DType::i32);
  }

 private:
  /// Places in the image for those outside of it.
  LazyTensor continued(const LazyTensor& at) const {
    if (options_.padding_mode == GridPadding::zeros) return at;
    LazyTensor y = at;
    if (options_.padding_mode == GridPadding::reflection) {
      const double low = options_.align_corners ? 0 : -0.5,
                   span = options_.align_corners ? extent_ - 1 : extent_;
      if (span == 0) return zeros_like(at);
      const LazyTensor away = abs(at - low), turns = stop_gradient(floor(away / span)),
                       left = away - turns * span;
      y = where(remainder(turns, 2.0) == 0.0, left + low, span - left + low);
    }
    return clip(y, 0.0, extent_ - 1);
  }

  double extent_;
  GridSampleOptions options_;
};

void check_grid(const LazyTensor& x, const LazyTensor& grid, const GridSampleOptions& options) {
  const char* const op = "grid_sample";
  const int n = x.rank() - kLead;
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  ops::check_domain(op, ScalarDomain::floating, grid.dtype());
  if (n != 2 && n != 3)
    throw ShapeError(
        fmt::format("{}: {} is not (examples, channels) and 2 or 3 spatial axes", op, x.shape().to_string()));
  if (grid.rank() != x.rank() || grid.shape(0) != x.shape(0) || grid.shape(-1) != n)
    throw ShapeError(
        fmt::format("{}: a grid {} beside {}; it has the same examples, {} spatial axes and {} "
                    "coordinates last",
                    op, grid.shape().to_string(), x.shape().to_string(), n, n));
  if (options.mode == GridInterpolation::cubic && n != 2)
    throw ValueError(
        fmt::format("{}: cubic interpolation is of images, not of {}", op, x.shape().to_string()));
  for (int i = kLead; i < x.rank(); ++i) {
    if (x.shape(i) == 0) throw ShapeError(fmt::format("{}: {} is empty", op, x.shape().to_string()));
  }
  ops::check_countable(Shape(x.shape().span().subspan(kLead)), op);
}

}  // namespace

LazyTensor grid_sample(const LazyTensor& x, const LazyTensor& grid, const GridSampleOptions& options) {
  check_grid(x, grid, options);
  const int n = x.rank() - kLead;
  const DType wide = compute_type(promote(x.dtype(), grid.dtype()));
  Shape result = x.shape();
  std::int64_t places = 1, elements = 1;
  for (int i = 0; i < n; ++i) {
    result[i + kLead] = grid.shape(i + 1);
    places *= grid.shape(i + 1);
    elements *= x.shape(i + kLead);
  }
  const LazyTensor values = reshape(astype(x, wide), Shape{x.shape(0), x.shape(1), elements});
  // All taps of a place: those of each axis with those of all before it.
  LazyTensor index, weight, inside;
  std::int64_t count = 1;
  for (int i = 0; i < n; ++i) {
    const GridLine line(x.shape(i + kLead), options);
    // Coordinates stand in reverse.
    const LazyTensor along = slice(astype(grid, wide), -1, n - 1 - i, n - i);
    GridTaps own = line.taps(reshape(along, Shape{x.shape(0), 1, places}));
    const LazyTensor here = line.is_inside(own.index);
    own.index = line.limited(own.index);
    const std::int64_t more = own.index.shape(1);
    const Shape all{x.shape(0), count * more, places};
    const auto joined = [&](const LazyTensor& before, const LazyTensor& after, const auto& with) {
      return reshape(with(expand_dims(before, 2), expand_dims(after, 1)), all);
    };
    if (i == 0) {
      index = own.index;
      weight = own.weight;
      inside = here;
    } else {
      const auto extent = static_cast<int>(x.shape(i + kLead));
      index =
          joined(index, own.index, [&](const LazyTensor& a, const LazyTensor& b) { return a * extent + b; });
      inside = joined(inside, here, logical_and);
      if (weight.defined()) weight = joined(weight, own.weight, multiply);
    }
    count *= more;
  }
  const LazyTensor read = take_along_axis(values, reshape(index, Shape{x.shape(0), 1, count * places}), -1);
  LazyTensor total = reshape(read, Shape{x.shape(0), x.shape(1), count, places});
  if (options.padding_mode == GridPadding::zeros) total = where(expand_dims(inside, 1), total, 0.0);
  if (weight.defined()) total = total * expand_dims(weight, 1);
  total = sum(total, 2);
  return reshape(astype(total, promote(x.dtype(), grid.dtype())), result);
}

LazyTensor affine_grid(const LazyTensor& theta, const Shape& size, bool align_corners) {
  const char* const op = "affine_grid";
  ops::check_domain(op, ScalarDomain::floating, theta.dtype());
  const int n = size.rank() - kLead;
  if ((n != 2 && n != 3) || theta.shape() != Shape{size[0], n, n + 1})
    throw ShapeError(
        fmt::format("{}: theta {} beside size {}; want (N, 2, 3) beside (N, C, H, W), or (N, 3, 4) "
                    "beside (N, C, D, H, W)",
                    op, theta.shape().to_string(), size.to_string()));
  const DType wide = compute_type(theta.dtype());
  Shape grid(size.span().subspan(kLead));
  std::int64_t places = 1;
  for (const std::int64_t extent : grid) {
    if (extent < 1) throw ShapeError(fmt::format("{}: size {} has an empty axis", op, size.to_string()));
    places *= extent;
  }
  std::vector<LazyTensor> coordinates;  // x first
  for (int i = n; i-- > 0;) {
    const auto extent = static_cast<double>(grid[i]);
    const LazyTensor at = iota(grid, i, wide, theta.device());
    if (align_corners)
      coordinates.push_back(extent > 1 ? at * (2 / (extent - 1)) - 1.0 : zeros_like(at));
    else
      coordinates.push_back((at * 2.0 + (1 - extent)) / extent);
  }
  coordinates.push_back(ones_like(coordinates[0]));
  const LazyTensor base = reshape(stack(coordinates, -1), Shape{places, n + 1});
  Shape result{size[0]};
  for (const std::int64_t extent : grid) result.push_back(extent);
  result.push_back(n);
  return reshape(astype(matmul(base, transpose(astype(theta, wide))), theta.dtype()), result);
}

}  // namespace caldera
