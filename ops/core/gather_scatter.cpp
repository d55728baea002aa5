#include "ops/core/gather_scatter.h"

#include <fmt/core.h>

#include <array>
#include <limits>
#include <string>

#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/ranges.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

using ops::gathered;
using ops::Indices;
using ops::scattered;

/// What the attributes of a gather or scatter say.
struct Along {
  explicit Along(const LazyTensor& output)
      : axis(static_cast<int>(output.node().attributes()[0])),
        kind(static_cast<Indices>(output.node().attributes()[1])) {}

  /// What holds of each index, where it meets updates.
  LazyTensor beside(const LazyTensor& of_indices, const LazyTensor& updates) const {
    if (kind != Indices::shared) return of_indices;
    Shape shape = of_indices.shape();
    while (axis + shape.rank() < updates.rank()) shape.push_back(1);
    return reshape(of_indices, shape);
  }
  /// Which updates are not dropped.
  LazyTensor inside(const LazyTensor& indices, const LazyTensor& base, const LazyTensor& updates) const {
    return beside(logical_and(indices >= 0, indices < base.shape(axis)), updates);
  }

  int axis;
  Indices kind;
};

void gather_vjp(VjpContext& c) {
  const Along a(c.output);
  c.grads[0] = scattered(Scatter::add, zeros_like(c.inputs[0]), c.inputs[1], c.cotangent, a.axis, a.kind);
}

void scatter_add_vjp(VjpContext& c) {
  const Along a(c.output);
  if (c.needed[0]) c.grads[0] = c.cotangent;
  if (c.needed[2]) {
    const LazyTensor slopes = gathered(c.cotangent, c.inputs[1], a.axis, a.kind);
    c.grads[2] = where(a.inside(c.inputs[1], c.inputs[0], c.inputs[2]), slopes, zeros_like(slopes));
  }
}

/// Which updates are left: of those with one index the last.
LazyTensor are_last(const Along& a, const LazyTensor& base, const LazyTensor& indices,
                    const LazyTensor& updates) {
  const bool aligned = a.kind != Indices::shared;
  const int axis = aligned ? a.axis : 0;
  const Device device = indices.device();
  // Counted from 1: 0 is what an index outside reads.
  const LazyTensor numbers = aligned
                                 ? iota(indices.shape(), axis, DType::i32, device) + 1
                                 : reshape(arange(indices.numel(), DType::i32, device) + 1, indices.shape());
  const Shape places = aligned ? base.shape() : Shape{base.shape(a.axis)};
  const LazyTensor none = zeros(places, DType::i32, device);
  const LazyTensor last = scattered(Scatter::set, none, indices, numbers, axis, a.kind);
  return a.beside(gathered(last, indices, axis, a.kind) == numbers, updates);
}

void scatter_set_vjp(VjpContext& c) {
  const Along a(c.output);
  const LazyTensor& indices = c.inputs[1];
  if (c.needed[0])
    c.grads[0] = scattered(Scatter::set, c.cotangent, indices, zeros_like(c.inputs[2]), a.axis, a.kind);
  if (c.needed[2]) {
    const LazyTensor slopes = gathered(c.cotangent, indices, a.axis, a.kind);
    c.grads[2] = where(are_last(a, c.inputs[0], indices, c.inputs[2]), slopes, zeros_like(slopes));
  }
}

/// Elements and updates that attain an extremum share its gradient equally.
struct Attained {
  LazyTensor by_base, by_updates;  // conditions
  LazyTensor counts;               // of those that share, at least 1
};
Attained attained(const Along& a, std::span<const LazyTensor> inputs, const LazyTensor& extremum) {
  const LazyTensor &base = inputs[0], &indices = inputs[1], &updates = inputs[2];
  const auto equals = [](const LazyTensor& x, const LazyTensor& y) {
    return logical_or(x == y, logical_and(isnan(x), isnan(y)));
  };
  Attained out;
  out.by_base = equals(base, extremum);
  out.by_updates = logical_and(equals(updates, gathered(extremum, indices, a.axis, a.kind)),
                               a.inside(indices, base, updates));
  out.counts = scattered(Scatter::add, astype(out.by_base, base.dtype()), indices,
                         astype(out.by_updates, base.dtype()), a.axis, a.kind);
  return out;
}

void scatter_extremum_vjp(VjpContext& c) {
  const Along a(c.output);
  const Attained at = attained(a, c.inputs, c.output);
  const LazyTensor share = c.cotangent / at.counts;
  if (c.needed[0]) c.grads[0] = where(at.by_base, share, zeros_like(share));
  if (c.needed[2]) {
    const LazyTensor slopes = gathered(share, c.inputs[1], a.axis, a.kind);
    c.grads[2] = where(at.by_updates, slopes, zeros_like(slopes));
  }
}
void scatter_extremum_jvp(JvpContext& c) {
  const Along a(c.output);
  const Attained at = attained(a, c.inputs, c.output);
  LazyTensor total = zeros_like(c.output);
  if (c.tangents[0].defined()) total = where(at.by_base, c.tangents[0], total);
  if (c.tangents[2].defined()) {
    const LazyTensor moves = where(at.by_updates, c.tangents[2], zeros_like(c.tangents[2]));
    total = scattered(Scatter::add, total, c.inputs[1], moves, a.axis, a.kind);
  }
  c.tangent = total / at.counts;
}

