#include "ops/analysis/sampled_functions.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/real_function.h"
#include "ops/reduce/cumulative.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

int checked_axis(const char* op, const LazyTensor& x, int axis) {
  if (x.rank() == 0) throw ShapeError(fmt::format("{}: () has no axis of samples", op));
  return x.shape().normalize_axis(axis, op);
}

LazyTensor earlier(const LazyTensor& x, int at) {
  return slice(x, at, 0, std::max<std::int64_t>(x.shape(at) - 1, 0));
}
LazyTensor later(const LazyTensor& x, int at) { return slice(x, at, 1, std::nullopt); }

/// A vector with its elements along an axis of a tensor of that rank.
LazyTensor along(const LazyTensor& vector, int rank, int at) {
  Shape shape(Dims::filled(rank, 1));
  shape[at] = vector.numel();
  return reshape(vector, shape);
}

struct Samples {
  LazyTensor y;
  int at;
  DType type;
};
Samples checked_samples(const char* op, const LazyTensor& y, int axis) {
  const DType type = ops::real_type(y.dtype());
  return {astype(y, compute_type(type)), checked_axis(op, y, axis), type};
}

/// The area between each sample and the next.
LazyTensor areas(const Samples& s, const LazyTensor& widths) {
  return (earlier(s.y, s.at) + later(s.y, s.at)) * 0.5 * widths;
}

LazyTensor widths_of(const char* op, const Samples& s, const LazyTensor& x) {
  const LazyTensor real = ops::anchored(ops::as_operand(x, s.y.dtype()), s.y.device());
  if (x.rank() == 1) {
    if (x.numel() != s.y.shape(s.at))
      throw ShapeError(fmt::format("{}: {} positions for the samples of {} along axis {}", op, x.numel(),
                                   s.y.shape().to_string(), s.at));
    return along(later(real, 0) - earlier(real, 0), s.y.rank(), s.at);
  }
  const LazyTensor full = [&] {
    try {
      return broadcast_to(real, s.y.shape());
    } catch (const ShapeError&) {
      throw ShapeError(fmt::format("{}: positions of {} for samples of {}", op, x.shape().to_string(),
                                   s.y.shape().to_string()));
    }
  }();
  return later(full, s.at) - earlier(full, s.at);
}

void check_spacing(const char* op, double spacing) {
  if (!std::isfinite(spacing)) throw ValueError(fmt::format("{}: a spacing of {}", op, spacing));
}

LazyTensor total(const Samples& s, const LazyTensor& parts) { return astype(sum(parts, s.at), s.type); }
LazyTensor running(const Samples& s, const LazyTensor& parts) { return astype(cumsum(parts, s.at), s.type); }

/// Derivatives of samples that are `width` apart, along one axis.
LazyTensor uniform_gradient(const LazyTensor& y, int at, const LazyTensor& width, int edge_order) {
  const std::int64_t n = y.shape(at);
  const auto sample = [&](std::int64_t i) { return slice(y, at, i, i + 1); };
  LazyTensor first, last;
  if (edge_order == 1) {
    first = (sample(1) - sample(0)) / width;
    last = (sample(n - 1) - sample(n - 2)) / width;
  } else {
    first = (-1.5 * sample(0) + 2 * sample(1) - 0.5 * sample(2)) / width;
    last = (1.5 * sample(n - 1) - 2 * sample(n - 2) + 0.5 * sample(n - 3)) / width;
  }
  if (n == 2) return concatenate({first, last}, at);
  const LazyTensor inner = (slice(y, at, 2, n) - slice(y, at, 0, n - 2)) / (2 * width);
  return concatenate({first, inner, last}, at);
}

