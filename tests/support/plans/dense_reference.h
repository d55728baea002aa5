// A tensor library as plain as it can be: dense doubles, one nested loop an operation. The oracle of the
// random graphs; it shares no code with the engine but the shape type.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/tensor/shape.h"

namespace caldera::testing {

struct Dense {
  Dense() = default;
  explicit Dense(Shape extents, double fill = 0)
      : shape(extents), v(static_cast<std::size_t>(extents.numel()), fill) {}

  /// Element at a point. Missing leading dimensions and extents of 1 broadcast.
  double& operator[](const Dims& point) {
    std::int64_t at = 0;
    const int lead = point.rank() - shape.rank();
    for (int d = 0; d < shape.rank(); ++d) at = at * shape[d] + (shape[d] == 1 ? 0 : point[lead + d]);
    return v[static_cast<std::size_t>(at)];
  }
  double operator[](const Dims& point) const { return const_cast<Dense&>(*this)[point]; }

  Shape shape;
  std::vector<double> v;
};

/// Calls f(point) for every point, in row-major order.
template <class F>
void for_each_point(const Shape& shape, F f) {
  Dims point = Dims::filled(shape.rank(), 0);
  for (std::int64_t left = shape.numel(); left > 0; --left) {
    f(std::as_const(point));
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (++point[d] < shape[d]) break;
      point[d] = 0;
    }
  }
}

namespace dense {

template <class F>
Dense map(const Dense& x, F f) {
  Dense out(x.shape);
  std::transform(x.v.begin(), x.v.end(), out.v.begin(), f);
  return out;
}

template <class F>
Dense zip(const Dense& a, const Dense& b, const Shape& shape, F f) {
  Dense out(shape);
  for_each_point(shape, [&](const Dims& p) { out[p] = f(a[p], b[p]); });
  return out;
}

inline Dense select(const Dense& condition, const Dense& a, const Dense& b, const Shape& shape) {
  Dense out(shape);
  for_each_point(shape, [&](const Dims& p) { out[p] = condition[p] != 0 ? a[p] : b[p]; });
  return out;
}

/// Keeps reduced axes with extent 1.
template <class F>
Dense reduce(const Dense& x, const std::vector<int>& axes, double start, F combine) {
  Shape kept = x.shape;
  for (int axis : axes) kept[axis] = 1;
  Dense out(kept, start);
  for_each_point(x.shape, [&](const Dims& p) { out[p] = combine(out[p], x[p]); });
  return out;
}

/// (batch..., M, K) x (batch..., K, N), batches broadcast to that of `shape`.
inline Dense matmul(const Dense& a, const Dense& b, const Shape& shape) {
  Dense out(shape);
  const int rank = shape.rank();
  for_each_point(shape, [&](const Dims& p) {
    Dims pa = p;
    Dims pb = p;
    for (std::int64_t k = 0; k < a.shape.back(); ++k) {
      pa[rank - 1] = k;
      pb[rank - 2] = k;
      out[p] += a[pa] * b[pb];
    }
  });
  return out;
}

inline Dense reshape(const Dense& x, const Shape& shape) {
  Dense out = x;
  out.shape = shape;
  return out;
}

inline Dense permute(const Dense& x, const std::vector<int>& axes) {
  Shape shape = x.shape;
  for (int d = 0; d < shape.rank(); ++d) shape[d] = x.shape[axes[static_cast<std::size_t>(d)]];
  Dense out(shape);
  for_each_point(x.shape, [&](const Dims& p) {
    Dims q = p;
    for (int d = 0; d < shape.rank(); ++d) q[d] = p[axes[static_cast<std::size_t>(d)]];
    out[q] = x[p];
  });
  return out;
}

inline Dense slice(const Dense& x, int axis, std::int64_t start, std::int64_t step, std::int64_t count) {
  Shape shape = x.shape;
  shape[axis] = count;
  Dense out(shape);
  for_each_point(shape, [&](const Dims& p) {
    Dims q = p;
    q[axis] = start + p[axis] * step;
    out[p] = x[q];
  });
  return out;
}

inline Dense broadcast(const Dense& x, const Shape& shape) {
  Dense out(shape);
  for_each_point(shape, [&](const Dims& p) { out[p] = x[p]; });
  return out;
}

inline Dense pad(const Dense& x, const std::vector<std::int64_t>& low,
                 const std::vector<std::int64_t>& between, const Shape& shape, double value) {
  Dense out(shape, value);
  for_each_point(x.shape, [&](const Dims& p) {
    Dims q = p;
    for (int d = 0; d < p.rank(); ++d) {
      q[d] = low[static_cast<std::size_t>(d)] + p[d] * (between[static_cast<std::size_t>(d)] + 1);
    }
    out[q] = x[p];
  });
  return out;
}

inline Dense concatenate(const std::vector<const Dense*>& parts, int axis) {
  Shape shape = parts[0]->shape;
  shape[axis] = 0;
  for (const Dense* part : parts) shape[axis] += part->shape[axis];
  Dense out(shape);
  std::int64_t start = 0;
  for (const Dense* part : parts) {
    for_each_point(part->shape, [&](const Dims& p) {
      Dims q = p;
      q[axis] += start;
      out[q] = (*part)[p];
    });
    start += part->shape[axis];
  }
  return out;
}

/// One-dimensional indices.
inline Dense take(const Dense& x, const std::vector<std::int32_t>& indices, int axis) {
  Shape shape = x.shape;
  shape[axis] = static_cast<std::int64_t>(indices.size());
  Dense out(shape);
  for_each_point(shape, [&](const Dims& p) {
    Dims q = p;
    q[axis] = indices[static_cast<std::size_t>(p[axis])];
    out[p] = x[q];
  });
  return out;
}

inline Dense scatter_add(const Dense& base, const std::vector<std::int32_t>& indices, const Dense& updates,
                         int axis) {
  Dense out = base;
  for_each_point(updates.shape, [&](const Dims& p) {
    Dims q = p;
    q[axis] = indices[static_cast<std::size_t>(p[axis])];
    out[q] += updates[p];
  });
  return out;
}

}  // namespace dense
}  // namespace caldera::testing
