#include "ops/groups/scatter_reduce.h"

#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/type_info.h"
#include "ops/core/views.h"
#include "ops/index/scatter.h"
#include "ops/sort/sorting.h"

namespace caldera {
namespace {

/// Stands for its first input; derivatives are those of the second, which computes the same by sorting.
void products_vjp(VjpContext& c) { c.grads[1] = c.cotangent; }
void products_jvp(JvpContext& c) { c.tangent = c.tangents[1]; }
const OpDef kProducts{
    .name = "scatter_reduce", .kind = OpClass::identity, .vjp = products_vjp, .jvp = products_jvp};

/// The products of values by index, at the last of each index along the axis: what a put of all of them
/// leaves.
struct Products {
  LazyTensor indices, values;
};
Products products_by_index(const LazyTensor& given, const LazyTensor& factors, int axis) {
  const LazyTensor order = argsort(given, axis);
  LazyTensor indices = take_along_axis(given, order, axis), values = take_along_axis(factors, order, axis);
  const std::int64_t n = indices.shape(axis);
  const std::vector<std::int64_t> none(static_cast<std::size_t>(indices.rank()), 0);
  // Of indices in order all are equal between two that are.
  for (std::int64_t step = 1; step < n; step *= 2) {
    const auto before = [&](const LazyTensor& x) {
      std::vector<std::int64_t> low = none;
      low[static_cast<std::size_t>(axis)] = step;
      return pad(slice(x, axis, 0, n - step), low, none, 0);
    };
    Shape along(Dims::filled(indices.rank(), 1));
    along[axis] = n;
    const LazyTensor joins =
        logical_and(iota(along, axis, DType::i32, indices.device()) >= static_cast<int>(step),
                    equal(indices, before(indices)));
    values = where(joins, values * before(values), values);
  }
  return {indices, values};
}

FillValue neutral(DType type, bool lowest) {
  if (is_floating(type))
    return lowest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return lowest ? iinfo(type).min : iinfo(type).max;
}

}  // namespace

LazyTensor scatter_reduce(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& values,
                          AxisIndex given, ScatterReduce how, bool include_self) {
  const char* const op = "scatter_reduce";
  ops::check_domain(op, ScalarDomain::numeric, base.dtype());
  const int axis = base.shape().normalize_axis(given, op);
  ops::check_index_type(op, indices);
  bool fit = indices.rank() == base.rank();
  for (int i = 0; fit && i < base.rank(); ++i)
    fit = i == axis || indices.shape(i) == base.shape(i) || indices.shape(i) == 1;
  Shape places = base.shape();
  if (fit) places[axis] = indices.shape(axis);
  const LazyTensor factors = ops::anchored(ops::as_held_operand(op, values, base.dtype()), base.device());
  if (!fit || broadcast_shapes(factors.shape(), places, op) != places)
    throw ShapeError(fmt::format("{}: indices {} and values {} do not broadcast to {} but along axis {}", op,
                                 indices.shape().to_string(), values.shape().to_string(),
                                 base.shape().to_string(), axis));
  const LazyTensor at = broadcast_to(ops::indices_along(op, indices, base, axis), places),
                   each = broadcast_to(factors, places);
  // What the values are combined with.
  const auto start = [&](FillValue otherwise) {
    if (include_self) return base;
    const LazyTensor hit = put_along_axis(zeros(base.shape(), DType::boolean, base.device()), at,
                                          ones(places, DType::boolean, base.device()), axis);
    return where(hit, full_like(base, otherwise), base);
  };
  switch (how) {
    case ScatterReduce::sum:
      return put_along_axis(start(0), at, each, axis, Scatter::add);
    case ScatterReduce::amax:
      return put_along_axis(start(neutral(base.dtype(), true)), at, each, axis, Scatter::maximum);
    case ScatterReduce::amin:
      return put_along_axis(start(neutral(base.dtype(), false)), at, each, axis, Scatter::minimum);
    case ScatterReduce::mean: {
      const LazyTensor zero = zeros(base.shape(), DType::i32, base.device());
      LazyTensor counts =
          put_along_axis(zero, at, ones(places, DType::i32, base.device()), axis, Scatter::add);
      counts = include_self ? counts + 1 : maximum(counts, 1);
      const LazyTensor total = put_along_axis(start(0), at, each, axis, Scatter::add),
                       divisor = astype(counts, base.dtype());
      return is_floating(base.dtype()) ? total / divisor : floor_divide(total, divisor);
    }
    case ScatterReduce::prod:
      break;
  }
  if (at.numel() == 0) return base;
  LazyTensor value = ops::scattered(Scatter::multiply, stop_gradient(start(1)), at, stop_gradient(each), axis,
                                    ops::Indices::aligned);
  if (!is_floating(base.dtype())) return value;
  const Products all = products_by_index(at, each, axis);
  const LazyTensor by_sorting = start(1) * put_along_axis(ones_like(base), all.indices, all.values, axis);
  return ops::make(kProducts, value.shape(), value.dtype(), {value, by_sorting});
}

}  // namespace caldera
