// Gathers, scatters and concatenation: steps that read or write parts of tensors.
#include "engine/compile/emit/emitter.h"

namespace caldera {
namespace {

/// What the second attribute of a scatter is then (engine/graph/op.h).
constexpr std::int64_t kDistinctIndices = 2;

/// A one-dimensional operand along one of three dimensions.
Operand along(std::int32_t buffer, const View& view, int axis) {
  Dims strides = Dims::filled(3, 0);
  strides[axis] = view.strides[0];
  return {buffer, view.offset, strides};
}

}  // namespace

/// x as (outer, axis, inner) with one stride each, copied if no such view exists.
Emitter::Placed Emitter::three_dimensional(const Source& source, int axis, Shape& extents) {
  const Shape& shape = node(source.shape_of).shape;
  extents = Shape{1, shape[axis], 1};
  for (int d = 0; d < axis; ++d) extents[0] *= shape[d];
  for (int d = axis + 1; d < shape.rank(); ++d) extents[2] *= shape[d];
  if (has_own_memory(source)) {
    if (const auto view = reshape_view(*source.view, shape, extents)) return {memory(source.root), *view};
  }
  return {written_out(source).buffer, dense_view(extents)};
}

/// The elements of an operand in row-major order as one strided run, copied if there is no such view.
Emitter::Placed Emitter::one_dimensional(const Source& source) {
  const Shape& shape = node(source.shape_of).shape;
  const Shape flat{shape.numel()};
  if (has_own_memory(source)) {
    if (const auto view = reshape_view(*source.view, shape, flat)) return {memory(source.root), *view};
  }
  return {written_out(source).buffer, dense_view(flat)};
}

/// The indices of a gather or scatter along `axis` over (outer, indices, inner).
Emitter::Indices Emitter::indices(std::uint32_t i, int axis) {
  const Source source = placement_.operand(i, 1);
  const bool is_aligned = node(i).attributes[1] != 0;
  if (is_aligned) {
    Shape extents;
    const Placed placed = three_dimensional(source, axis, extents);
    return {{placed.buffer, placed.view.offset, placed.view.strides}, extents[1]};
  }
  const Placed placed = one_dimensional(source);
  return {along(placed.buffer, placed.view, 1), node(source.shape_of).shape.numel()};
}

void Emitter::gather(std::uint32_t i) {
  const Program::Node& n = node(i);
  const auto axis = static_cast<int>(n.attributes[0]);
  Shape extents;
  const Placed x = three_dimensional(placement_.operand(i, 0), axis, extents);
  const Indices idx = indices(i, axis);
  Step step;
  step.dtype = n.dtype;
  step.dims = Shape{extents[0], idx.count, extents[2]};
  step.work = GatherStep{.axis = {extents[1], x.view.strides[1]}};
  const Dims across{x.view.strides[0], 0, x.view.strides[2]};
  step.operands = {{x.buffer, x.view.offset, across}, idx.operand, {destination(i), 0, step.dims.strides()}};
  push(std::move(step));
}

void Emitter::scatter(std::uint32_t i) {
  const Program::Node& n = node(i);
  const auto axis = static_cast<int>(n.attributes[0]);
  Shape extents{1, n.shape[axis], 1};
  for (int d = 0; d < axis; ++d) extents[0] *= n.shape[d];
  for (int d = axis + 1; d < n.shape.rank(); ++d) extents[2] *= n.shape[d];
  const Indices idx = indices(i, axis);
  const Shape update_extents{extents[0], idx.count, extents[2]};
  // Types of memory are added up in what they are computed in, and narrowed once.
  // What replaces is only moved, and the others keep their bits: a cache of 16 bits is written in place.
  const auto how = static_cast<Scatter>(n.attributes[2]);
  const DType type = how == Scatter::set && is_half(n.dtype) ? n.dtype : compute_type(n.dtype);
  const Source updates = placement_.operand(i, 2);
  const Shape& update_shape = node(updates.shape_of).shape;
  const auto update_view = has_memory(updates.root) && node(updates.root).dtype == type
                               ? reshape_view(*updates.view, update_shape, update_extents)
                               : std::nullopt;
  const Placed u = update_view ? Placed{memory(updates.root), *update_view}
                               : Placed{written_out(updates, type).buffer, dense_view(update_extents)};
  const std::int32_t result = destination(i);
  const std::int32_t out = type == n.dtype ? result : add_buffer(BufferRole::arena, type, n.shape.numel());
  copy(placement_.operand(i, 0), n.shape, out, dense_view(n.shape));
  Step step;
  step.dtype = type;
  step.dims = update_extents;
  step.work = ScatterStep{
      .axis = {extents[1], extents[2]}, .combine = how, .distinct = n.attributes[1] == kDistinctIndices};
  step.operands = {
      {u.buffer, u.view.offset, u.view.strides}, idx.operand, {out, 0, Dims{extents[1] * extents[2], 0, 1}}};
  push(std::move(step));
  if (out != result) convert(out, result, n.shape);
}

void Emitter::concatenate(std::uint32_t i) {
  const Program::Node& n = node(i);
  const auto axis = static_cast<int>(n.attributes[0]);
  const std::int32_t out = destination(i);
  View window = dense_view(n.shape);
  for (std::size_t k = 0; k < placement_.operand_count(i); ++k) {
    const Source source = placement_.operand(i, k);
    const Shape& part = node(source.shape_of).shape;
    if (!in_place_[source.root]) copy(source, part, out, window);
    window.offset += part[axis] * window.strides[axis];
  }
}

}  // namespace caldera
