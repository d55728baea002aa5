#include "ops/shape/dynamic_slicing.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/ranges.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

/// What a rule needs of the attributes: which number moves each axis, counted from 1. Those of a slice count
/// the tensors ahead of them, one, and those of an update two.
std::vector<std::int64_t> numbers_of(const LazyTensor& output, std::int64_t tensors) {
  const auto rank = static_cast<std::size_t>(output.rank());
  const auto attributes = output.node().attributes().values().first(rank);
  std::vector<std::int64_t> numbers(attributes.begin(), attributes.end());
  for (std::int64_t& number : numbers) number = number == 0 ? 0 : number - tensors + 1;
  return numbers;
}

LazyTensor slice_by(const LazyTensor& x, const Shape& sizes, const std::vector<std::int64_t>& numbers,
                    std::span<const LazyTensor> starts);
LazyTensor update_by(const LazyTensor& x, const LazyTensor& update, const std::vector<std::int64_t>& numbers,
                     std::span<const LazyTensor> starts);

void dynamic_slice_vjp(VjpContext& c) {
  c.grads[0] = update_by(zeros_like(c.inputs[0]), c.cotangent, numbers_of(c.output, 1), c.inputs.subspan(1));
}
void dynamic_slice_jvp(JvpContext& c) {
  c.tangent = slice_by(c.tangents[0], c.output.shape(), numbers_of(c.output, 1), c.inputs.subspan(1));
}

void dynamic_update_vjp(VjpContext& c) {
  const std::vector<std::int64_t> numbers = numbers_of(c.output, 2);
  const auto starts = c.inputs.subspan(2);
  if (c.needed[0]) c.grads[0] = update_by(c.cotangent, zeros_like(c.inputs[1]), numbers, starts);
  if (c.needed[1]) c.grads[1] = slice_by(c.cotangent, c.inputs[1].shape(), numbers, starts);
}
void dynamic_update_jvp(JvpContext& c) {
  const auto tangent = [&](std::size_t i) {
    return c.tangents[i].defined() ? c.tangents[i] : zeros_like(c.inputs[i]);
  };
  c.tangent = update_by(tangent(0), tangent(1), numbers_of(c.output, 2), c.inputs.subspan(2));
}

const OpDef kDynamicSlice{.name = "dynamic_slice",
                          .kind = OpClass::dynamic_slice,
                          .vjp = dynamic_slice_vjp,
                          .jvp = dynamic_slice_jvp};
const OpDef kDynamicUpdate{.name = "dynamic_update_slice",
                           .kind = OpClass::dynamic_update,
                           .vjp = dynamic_update_vjp,
                           .jvp = dynamic_update_jvp};

/// `numbers`: for each axis which of `starts`, counted from 1, moves it; 0: none.
LazyTensor slice_by(const LazyTensor& x, const Shape& sizes, const std::vector<std::int64_t>& numbers,
                    std::span<const LazyTensor> starts) {
  std::vector<LazyTensor> inputs{x};
  inputs.insert(inputs.end(), starts.begin(), starts.end());
  std::vector<std::int64_t> attributes = numbers;
  attributes.resize(2 * numbers.size(), 0);
  attributes.resize(3 * numbers.size(), 1);
  return ops::make(kDynamicSlice, sizes, x.dtype(), inputs, attributes);
}

LazyTensor update_by(const LazyTensor& x, const LazyTensor& update, const std::vector<std::int64_t>& numbers,
                     std::span<const LazyTensor> starts) {
  std::vector<LazyTensor> inputs{x, update};
  inputs.insert(inputs.end(), starts.begin(), starts.end());
  std::vector<std::int64_t> attributes = numbers;
  for (std::int64_t& number : attributes) number = number == 0 ? 0 : number + 1;
  return ops::make(kDynamicUpdate, x.shape(), x.dtype(), inputs, attributes);
}

void check_window(std::string_view op, const LazyTensor& x, std::size_t starts,
                  std::span<const std::int64_t> sizes) {
  const auto rank = static_cast<std::size_t>(x.rank());
  if (starts != rank || sizes.size() != rank) {
    throw ShapeError(
        fmt::format("{}: shape {} has {} axes and needs a start and a size for each, got {} and {}", op,
                    x.shape().to_string(), rank, starts, sizes.size()));
  }
  for (std::size_t d = 0; d < rank; ++d) {
    if (sizes[d] >= 0 && sizes[d] <= x.shape()[static_cast<int>(d)]) continue;
    throw ShapeError(fmt::format("{}: size {} along axis {} of shape {}; it must be from 0 to the extent", op,
                                 sizes[d], d, x.shape().to_string()));
  }
}

LazyTensor as_position(std::int64_t start) { return ops::scalar(start, DType::i64); }
LazyTensor as_position(const LazyTensor& start) { return ops::as_operand(start, DType::i64); }