/// Linear in base and updates together: what has no tangent counts as zeros.
void scatter_jvp(JvpContext& c) {
  std::vector<LazyTensor> inputs(c.inputs.begin(), c.inputs.end());
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    if (c.tangents[i].defined())
      inputs[i] = c.tangents[i];
    else if (is_floating(inputs[i].dtype()))
      inputs[i] = zeros_like(inputs[i]);
  }
  const Node& node = c.output.node();
  c.tangent = ops::make(node.op(), node.shape(), node.dtype(), inputs, node.attributes().values());
}

const OpDef kGather{.name = "take", .kind = OpClass::gather, .vjp = gather_vjp, .jvp = ops::linear_jvp};
const OpDef kScatterAdd{
    .name = "scatter_add", .kind = OpClass::scatter, .vjp = scatter_add_vjp, .jvp = scatter_jvp};
const OpDef kScatterSet{
    .name = "scatter", .kind = OpClass::scatter, .vjp = scatter_set_vjp, .jvp = scatter_jvp};
const OpDef kScatterMax{.name = "scatter_max",
                        .kind = OpClass::scatter,
                        .vjp = scatter_extremum_vjp,
                        .jvp = scatter_extremum_jvp};
const OpDef kScatterMin{.name = "scatter_min",
                        .kind = OpClass::scatter,
                        .vjp = scatter_extremum_vjp,
                        .jvp = scatter_extremum_jvp};

const OpDef kScatterMultiply{.name = "scatter_multiply", .kind = OpClass::scatter};

const OpDef& op_of(Scatter how) {
  switch (how) {
    case Scatter::set:
      return kScatterSet;
    case Scatter::maximum:
      return kScatterMax;
    case Scatter::minimum:
      return kScatterMin;
    case Scatter::multiply:
      return kScatterMultiply;
    case Scatter::add:
      break;
  }
  return kScatterAdd;
}

Shape taken_shape(const Shape& x, const Shape& indices, int axis, std::string_view op) {
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

void ops::check_index_type(std::string_view op, const LazyTensor& indices) {
  if (!is_integral(indices.dtype()))
    throw DTypeError(fmt::format("{}: indices must be integers, got {}", op, name(indices.dtype())));
}

LazyTensor ops::narrow_indices(std::string_view op, const LazyTensor& indices, std::int64_t extent,
                               Device device) {
  check_index_type(op, indices);
  // The extent itself is outside.
  if (!holds(DType::i32, indices)) return anchored(as_operand(extent, DType::i32), device);
  if (size_of(indices.dtype()) < 4 || indices.dtype() == DType::i32)
    return anchored(as_operand(indices, DType::i32), device);
  if (extent > std::numeric_limits<std::int32_t>::max())
    throw ShapeError(
        fmt::format("{}: an axis of {} elements is longer than {} indices, which are read as "
                    "int32, can reach",
                    op, extent, name(indices.dtype())));
  const LazyTensor not_above = minimum(indices, extent);
  return astype(is_unsigned(indices.dtype()) ? not_above : maximum(not_above, -extent - 1), DType::i32);
}

LazyTensor ops::gathered(const LazyTensor& x, const LazyTensor& indices, int axis, Indices kind) {
  const std::array<std::int64_t, 2> attributes{axis, static_cast<std::int64_t>(kind)};
  const Shape shape =
      kind != Indices::shared ? indices.shape() : taken_shape(x.shape(), indices.shape(), axis, "take");
  return make(kGather, shape, x.dtype(), {x, indices}, attributes);
}

LazyTensor ops::scattered(Scatter how, const LazyTensor& base, const LazyTensor& indices,
                          const LazyTensor& updates, int axis, Indices kind) {
  const std::array<std::int64_t, 3> attributes{axis, static_cast<std::int64_t>(kind),
                                               static_cast<std::int64_t>(how)};
  return make(op_of(how), base.shape(), base.dtype(), {base, indices, updates}, attributes);
}

LazyTensor ops::scattered_by_shared(std::string_view op, Scatter how, const LazyTensor& base,
                                    const LazyTensor& indices, const LazyTensor& updates, int axis) {
  const int at = base.shape().normalize_axis(axis, std::string(op).c_str());
  const LazyTensor which = indices_along(op, indices, base, at);
  if (how != Scatter::set) check_domain(op, ScalarDomain::numeric, base.dtype());
  const Shape wanted = taken_shape(base.shape(), which.shape(), at, op);
  if (updates.shape() != wanted) {
    throw ShapeError(fmt::format("{}: base {} with indices {} along axis {} needs updates {}, got {}", op,
                                 base.shape().to_string(), which.shape().to_string(), at, wanted.to_string(),
                                 updates.shape().to_string()));
  }
  const LazyTensor added = as_held_operand(op, updates, dtype_beside(updates, base));
  if (added.dtype() != base.dtype()) {
    throw DTypeError(fmt::format("{}: updates are {} beside a base of {}; convert them with astype()", op,
                                 name(added.dtype()), name(base.dtype())));
  }
  return scattered(how, base, which, anchored(added, base.device()), at, Indices::shared);
}

LazyTensor take(const LazyTensor& x, const LazyTensor& indices, AxisIndex axis) {
  const int at = x.shape().normalize_axis(axis, "take");
  return gathered(x, ops::indices_along("take", indices, x, at), at, Indices::shared);
}

LazyTensor scatter_add(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                       AxisIndex axis) {
  return ops::scattered_by_shared("scatter_add", Scatter::add, base, indices, updates, axis);
}

}  // namespace caldera
