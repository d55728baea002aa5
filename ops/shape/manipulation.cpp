#include "ops/shape/manipulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ops/core/node_builder.h"
#include "ops/table/families.h"
#include "ops/table/samples.h"

namespace caldera {
namespace {

/// The axes in the order in which they were named, as indices; all of them if none was.
std::vector<int> listed(const Axes& axes, const Shape& shape, const char* op) {
  std::vector<int> out;
  if (axes.are_all()) {
    for (int i = 0; i < shape.rank(); ++i) out.push_back(i);
    return out;
  }
  for (const int axis : axes.list()) out.push_back(shape.normalize_axis(axis, op));
  return out;
}

bool has_repeats(std::vector<int> axes) {
  std::ranges::sort(axes);
  return std::ranges::adjacent_find(axes) != axes.end();
}

LazyTensor rolled(const LazyTensor& x, std::int64_t shift, int axis) {
  const std::int64_t extent = x.shape(axis);
  if (extent == 0) return x;
  const std::int64_t front = (extent - shift % extent) % extent;  // the element that comes to the front
  if (front == 0) return x;
  return concatenate({slice(x, axis, front, std::nullopt), slice(x, axis, 0, front)}, axis);
}

}  // namespace

LazyTensor flip(const LazyTensor& x, const Axes& axes) {
  LazyTensor y = x;
  for (const std::int64_t axis : ops::resolve_axes(axes, x.shape(), "flip")) {
    const int at = static_cast<int>(axis);
    if (x.shape(at) > 1) y = slice(y, at, std::nullopt, std::nullopt, -1);
  }
  return y;
}

LazyTensor roll(const LazyTensor& x, std::int64_t shift) {
  return reshape(rolled(reshape(x, Shape{x.numel()}), shift, 0), x.shape());
}
LazyTensor roll(const LazyTensor& x, std::int64_t shift, const Axes& axes) {
  LazyTensor y = x;
  for (const int axis : listed(axes, x.shape(), "roll")) y = rolled(y, shift, axis);
  return y;
}
LazyTensor roll(const LazyTensor& x, const std::vector<std::int64_t>& shifts, const Axes& axes) {
  const std::vector<int> along = listed(axes, x.shape(), "roll");
  if (along.size() != shifts.size())
    throw ValueError(fmt::format("roll: {} shifts for {} axes of shape {}", shifts.size(), along.size(),
                                 x.shape().to_string()));
  LazyTensor y = x;
  for (std::size_t i = 0; i < along.size(); ++i) y = rolled(y, shifts[i], along[i]);
  return y;
}

LazyTensor moveaxis(const LazyTensor& x, const Axes& source, const Axes& destination) {
  const std::vector<int> from = listed(source, x.shape(), "moveaxis"),
                         to = listed(destination, x.shape(), "moveaxis");
  if (from.size() != to.size() || has_repeats(from) || has_repeats(to))
    throw ShapeError(
        fmt::format("moveaxis: shape {}: {} source axes and {} destinations, want as many of each and "
                    "none twice",
                    x.shape().to_string(), from.size(), to.size()));
  constexpr int kFree = -1;
  std::vector<int> order(static_cast<std::size_t>(x.rank()), kFree);
  for (std::size_t i = 0; i < from.size(); ++i) order[static_cast<std::size_t>(to[i])] = from[i];
  int next = 0;
  for (int& axis : order) {
    if (axis != kFree) continue;
    while (std::ranges::find(from, next) != from.end()) ++next;
    axis = next++;
  }
  return permute_dims(x, order);
}

LazyTensor flatten(const LazyTensor& x, int first, int last) {
  if (x.rank() == 0 && first >= -1 && first <= 0 && last >= -1 && last <= 0) return reshape(x, Shape{1});
  const int begin = x.shape().normalize_axis(first, "flatten"),
            end = x.shape().normalize_axis(last, "flatten");
  if (begin > end)
    throw ShapeError(fmt::format("flatten: axis {} of shape {} does not come before axis {}", first,
                                 x.shape().to_string(), last));
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i > begin && i <= end)
      shape[begin] *= x.shape(i);
    else
      shape.push_back(x.shape(i));
  }
  return reshape(x, shape);
}