/// The numbers that move a window of `sizes`, and for each axis which of them does.
struct Moves {
  /// `starts` are numbers, C++'s or tensors'.
  template <class Start>
  Moves(const Shape& whole, std::span<const Start> starts, const Shape& sizes) {
    for (int d = 0; d < whole.rank(); ++d) {
      const bool moves = sizes[d] < whole[d];
      if (moves) numbers.push_back(as_position(starts[static_cast<std::size_t>(d)]));
      which.push_back(moves ? static_cast<std::int64_t>(numbers.size()) : 0);
    }
  }
  std::vector<LazyTensor> numbers;
  std::vector<std::int64_t> which;
};

// ---- starts that are computed ----

bool are_numbers(const std::vector<LazyTensor>& starts) {
  return std::all_of(starts.begin(), starts.end(), [](const LazyTensor& start) {
    return ops::is_scalar_leaf(start) && is_integral(start.dtype());
  });
}

template <class Start>
LazyTensor slice_by_numbers(const LazyTensor& x, std::span<const Start> starts,
                            const std::vector<std::int64_t>& sizes) {
  const Shape shape{Dims(std::span<const std::int64_t>(sizes))};
  if (shape == x.shape()) return x;
  const Moves moves(x.shape(), starts, shape);
  return slice_by(x, shape, moves.which, moves.numbers);
}

template <class Start>
LazyTensor update_by_numbers(const LazyTensor& x, const LazyTensor& update, std::span<const Start> starts) {
  if (update.numel() == 0) return x;
  if (update.shape() == x.shape()) return update;
  const Moves moves(x.shape(), starts, update.shape());
  return update_by(x, update, moves.which, moves.numbers);
}

void check_starts(std::string_view op, const std::vector<LazyTensor>& starts) {
  for (const LazyTensor& start : starts) {
    ops::check_index_type(op, start);
    if (start.numel() == 1) continue;
    throw ShapeError(
        fmt::format("{}: a start has the shape {}; it must have one element", op, start.shape().to_string()));
  }
}

/// The indices that a window of `size` takes of an axis.
LazyTensor window_indices(const LazyTensor& start, std::int64_t size, const LazyTensor& x, int axis) {
  const std::int64_t limit = x.shape(axis) - size;
  if (limit > std::numeric_limits<std::int32_t>::max()) {
    throw ShapeError(fmt::format("dynamic_slice: axis {} of shape {} is longer than int32 counts", axis,
                                 x.shape().to_string()));
  }
  const LazyTensor first = reshape(ops::anchored(start, x.device()), Shape{1});
  const LazyTensor inside = minimum(maximum(astype(first, DType::i64), 0), limit);
  return arange(size, DType::i32, x.device()) + astype(inside, DType::i32);
}

LazyTensor updated_along(const LazyTensor& x, const LazyTensor& update, const std::vector<LazyTensor>& starts,
                         int axis) {
  while (axis < x.rank() && update.shape(axis) == x.shape(axis)) ++axis;
  if (axis == x.rank()) return update;
  const LazyTensor indices =
      window_indices(starts[static_cast<std::size_t>(axis)], update.shape(axis), x, axis);
  int next = axis + 1;
  while (next < x.rank() && update.shape(next) == x.shape(next)) ++next;
  const LazyTensor rows =
      next == x.rank() ? update : updated_along(take(x, indices, axis), update, starts, next);
  return ops::scattered(Scatter::set, x, indices, rows, axis, ops::Indices::shared);
}

void check_update(const LazyTensor& x, const LazyTensor& update, std::size_t starts) {
  if (update.dtype() != x.dtype()) {
    throw DTypeError(
        fmt::format("dynamic_update_slice: the update is {}, the tensor {}; convert one with astype()",
                    name(update.dtype()), name(x.dtype())));
  }
  check_window("dynamic_update_slice", x, starts, update.shape().span());
}

}  // namespace

LazyTensor dynamic_slice(const LazyTensor& x, std::span<const std::int64_t> starts,
                         const std::vector<std::int64_t>& sizes) {
  check_window("dynamic_slice", x, starts.size(), sizes);
  return slice_by_numbers(x, starts, sizes);
}

LazyTensor dynamic_slice(const LazyTensor& x, const std::vector<LazyTensor>& starts,
                         const std::vector<std::int64_t>& sizes) {
  check_starts("dynamic_slice", starts);
  check_window("dynamic_slice", x, starts.size(), sizes);
  if (are_numbers(starts)) return slice_by_numbers(x, std::span<const LazyTensor>(starts), sizes);
  LazyTensor y = x;
  for (int d = 0; d < x.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (sizes[at] < x.shape(d)) y = take(y, window_indices(starts[at], sizes[at], y, d), d);
  }
  return y;
}

LazyTensor dynamic_update_slice(const LazyTensor& x, const LazyTensor& update,
                                std::span<const std::int64_t> starts) {
  check_update(x, update, starts.size());
  return update_by_numbers(x, update, starts);
}

LazyTensor dynamic_update_slice(const LazyTensor& x, const LazyTensor& update,
                                const std::vector<LazyTensor>& starts) {
  check_starts("dynamic_update_slice", starts);
  check_update(x, update, starts.size());
  if (are_numbers(starts)) return update_by_numbers(x, update, std::span<const LazyTensor>(starts));
  return update.numel() == 0 ? x : updated_along(x, update, starts, 0);
}

}  // namespace caldera
