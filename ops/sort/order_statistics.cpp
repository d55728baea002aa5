#include "ops/sort/order_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "ops/core/along_axis.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/elementwise/rounding.h"
#include "ops/index/scatter.h"
#include "ops/reduce/cumulative.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/joining.h"
#include "ops/shape/manipulation.h"
#include "ops/sort/rows.h"

namespace caldera {
namespace {

using ops::positions_between;
using ops::positions_of;
using ops::Rows;

constexpr double kNoQuantile = std::numeric_limits<double>::quiet_NaN();

/// Where a quantile falls: the elements on either side, and how far it is from the lower to the upper one.
struct Place {
  std::int64_t below, above;
  double share;
};

Place place_between(double q, std::int64_t n, QuantileMode mode) {
  const double exact = q * static_cast<double>(n - 1);
  const auto below = static_cast<std::int64_t>(std::floor(exact));
  const std::int64_t above = std::min(below + 1, n - 1);
  const double share = exact - static_cast<double>(below);
  const auto only = [](std::int64_t at) { return Place{at, at, 0}; };
  switch (mode) {
    case QuantileMode::lower:
      return only(below);
    case QuantileMode::higher:
      return only(share == 0 ? below : above);
    case QuantileMode::midpoint:
      return {below, above, share == 0 ? 0 : 0.5};
    case QuantileMode::nearest:
      return only(share < 0.5 || (share == 0.5 && below % 2 == 0) ? below : above);
    case QuantileMode::linear:
      break;
  }
  return {below, above, share};
}

/// Equal infinities have no difference; an exact position needs no neighbour.
LazyTensor between(const LazyTensor& lower, const LazyTensor& upper, double share) {
  return share == 0 ? lower : lower * (1 - share) + upper * share;
}

LazyTensor are_missing(const LazyTensor& rows) { return astype(isnan(rows), DType::i32); }

/// (rows, quantiles), in the type that is computed with.
LazyTensor quantiles(const Rows& rows, std::span<const double> q, QuantileMode mode) {
  std::vector<Place> places;
  std::int64_t first = rows.length() - 1, last = 0;
  for (const double share : q) {
    places.push_back(place_between(share, rows.length(), mode));
    first = std::min(first, places.back().below);
    last = std::max(last, places.back().share == 0 ? places.back().below : places.back().above);
  }
  const LazyTensor order = positions_between(rows, first, last);
  const auto element = [&](std::int64_t at) {
    return astype(rows.at(slice(order, 1, at - first, at - first + 1)), compute_type(rows.flat().dtype()));
  };
  std::vector<LazyTensor> parts;
  parts.reserve(places.size());
  for (const Place& place : places) {
    const LazyTensor lower = element(place.below);
    parts.push_back(place.share == 0 ? lower : between(lower, element(place.above), place.share));
  }
  const LazyTensor out = parts.size() == 1 ? parts[0] : concatenate(parts, 1);
  return where(isnan(max(stop_gradient(rows.flat()), 1, true)), kNoQuantile, out);
}

/// The same of the elements that are not NaN, which are the first in order: how many differs by row.
LazyTensor quantiles_of_left(const Rows& rows, std::span<const double> q, QuantileMode mode) {
  const DType wide = compute_type(rows.flat().dtype());
  const LazyTensor order = positions_of(rows, false, rows.length());
  const LazyTensor left = rows.length() - sum(are_missing(rows.flat()), 1, true);
  const LazyTensor last = maximum(left - 1, 0);
  const auto element = [&](const LazyTensor& at) {
    return astype(rows.at(take_along_axis(order, at, 1)), wide);
  };
  std::vector<LazyTensor> parts;
  parts.reserve(q.size());
  for (const double wanted : q) {
    const LazyTensor exact = astype(last, wide) * wanted;
    const LazyTensor below = astype(floor(exact), DType::i32);
    const LazyTensor above = minimum(below + 1, last);
    const LazyTensor share = exact - floor(exact);
    switch (mode) {
      case QuantileMode::lower:
        parts.push_back(element(below));
        break;
      case QuantileMode::higher:
        parts.push_back(element(where(share == 0, below, above)));
        break;
      case QuantileMode::nearest:
        parts.push_back(element(minimum(astype(round(exact), DType::i32), last)));
        break;
      default: {
        const LazyTensor lower = element(below), upper = element(above);
        const LazyTensor part = mode == QuantileMode::midpoint ? full_like(share, 0.5) : share;
        parts.push_back(where(share == 0, lower, lower * (1 - part) + upper * part));
      }
    }
  }
  return parts.size() == 1 ? parts[0] : concatenate(parts, 1);
}

struct Quantiles {
  const char* op;
  std::span<const double> q;
  bool single;
  bool of_left;
  QuantileMode mode;
};

LazyTensor quantiles_along(const Quantiles& wanted, const LazyTensor& x, int axis, bool keepdims) {
  const Rows rows(x, axis, wanted.op);
  if (rows.length() == 0)
    throw ShapeError(
        fmt::format("{}: {} has no element along axis {}", wanted.op, x.shape().to_string(), axis));
  LazyTensor out;
  if (rows.empty()) {
    Shape shape = x.shape();
    shape[axis] = static_cast<std::int64_t>(wanted.q.size());
    out = zeros(shape, x.dtype(), x.device());
  } else {
    const LazyTensor found = wanted.of_left ? quantiles_of_left(rows, wanted.q, wanted.mode)
                                            : quantiles(rows, wanted.q, wanted.mode);
    out = rows.restored(astype(found, x.dtype()));
  }
  if (wanted.single) return keepdims ? out : squeeze(out, axis);
  const LazyTensor ahead = moveaxis(out, axis, 0);
  return keepdims ? expand_dims(ahead, axis + 1) : ahead;
}

LazyTensor quantiles_of(const Quantiles& wanted, const LazyTensor& x, int axis, bool keepdims) {
  ops::check_domain(wanted.op, ScalarDomain::floating, x.dtype());
  if (wanted.q.empty()) throw ValueError(fmt::format("{}: no q is given", wanted.op));
  for (const double q : wanted.q) {
    if (!(q >= 0 && q <= 1)) throw ValueError(fmt::format("{}: q = {} is not between 0 and 1", wanted.op, q));
  }
  if (x.rank() > 0 || (axis != 0 && axis != -1))
    return quantiles_along(wanted, x, x.shape().normalize_axis(axis, wanted.op), keepdims);
  return quantiles_along(wanted, reshape(x, Shape{1}), 0, false);
}

/// Rows of x, which have elements, along an axis counted from the front; a tensor without axes as one row.
Rows rows_with_elements(const char* op, const LazyTensor& x, int axis) {
  const bool single = x.rank() == 0 && (axis == 0 || axis == -1);
  const LazyTensor given = single ? reshape(x, Shape{1}) : x;
  const int at = single ? 0 : x.shape().normalize_axis(axis, op);
  if (given.shape(at) == 0)
    throw ShapeError(fmt::format("{}: {} has no element along axis {}", op, x.shape().to_string(), axis));
  return {given, at, op};
}

/// The elements of the rows at positions (rows, 1), in the place of the axis of x.
IndexedResult picked(const LazyTensor& x, const Rows& rows, const LazyTensor& positions, int axis,
                     bool keepdims) {
  const auto placed = [&](const LazyTensor& y) {
    if (x.rank() == 0) return reshape(y, Shape{});
    const LazyTensor kept = rows.restored(y);
    return keepdims ? kept : squeeze(kept, axis);
  };
  return {placed(rows.at(positions)), placed(positions)};
}

IndexedResult nothing_picked(const LazyTensor& x, int axis, bool keepdims) {
  const LazyTensor first = slice(x, axis, 0, 1);
  const LazyTensor values = keepdims ? first : squeeze(first, axis);
  return {values, zeros(values.shape(), DType::i32, x.device())};
}

}  // namespace

LazyTensor quantile(const LazyTensor& x, double q, AxisIndex axis, bool keepdims, QuantileMode mode) {
  return quantiles_of({"quantile", {&q, 1}, true, false, mode}, x, axis, keepdims);
}
LazyTensor quantile(const LazyTensor& x, const std::vector<double>& q, AxisIndex axis, bool keepdims,
                    QuantileMode mode) {
  return quantiles_of({"quantile", q, false, false, mode}, x, axis, keepdims);
}
LazyTensor nanquantile(const LazyTensor& x, double q, AxisIndex axis, bool keepdims, QuantileMode mode) {
  return quantiles_of({"nanquantile", {&q, 1}, true, true, mode}, x, axis, keepdims);
}
LazyTensor nanquantile(const LazyTensor& x, const std::vector<double>& q, AxisIndex axis, bool keepdims,
                       QuantileMode mode) {
  return quantiles_of({"nanquantile", q, false, true, mode}, x, axis, keepdims);
}

LazyTensor median(const LazyTensor& x, AxisIndex axis, bool keepdims) {
  const double half = 0.5;
  return quantiles_of({"median", {&half, 1}, true, false, QuantileMode::linear}, x, axis, keepdims);
}
LazyTensor nanmedian(const LazyTensor& x, AxisIndex axis, bool keepdims) {
  const double half = 0.5;
  return quantiles_of({"nanmedian", {&half, 1}, true, true, QuantileMode::linear}, x, axis, keepdims);
}

IndexedResult median_with_indices(const LazyTensor& x, AxisIndex axis, bool keepdims) {
  ops::check_domain("median_with_indices", ScalarDomain::numeric, x.dtype());
  const Rows rows = rows_with_elements("median_with_indices", x, axis);
  if (rows.empty()) return nothing_picked(x, axis, keepdims);
  const std::int64_t middle = (rows.length() - 1) / 2;
  LazyTensor position = positions_between(rows, middle, middle);
  if (is_floating(x.dtype())) {
    const LazyTensor missing = are_missing(rows.flat());
    position = where(sum(missing, 1, true) > 0, argmax(missing, 1, true), position);
  }
  return picked(x, rows, position, axis, keepdims);
}

IndexedResult kthvalue(const LazyTensor& x, std::int64_t k, AxisIndex axis, bool keepdims) {
  ops::check_domain("kthvalue", ScalarDomain::numeric, x.dtype());
  const Rows rows = rows_with_elements("kthvalue", x, axis);
  if (k < 1 || k > rows.length())
    throw ValueError(
        fmt::format("kthvalue: k = {} of the {} elements along axis {} of {}; it must be from 1 to {}", k,
                    rows.length(), axis, x.shape().to_string(), rows.length()));
  if (rows.empty()) return nothing_picked(x, axis, keepdims);
  return picked(x, rows, positions_between(rows, k - 1, k - 1), axis, keepdims);
}

IndexedResult mode(const LazyTensor& x, AxisIndex axis, bool keepdims) {
  const Rows rows = rows_with_elements("mode", x, axis);
  if (rows.empty()) return nothing_picked(x, axis, keepdims);
  // Equal elements stand side by side in order: the longest run is the mode, and its first element stood
  // first.
  const std::int64_t n = rows.length();
  const LazyTensor order = positions_of(rows, false, n);
  const LazyTensor sorted = stop_gradient(rows.at(order));
  const LazyTensor place = iota(sorted.shape(), 1, DType::i32, x.device());
  LazyTensor begins = slice(place, 1, 0, 1);
  if (n > 1) {
    const LazyTensor changes = slice(sorted, 1, 1, n) != slice(sorted, 1, 0, n - 1);
    const LazyTensor later = slice(place, 1, 1, n);
    begins = cummax(concatenate({begins, where(changes, later, zeros_like(later))}, 1), 1);
  }
  const LazyTensor longest = argmax(place - begins, 1, true);
  return picked(x, rows, take_along_axis(order, take_along_axis(begins, longest, 1), 1), axis, keepdims);
}

}  // namespace caldera