LazyTensor unflatten(const LazyTensor& x, int axis, const Shape& extents) {
  const int at = x.shape().normalize_axis(axis, "unflatten");
  const auto refuse = [&] {
    throw ShapeError(fmt::format("unflatten: axis {} of shape {} is not {}", axis, x.shape().to_string(),
                                 extents.to_string()));
  };
  std::int64_t known = 1;
  int unknown = 0;
  for (const std::int64_t extent : extents) {
    if (extent < -1 || (extent == -1 && ++unknown > 1)) refuse();
    if (extent >= 0 && __builtin_mul_overflow(known, extent, &known)) refuse();
  }
  const std::int64_t extent = x.shape(at);
  if (unknown == 0 ? known != extent : (known == 0 || extent % known != 0)) refuse();
  if (extents.empty() || x.rank() - 1 + extents.rank() > kMaxRank) refuse();
  Shape shape;
  for (int i = 0; i < at; ++i) shape.push_back(x.shape(i));
  for (const std::int64_t part : extents) shape.push_back(part == -1 ? extent / known : part);
  for (int i = at + 1; i < x.rank(); ++i) shape.push_back(x.shape(i));
  return reshape(x, shape);
}

std::vector<LazyTensor> unstack(const LazyTensor& x, int axis) {
  const int at = x.shape().normalize_axis(axis, "unstack");
  std::vector<LazyTensor> out;
  for (std::int64_t i = 0; i < x.shape(at); ++i) out.push_back(squeeze(slice(x, at, i, i + 1), at));
  return out;
}

std::vector<LazyTensor> split(const LazyTensor& x, const std::vector<std::int64_t>& sizes, int axis) {
  const int at = x.shape().normalize_axis(axis, "split");
  std::int64_t total = 0;
  bool counted = true;
  for (const std::int64_t size : sizes)
    counted = counted && size >= 0 && !__builtin_add_overflow(total, size, &total);
  if (!counted || total != x.shape(at))
    throw ShapeError(fmt::format("split: the {} sizes do not add up to axis {} of shape {}", sizes.size(),
                                 axis, x.shape().to_string()));
  std::vector<LazyTensor> out;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    out.push_back(slice(x, at, start, start + size));
    start += size;
  }
  return out;
}

std::vector<LazyTensor> split(const LazyTensor& x, std::int64_t size, int axis) {
  const std::int64_t extent = x.shape()[x.shape().normalize_axis(axis, "split")];
  if (size < 1) throw ValueError(fmt::format("split: size is {}, want 1 or more", size));
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = extent; left > 0; left -= sizes.back()) sizes.push_back(std::min(size, left));
  if (extent == 0) sizes.push_back(0);
  return split(x, sizes, axis);
}

std::vector<LazyTensor> chunk(const LazyTensor& x, std::int64_t count, int axis) {
  const std::int64_t extent = x.shape()[x.shape().normalize_axis(axis, "chunk")];
  if (count < 1) throw ValueError(fmt::format("chunk: count is {}, want 1 or more", count));
  if (extent == 0) return std::vector<LazyTensor>(static_cast<std::size_t>(count), x);
  return split(x, extent / count + (extent % count != 0 ? 1 : 0), axis);
}

std::vector<LazyTensor> meshgrid(const std::vector<LazyTensor>& given, GridIndexing indexing) {
  const std::vector<LazyTensor> vectors = ops::as_tensors("meshgrid", given);
  if (vectors.size() > static_cast<std::size_t>(kMaxRank))
    throw ShapeError(fmt::format("meshgrid: {} vectors give more than {} axes", vectors.size(), kMaxRank));
  Shape shape;
  for (const LazyTensor& x : vectors) {
    if (x.rank() > 1) throw ShapeError(fmt::format("meshgrid: {} is not a vector", x.shape().to_string()));
    if (x.dtype() != vectors[0].dtype())
      throw DTypeError(fmt::format("meshgrid: vectors of {} and {}; cast them to one type",
                                   name(vectors[0].dtype()), name(x.dtype())));
    shape.push_back(x.numel());
  }
  const bool swapped = indexing == GridIndexing::xy && shape.rank() > 1;
  if (swapped) std::swap(shape[0], shape[1]);
  std::vector<LazyTensor> out;
  for (int i = 0; i < shape.rank(); ++i) {
    const int axis = swapped && i < 2 ? 1 - i : i;
    Shape own(Dims::filled(shape.rank(), 1));
    own[axis] = shape[axis];
    out.push_back(broadcast_to(reshape(vectors[static_cast<std::size_t>(i)], own), shape));
  }
  return out;
}

