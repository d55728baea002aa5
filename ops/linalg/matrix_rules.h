// Holds what the rules of the primitives of linear algebra have in common: packed results, and shorthands.
// Internal to ops/linalg/.
#pragma once

#include <array>
#include <initializer_list>

#include "engine/graph/matrix_routine.h"
#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/linalg/identity.h"

namespace caldera::matrices {

// ---- packed results ----

inline Shape batch_of(const LazyTensor& x, int own_axes = 2) {
  return Shape(x.shape().span().first(static_cast<std::size_t>(x.rank() - own_axes)));
}
inline Shape followed_by(Shape shape, std::initializer_list<std::int64_t> extents) {
  for (const std::int64_t extent : extents) shape.push_back(extent);
  return shape;
}

inline LazyTensor make_node(const OpDef& op, MatrixRoutine routine, std::initializer_list<LazyTensor> inputs,
                            std::initializer_list<std::int64_t> extents, bool option = false) {
  const std::array<std::int64_t, 2> attributes{static_cast<std::int64_t>(routine), option ? 1 : 0};
  const LazyTensor& a = *inputs.begin();
  return ops::make(op, followed_by(batch_of(a), extents), a.dtype(), inputs, attributes);
}

/// A square matrix of the extents of a.
inline LazyTensor square_node(const OpDef& op, MatrixRoutine routine, const LazyTensor& a) {
  return make_node(op, routine, {a}, {a.shape(-1), a.shape(-1)});
}

inline bool option_of(const LazyTensor& output) { return output.node().attributes()[kOption] != 0; }

/// All results of a matrix as one node's last axis.
inline LazyTensor packed_node(const OpDef& op, MatrixRoutine routine, const LazyTensor& a,
                              bool option = false) {
  return make_node(op, routine, {a}, {result_size(routine, option, a.shape(-2), a.shape(-1), 0)}, option);
}

/// Takes results out of such an axis, one after the other.
class Unpack {
 public:
  explicit Unpack(const LazyTensor& packed) : packed_(packed) {}

  LazyTensor take(std::initializer_list<std::int64_t> extents) {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    const LazyTensor part = slice(packed_, -1, at_, at_ + count);
    at_ += count;
    return reshape(part, followed_by(batch_of(packed_, 1), extents));
  }

 private:
  LazyTensor packed_;
  std::int64_t at_ = 0;
};

/// One axis of a part's own.
inline LazyTensor flat(const LazyTensor& matrix) {
  return reshape(matrix, followed_by(batch_of(matrix), {matrix.shape(-2) * matrix.shape(-1)}));
}

// ---- shorthands ----

inline LazyTensor turned(const LazyTensor& x) { return transpose(x); }
inline LazyTensor scaled_rows(const LazyTensor& factors, const LazyTensor& x) {
  return expand_dims(factors, -1) * x;
}
inline LazyTensor scaled_columns(const LazyTensor& x, const LazyTensor& factors) {
  return x * expand_dims(factors, -2);
}
inline LazyTensor symmetric(const LazyTensor& x) { return (x + turned(x)) * 0.5; }
inline LazyTensor total(const LazyTensor& x) { return sum(x, {-2, -1}); }

/// 1 / x, and 0 for 0, gradients included.
inline LazyTensor reciprocal_or_zero(const LazyTensor& x) {
  const LazyTensor zero = equal(x, 0.0);
  return where(zero, zeros_like(x), reciprocal(where(zero, ones_like(x), x)));
}

inline LazyTensor with_diagonal(const LazyTensor& values) {
  return expand_dims(values, -1) * identity_like(values, values.shape(-1));
}

/// 1 / (x_j - x_i), and 0 where they are equal.
inline LazyTensor inverse_gaps(const LazyTensor& x) {
  return reciprocal_or_zero(expand_dims(x, -2) - expand_dims(x, -1));
}

constexpr OpDef definition(std::string_view name, VjpRule vjp, JvpRule jvp) {
  return {.name = name, .kind = OpClass::linalg, .vjp = vjp, .jvp = jvp};
}

}  // namespace caldera::matrices
