// Gather and scatter-add along one axis.
#include <fmt/core.h>

#include <array>

#include "ops/build.h"

namespace caldera {
namespace {

void gather_vjp(VjpContext& c) {
  const auto axis = static_cast<int>(c.output.node().attributes()[0]);
  c.grads[0] = scatter_add(zeros_like(c.inputs[0]), c.inputs[1], c.cotangent, axis);
}

void scatter_add_vjp(VjpContext& c) {
  const auto axis = static_cast<int>(c.output.node().attributes()[0]);
  if (c.needed[0]) c.grads[0] = c.cotangent;
  if (c.needed[2]) c.grads[2] = take(c.cotangent, c.inputs[1], axis);
}

const OpDef kGather{.name = "take", .kind = OpClass::gather, .vjp = gather_vjp, .jvp = ops::linear_jvp};
const OpDef kScatterAdd{
    .name = "scatter_add", .kind = OpClass::scatter_add, .vjp = scatter_add_vjp, .jvp = ops::linear_jvp};

LazyTensor checked_indices(const LazyTensor& indices, const char* op) {
  if (indices.dtype() == DType::i32) return indices;
  if (!is_integral(indices.dtype())) {
    throw DTypeError(fmt::format("{}: indices must be integers, got {}", op, name(indices.dtype())));
  }
  return astype(indices, DType::i32);
}

Shape taken_shape(const Shape& x, const Shape& indices, int axis, const char* op) {
  if (x.rank() - 1 + indices.rank() > kMaxRank) {
    throw ShapeError(fmt::format("{}: shapes {} and {} give more than {} dimensions", op, x.to_string(),
                                 indices.to_string(), kMaxRank));
  }
  Shape out;
  for (int i = 0; i < axis; ++i) out.push_back(x[i]);
  for (std::int64_t extent : indices) out.push_back(extent);
  for (int i = axis + 1; i < x.rank(); ++i) out.push_back(x[i]);
  return out;
}

}  // namespace

LazyTensor take(const LazyTensor& x, const LazyTensor& indices, int axis) {
  const int at = x.shape().normalize_axis(axis, "take");
  const LazyTensor which = checked_indices(indices, "take");
  const std::array<std::int64_t, 1> attributes{at};
  return ops::make(kGather, taken_shape(x.shape(), which.shape(), at, "take"), x.dtype(), {x, which},
                   attributes);
}

LazyTensor scatter_add(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                       int axis) {
  const int at = base.shape().normalize_axis(axis, "scatter_add");
  const LazyTensor which = checked_indices(indices, "scatter_add");
  ops::check_domain("scatter_add", ScalarDomain::numeric, base.dtype());
  const Shape wanted = taken_shape(base.shape(), which.shape(), at, "scatter_add");
  if (updates.shape() != wanted || updates.dtype() != base.dtype()) {
    throw ShapeError(
        fmt::format("scatter_add: base {} with indices {} along axis {} needs updates {} of {}, got {} of {}",
                    base.shape().to_string(), which.shape().to_string(), at, wanted.to_string(),
                    name(base.dtype()), updates.shape().to_string(), name(updates.dtype())));
  }
  const std::array<std::int64_t, 1> attributes{at};
  return ops::make(kScatterAdd, base.shape(), base.dtype(), {base, which, updates}, attributes);
}

}  // namespace caldera
