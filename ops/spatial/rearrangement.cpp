#include "ops/spatial/rearrangement.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"
#include "ops/spatial/windows.h"

namespace caldera {
namespace {

using windows::each;
using windows::kLead;
using windows::padded;
using windows::Windows;

/// x as (examples, channels, height, width).
LazyTensor as_images(const char* op, const LazyTensor& x, std::int64_t factor) {
  if (x.rank() < 3)
    throw ShapeError(fmt::format("{}: {} is not (..., channels, height, width)", op, x.shape().to_string()));
  if (factor < 1 || factor > 32767)
    throw ValueError(fmt::format("{}: a factor of {}, want 1 to 32767", op, factor));
  std::int64_t examples = 1;
  for (int i = 0; i < x.rank() - 3; ++i) examples *= x.shape(i);
  return reshape(x, Shape{examples, x.shape(-3), x.shape(-2), x.shape(-1)});
}

LazyTensor as_given(const LazyTensor& images, const LazyTensor& x) {
  Shape shape = x.shape();
  for (int i = 1; i <= 3; ++i) shape[x.rank() - i] = images.shape(-i);
  return reshape(images, shape);
}

}  // namespace

LazyTensor pixel_shuffle(const LazyTensor& x, std::int64_t r) {
  const LazyTensor images = as_images("pixel_shuffle", x, r);
  const std::int64_t n = images.shape(0), c = images.shape(1) / (r * r), h = images.shape(2),
                     w = images.shape(3);
  if (images.shape(1) % (r * r) != 0)
    throw ShapeError(fmt::format("pixel_shuffle: {} has channels that {} x {} does not divide",
                                 x.shape().to_string(), r, r));
  const LazyTensor split = reshape(images, Shape{n, c, r, r, h, w});
  return as_given(reshape(permute_dims(split, {0, 1, 4, 2, 5, 3}), Shape{n, c, h * r, w * r}), x);
}

LazyTensor pixel_unshuffle(const LazyTensor& x, std::int64_t r) {
  const LazyTensor images = as_images("pixel_unshuffle", x, r);
  const std::int64_t n = images.shape(0), c = images.shape(1), h = images.shape(2) / r,
                     w = images.shape(3) / r;
  if (images.shape(2) % r != 0 || images.shape(3) % r != 0)
    throw ShapeError(fmt::format("pixel_unshuffle: {} has a height or width that {} does not divide",
                                 x.shape().to_string(), r));
  const LazyTensor split = reshape(images, Shape{n, c, h, r, w, r});
  return as_given(reshape(permute_dims(split, {0, 1, 3, 5, 2, 4}), Shape{n, c * r * r, h, w}), x);
}

LazyTensor channel_shuffle(const LazyTensor& x, std::int64_t groups) {
  if (groups < 1) throw ValueError(fmt::format("channel_shuffle: groups is {}, want 1 or more", groups));
  if (x.rank() < 3 || x.shape(1) % groups != 0)
    throw ShapeError(
        fmt::format("channel_shuffle: {} is not (examples, channels, ...) of channels that {} divides",
                    x.shape().to_string(), groups));
  std::int64_t behind = 1;
  for (int i = 2; i < x.rank(); ++i) behind *= x.shape(i);
  const Shape split{x.shape(0), groups, x.shape(1) / groups, behind};
  return reshape(swapaxes(reshape(x, split), 1, 2), x.shape());
}

LazyTensor im2col(const LazyTensor& x, const Spatial& kernel, const ColumnOptions& options) {
  const char* const op = "im2col";
  const int n = windows::spatial_axes(op, x);
  const Spatial padding = each(op, "padding", options.padding, n, 0);
  const LazyTensor wide = padded(x, padding, padding, 0);
  const Windows windows(op, wide, each(op, "kernel", kernel, n, 1), each(op, "stride", options.stride, n, 1),
                        each(op, "dilation", options.dilation, n, 1));
  std::int64_t count = 1;
  for (const std::int64_t along : windows.counts) count *= along;
  std::vector<LazyTensor> rows;
  windows.for_each(wide, [&](const LazyTensor& part) {
    rows.push_back(reshape(part, Shape{x.shape(0), x.shape(1), 1, count}));
  });
  const LazyTensor all = concatenate(rows, 2);
  return reshape(all, Shape{x.shape(0), x.shape(1) * all.shape(2), count});
}

LazyTensor col2im(const LazyTensor& columns, const Spatial& output_size, const Spatial& kernel,
                  const ColumnOptions& options) {
  const char* const op = "col2im";
  if (columns.rank() != 3)
    throw ShapeError(
        fmt::format("{}: {} is not (examples, channels x kernel, windows)", op, columns.shape().to_string()));
  ops::check_domain(op, ScalarDomain::floating, columns.dtype());
  const auto n = static_cast<int>(output_size.size());
  if (n < 1 || n > 3) throw ValueError(fmt::format("{}: output_size has {} extents, want 1 to 3", op, n));
  const Spatial extents = each(op, "output_size", output_size, n, 1), k = each(op, "kernel", kernel, n, 1),
                padding = each(op, "padding", options.padding, n, 0),
                stride = each(op, "stride", options.stride, n, 1),
                dilation = each(op, "dilation", options.dilation, n, 1);
  std::int64_t taps = 1;
  for (const std::int64_t extent : k) taps *= extent;
  if (columns.shape(1) % taps != 0)
    throw ShapeError(fmt::format("{}: {} has rows that a window of {} elements does not divide", op,
                                 columns.shape().to_string(), taps));
  const std::int64_t examples = columns.shape(0), channels = columns.shape(1) / taps;
  Shape wide{examples, channels};
  for (std::size_t i = 0; i < extents.size(); ++i) wide.push_back(extents[i] + 2 * padding[i]);
  const Windows windows(op, zeros(wide, columns.dtype(), columns.device()), k, stride, dilation);
  std::int64_t count = 1;
  Shape parts{examples, channels};
  for (const std::int64_t along : windows.counts) {
    count *= along;
    parts.push_back(along);
  }
  if (count != columns.shape(2))
    throw ShapeError(fmt::format("{}: {} has {} windows, want {}", op, columns.shape().to_string(),
                                 columns.shape(2), count));
  const LazyTensor rows = reshape(columns, Shape{examples, channels, taps, count});
  LazyTensor total;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    Spatial low, high, interior;
    std::int64_t left = tap;
    for (std::size_t i = extents.size(); i-- > 0;) {
      const std::int64_t at = left % k[i] * dilation[i], reach = (windows.counts[i] - 1) * stride[i] + 1;
      left /= k[i];
      low.insert(low.begin(), at);
      high.insert(high.begin(), wide[static_cast<int>(i) + kLead] - at - reach);
      interior.insert(interior.begin(), stride[i] - 1);
    }
    const LazyTensor own = padded(reshape(slice(rows, 2, tap, tap + 1), parts), low, high, 0, interior);
    total = total.defined() ? total + own : own;
  }
  for (std::size_t i = 0; i < extents.size(); ++i)
    total = slice(total, static_cast<int>(i) + kLead, padding[i], padding[i] + extents[i]);
  return total;
}

}  // namespace caldera