/// The same of samples at positions along the axis.
LazyTensor gradient_at(const LazyTensor& y, int at, const LazyTensor& positions, int edge_order) {
  const std::int64_t n = y.shape(at);
  const LazyTensor widths = along(later(positions, 0) - earlier(positions, 0), y.rank(), at);
  const auto sample = [&](std::int64_t i) { return slice(y, at, i, i + 1); };
  const auto width = [&](std::int64_t i) { return slice(widths, at, i, i + 1); };
  LazyTensor first, last;
  if (edge_order == 1) {
    first = (sample(1) - sample(0)) / width(0);
    last = (sample(n - 1) - sample(n - 2)) / width(n - 2);
  } else {
    const LazyTensor a = width(0), b = width(1), c = width(n - 3), d = width(n - 2);
    first = -(2 * a + b) / (a * (a + b)) * sample(0) + (a + b) / (a * b) * sample(1) -
            a / (b * (a + b)) * sample(2);
    last = d / (c * (c + d)) * sample(n - 3) - (d + c) / (c * d) * sample(n - 2) +
           (2 * d + c) / (d * (c + d)) * sample(n - 1);
  }
  if (n == 2) return concatenate({first, last}, at);
  const LazyTensor a = earlier(widths, at), b = later(widths, at);
  const LazyTensor inner = -b / (a * (a + b)) * slice(y, at, 0, n - 2) +
                           (b - a) / (a * b) * slice(y, at, 1, n - 1) +
                           a / (b * (a + b)) * slice(y, at, 2, n);
  return concatenate({first, inner, last}, at);
}

}  // namespace

LazyTensor trapezoid(const LazyTensor& y, double dx, AxisIndex axis) {
  const Samples s = checked_samples("trapezoid", y, axis);
  check_spacing("trapezoid", dx);
  return total(s, areas(s, dx));
}
LazyTensor trapezoid(const LazyTensor& y, const LazyTensor& x, AxisIndex axis) {
  const Samples s = checked_samples("trapezoid", y, axis);
  return total(s, areas(s, widths_of("trapezoid", s, x)));
}
LazyTensor cumulative_trapezoid(const LazyTensor& y, double dx, AxisIndex axis) {
  const Samples s = checked_samples("cumulative_trapezoid", y, axis);
  check_spacing("cumulative_trapezoid", dx);
  return running(s, areas(s, dx));
}
LazyTensor cumulative_trapezoid(const LazyTensor& y, const LazyTensor& x, AxisIndex axis) {
  const Samples s = checked_samples("cumulative_trapezoid", y, axis);
  return running(s, areas(s, widths_of("cumulative_trapezoid", s, x)));
}

std::vector<LazyTensor> gradient(const LazyTensor& x, double spacing, const Axes& axes, int edge_order) {
  check_spacing("gradient", spacing);
  const auto count = static_cast<std::size_t>(ops::resolve_axes(axes, x.shape(), "gradient").rank());
  return gradient(x, std::vector<LazyTensor>(count, LazyTensor(spacing)), axes, edge_order);
}

std::vector<LazyTensor> gradient(const LazyTensor& x, const std::vector<LazyTensor>& spacings,
                                 const Axes& axes, int edge_order) {
  ops::check_domain("gradient", ScalarDomain::numeric, x.dtype());
  if (edge_order != 1 && edge_order != 2)
    throw ValueError(fmt::format("gradient: edge_order is {}, want 1 or 2", edge_order));
  ops::resolve_axes(axes, x.shape(), "gradient");
  // In the order in which they are named.
  std::vector<int> order;
  if (axes.are_all()) {
    for (int i = 0; i < x.rank(); ++i) order.push_back(i);
  } else {
    for (const int axis : axes.list()) order.push_back(checked_axis("gradient", x, axis));
  }
  if (spacings.size() != order.size())
    throw ValueError(fmt::format("gradient: {} spacings for {} axes of {}", spacings.size(), order.size(),
                                 x.shape().to_string()));
  const DType type = ops::real_type(x.dtype());
  const LazyTensor y = astype(x, compute_type(type));
  std::vector<LazyTensor> out;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int at = order[i];
    if (x.shape(at) < edge_order + 1)
      throw ShapeError(fmt::format("gradient: {} samples along axis {} of {}, want {} or more", x.shape(at),
                                   at, x.shape().to_string(), edge_order + 1));
    const LazyTensor spacing = ops::anchored(ops::as_operand(spacings[i], y.dtype()), y.device());
    if (spacing.rank() == 0) {
      out.push_back(astype(uniform_gradient(y, at, spacing, edge_order), type));
      continue;
    }
    if (spacing.shape() != Shape{x.shape(at)})
      throw ShapeError(fmt::format("gradient: positions of {} for the samples of {} along axis {}",
                                   spacing.shape().to_string(), x.shape().to_string(), at));
    out.push_back(astype(gradient_at(y, at, spacing, edge_order), type));
  }
  return out;
}

}  // namespace caldera