std::vector<LazyTensor> broadcast_arrays(const std::vector<LazyTensor>& tensors) {
  Shape shape;
  for (const LazyTensor& x : tensors) shape = broadcast_shapes(shape, x.shape(), "broadcast_arrays");
  std::vector<LazyTensor> out;
  out.reserve(tensors.size());
  for (const LazyTensor& x : ops::as_tensors("broadcast_arrays", tensors))
    out.push_back(broadcast_to(x, shape));
  return out;
}

namespace ops {
namespace {

using Integers = Arguments::Integers;
using Results = std::vector<LazyTensor>;
using Rows = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;

/// Of the argument, or all.
Axes axes_of(const Arguments& a, std::string_view name) { return a.has(name) ? Axes(a.axes(name)) : Axes(); }
Results list(Tensors x) { return {x.begin(), x.end()}; }
Shape shape_of(const Integers& extents) { return Shape(std::span<const std::int64_t>(extents)); }

Arguments axis(std::int64_t i) { return {{"axis", i}}; }

Results call_roll(Tensors x, const Arguments& a) {
  const Integers shifts = a.integers("shift");
  if (shifts.size() != 1) return {roll(x[0], shifts, axes_of(a, "axes"))};
  return {a.has("axes") ? roll(x[0], shifts[0], axes_of(a, "axes")) : roll(x[0], shifts[0])};
}
Rows roll_samples(const Operation&) {
  const auto along = [](Integers shift, Integers axes) {
    return Arguments{{"shift", std::move(shift)}, {"axes", std::move(axes)}};
  };
  return {{{{{7}}}, {{"shift", Integers{2}}}},
          {{{{2, 3}}}, {{"shift", Integers{-8}}}},
          {{{{}}}, {{"shift", Integers{1}}}},
          {{{{0, 3}}}, {{"shift", Integers{1}}}},
          {{{{33}}}, along({5}, {0})},
          {{{{2, 3, 4}}}, along({-1}, {1})},
          {{{{2, 3, 4}}}, along({1, 2}, {0, -1})},
          {{{{3, 5}}}, along({1}, {0, 1})},
          {{{{3, 5}}}, along({1, 1}, {1, 1})},
          {{{{0, 3}}}, along({2}, {0})}};
}

Results call_moveaxis(Tensors x, const Arguments& a) {
  return {moveaxis(x[0], axes_of(a, "source"), axes_of(a, "destination"))};
}
Arguments moves(Integers from, Integers to) {
  return {{"source", std::move(from)}, {"destination", std::move(to)}};
}

Results call_split(Tensors x, const Arguments& a) {
  if (a.has("sizes")) return split(x[0], a.integers("sizes"), a.axis("axis", 0));
  return split(x[0], a.integer("size", 1), a.axis("axis", 0));
}
Arguments sized(std::int64_t size, std::int64_t axis) { return {{"size", size}, {"axis", axis}}; }
Arguments sized(Integers sizes, std::int64_t axis) { return {{"sizes", std::move(sizes)}, {"axis", axis}}; }

Arguments counted(std::int64_t count, std::int64_t axis) { return {{"count", count}, {"axis", axis}}; }
Arguments ranged(std::int64_t first, std::int64_t last) { return {{"first", first}, {"last", last}}; }
Arguments parts(std::int64_t axis, Integers extents) {
  return {{"axis", axis}, {"extents", std::move(extents)}};
}

Results call_meshgrid(Tensors x, const Arguments& a) {
  return meshgrid(list(x), a.text("indexing", "xy") == "ij" ? GridIndexing::ij : GridIndexing::xy);
}

constexpr EntriesOf entry{"manipulation", kAnyType};

}  // namespace

std::span<const Operation> manipulation_operations() {
  static const Operation kTable[] = {
      entry(
          "flip", "flip(x, axes=all)", "The elements along the axes in reverse order.",
          [](Tensors x, const Arguments& a) -> Results { return {flip(x[0], axes_of(a, "axes"))}; },
          [](const Operation&) -> Rows {
            return {{{{{}}}},
                    {{{{7}}}},
                    {{{{2, 3}}}},
                    {{{{2, 3, 4}}}, {{"axes", Integers{1}}}},
                    {{{{2, 3, 4}}}, {{"axes", Integers{-1, 0}}}},
                    {{{{0, 3}}}, {{"axes", Integers{0}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, {{"axes", Integers{2}}}, "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}}, {{"axes", Integers{1, -1}}}, "(2, 3)"},
                    {Refusal::shape, {{{}}}, {{"axes", Integers{0}}}, "()"}};
          }),
      entry("roll", "roll(x, shift, axes=none)",
            "The elements moved on, those beyond the end to the front: in row-major order, or along each of "
            "the axes.",
            call_roll, roll_samples,
            [](const Operation&) -> Errors {
              return {{Refusal::shape, {{{2, 3}}}, {{"shift", Integers{1}}, {"axes", Integers{2}}}, "(2, 3)"},
                      {Refusal::value,
                       {{{2, 3}}},
                       {{"shift", Integers{1, 2}}, {"axes", Integers{0}}},
                       "2 shifts for 1 axes"}};
            }),
      entry(
          "moveaxis", "moveaxis(x, source, destination)",
          "Axes moved to other places; the others keep their order.", call_moveaxis,
          [](const Operation&) -> Rows {
            return {{{{{2, 3, 4}}}, moves({0}, {-1})},
                    {{{{2, 3, 4}}}, moves({-1, 0}, {0, 1})},
                    {{{{2, 3, 4, 2}}}, moves({1}, {2})},
                    {{{{2, 0, 4}}}, moves({2}, {0})},
                    {{{{7}}}, moves({0}, {0})}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, moves({2}, {0}), "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}}, moves({0, 1}, {0}), "2 source axes"},
                    {Refusal::shape, {{{2, 3}}}, moves({0, 1}, {1, -1}), "none twice"}};
          }),
      entry(
          "flatten", "flatten(x, first=0, last=-1)", "Neighbouring axes as one. A scalar gets one axis.",
          [](Tensors x, const Arguments& a) -> Results {
            return {flatten(x[0], a.axis("first", 0), a.axis("last", -1))};
          },
          [](const Operation&) -> Rows {
            return {{{{{}}}},
                    {{{{2, 3, 4}}}},
                    {{{{2, 3, 4}}}, ranged(1, -1)},
                    {{{{2, 3, 4}}}, ranged(0, 1)},
                    {{{{2, 0, 4}}}, ranged(1, 2)}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, ranged(1, 0), "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}}, ranged(0, 2), "(2, 3)"}};
          }),
      entry(
          "unflatten", "unflatten(x, axis, extents)", "An axis as several; one extent may be -1.",
          [](Tensors x, const Arguments& a) -> Results {
            return {unflatten(x[0], a.axis("axis", 0), shape_of(a.integers("extents")))};
          },
          [](const Operation&) -> Rows {
            return {{{{{6}}}, parts(0, {2, 3})},
                    {{{{2, 12}}}, parts(-1, {3, -1, 2})},
                    {{{{4, 3}}}, parts(0, {-1, 2})},
                    {{{{0, 3}}}, parts(0, {0, 5})}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 6}}}, parts(1, {4, 2}), "(4, 2)"},
                    {Refusal::shape, {{{2, 6}}}, parts(1, {4, -1}), "(4, -1)"},
                    {Refusal::shape, {{{2, 6}}}, parts(1, {-1, -1}), "(-1, -1)"},
                    {Refusal::shape, {{{2, 6}}}, parts(2, {6}), "(2, 6)"}};
          }),
      entry(
          "unstack", "unstack(x, axis=0)", "The slices along an axis, without it.",
          [](Tensors x, const Arguments& a) -> Results { return unstack(x[0], a.axis("axis", 0)); },
          [](const Operation&) -> Rows {
            return {{{{{3}}}}, {{{{2, 3}}}}, {{{{2, 3, 4}}}, axis(1)}, {{{{2, 3}}}, axis(-1)}, {{{{2, 0}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, axis(2), "(2, 3)"}, {Refusal::shape, {{{}}}, {}, "()"}};
          }),
      entry(
          "split", "split(x, size or sizes, axis=0)",
          "Parts of a size along an axis, the last with what is left; or parts of given sizes.", call_split,
          [](const Operation&) -> Rows {
            return {{{{{7}}}, sized(3, 0)},
                    {{{{2, 6}}}, sized(2, -1)},
                    {{{{4, 3}}}, sized(9, 0)},
                    {{{{7}}}, sized({2, 0, 5}, 0)},
                    {{{{2, 6, 2}}}, sized({1, 2, 3}, 1)},
                    {{{{0, 3}}}, sized(2, 0)}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 6}}}, sized({1, 2}, 1), "(2, 6)"},
                    {Refusal::shape, {{{2, 6}}}, sized({-1, 7}, 1), "(2, 6)"},
                    {Refusal::shape, {{{2, 6}}}, sized(1, 2), "(2, 6)"},
                    {Refusal::value, {{{2, 6}}}, sized(0, 1), "size is 0"}};
          }),
      entry(
          "chunk", "chunk(x, count, axis=0)",
          "At most `count` parts of equal size along an axis, the last with what is left.",
          [](Tensors x, const Arguments& a) -> Results {
            return chunk(x[0], a.integer("count", 1), a.axis("axis", 0));
          },
          [](const Operation&) -> Rows {
            return {{{{{7}}}, counted(3, 0)},
                    {{{{2, 6}}}, counted(3, -1)},
                    {{{{5}}}, counted(4, 0)},
                    {{{{0, 3}}}, counted(2, 0)}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::value, {{{2, 6}}}, counted(0, 1), "count is 0"},
                    {Refusal::shape, {{{2, 6}}}, counted(2, 2), "(2, 6)"}};
          }),
      entry(
          "meshgrid", "meshgrid({x...}, indexing=xy)",
          "The coordinates of a grid: each vector along an axis of its own. With xy the first two axes are "
          "swapped.",
          call_meshgrid,
          [](const Operation&) -> Rows {
            const Arguments ij{{"indexing", std::string("ij")}};
            return {{{{{3}}}},
                    {{{{3}}, {{4}}}},
                    {{{{3}}, {{4}}}, ij},
                    {{{{2}}, {{3}}, {{1}}}},
                    {{{{2}}, {{}}, {{4}}}, ij},
                    {{{{3}}, {{0}}}, ij}};
          },
          [](const Operation&) -> Errors {
            return {{.refusal = Refusal::shape, .operands = {{{3}}, {{2, 3}}}, .mentions = "(2, 3)"},
                    {.refusal = Refusal::dtype,
                     .operands = {{{3}}, {.shape = {2}, .dtype = DType::i32}},
                     .mentions = "int32"}};
          }),
      entry(
          "broadcast_arrays", "broadcast_arrays({x...})", "All tensors broadcast to their common shape.",
          [](Tensors x, const Arguments&) -> Results { return broadcast_arrays(list(x)); },
          [](const Operation&) -> Rows {
            return {{{{{7}}}}, {{{{2, 3}}, {{3}}}}, {{{{2, 1}}, {{}}, {{1, 3}}}}, {{{{0, 3}}, {{1}}}}};
          },
          binary_errors),
  };
  return kTable;
}

}  // namespace ops
}  // namespace caldera
