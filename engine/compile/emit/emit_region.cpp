// Regions: one kernel step for a group, copies, and reductions in stages.
#include <algorithm>

#include "engine/base/error.h"
#include "engine/compile/emit/emitter.h"
#include "engine/compile/program/limits.h"

namespace caldera {
namespace {

/// Redirects the result of a reduction to a column of the partial results.
void write_partial(Step& step, std::int32_t partial, std::int64_t column, const Dims& strides) {
  Dims out = Dims::filled(step.dims.rank(), 0);
  const int kept = step.dims.rank() - step.as<RegionStep>().reduce_rank;
  for (int d = 0; d < kept; ++d) out[d] = strides[d];
  step.operands.back() = {partial, column, out};
}

}  // namespace

void Emitter::region(const Group& group) {
  RegionKernel built = build_group_kernel(placement_, group);
  std::vector<Placed> results;
  results.reserve(group.outputs.size());
  if (group.is_plain_reduction(placement_)) {
    // The result keeps reduced axes with extent 1: its strides over the space are its own, and 0 along those.
    const std::uint32_t i = group.members.back();
    const auto& part = placement_.part(i);
    Placed out{part ? destination(part->whole) : destination(i),
               part ? part->view : dense_view(node(i).shape)};
    in_place_[i] = part.has_value();
    for (int axis = 0; axis < group.space.rank(); ++axis) {
      if ((group.reduced >> axis & 1) != 0) out.view.strides[axis] = 0;
    }
    results.push_back(out);
  } else {
    for (std::uint32_t i : group.outputs) results.push_back(result(group, i));
  }
  kernel_step(std::move(built), group.space, results, group.reduced);
}

Emitter::Placed Emitter::result(const Group& group, std::uint32_t i) {
  const Shape& shape = node(i).shape;
  if (const auto& part = placement_.part(i)) {
    if (const auto view = view_in_group(group, shape, part->view, shape)) {
      in_place_[i] = true;
      return {destination(part->whole), *view};
    }
  }
  const auto view = view_in_group(group, shape, dense_view(shape), shape);
  if (!view) throw PlanError("compile: a result does not fit its region");
  return {destination(i), *view};
}

void Emitter::copy(const Source& source, const Shape& shape, std::int32_t buffer, const View& to) {
  const DType type = plan_.buffers[static_cast<std::size_t>(buffer)].dtype;
  kernel_step(build_copy_kernel(placement_, source, type), shape, {{buffer, to}}, 0);
}

void Emitter::copy_root(std::uint32_t i) {
  // Written in the order of the source's extents, which is the order of the result's elements.
  const Source source = placement_.operand(i, 0);
  const Shape& shape = node(source.shape_of).shape;
  copy(source, shape, destination(i), dense_view(shape));
}

void Emitter::convert(std::int32_t from, std::int32_t to, const Shape& shape) {
  if (shape.numel() == 0) return;
  Step step;
  step.dtype = plan_.buffers[static_cast<std::size_t>(to)].dtype;
  step.dims = shape;
  step.operands = {{from, 0, shape.strides()}, {to, 0, shape.strides()}};
  step.work = RegionStep{
      .kernel = share(build_store_kernel(plan_.buffers[static_cast<std::size_t>(from)].dtype, step.dtype))};
  order_and_collapse(step, 0);
  push(std::move(step));
}

void Emitter::fill(DType dtype, std::uint64_t bits, const Shape& shape, std::int32_t buffer) {
  RegionKernel built;
  built.kernel.name = "fill";
  const DType type = compute_type(dtype);
  built.kernel.scalars = {type};
  built.kernel.code = {{.op = ScalarOp::scalar, .type = type}};
  built.kernel.outputs = {{0, dtype}};
  built.kernel.finish();
  built.scalars = {static_cast<std::int32_t>(plan_.scalars.size())};
  plan_.scalars.push_back(type);
  plan_.constants.push_back(bits);
  kernel_step(std::move(built), shape, {{buffer, dense_view(shape)}}, 0);
}

std::shared_ptr<const Kernel> Emitter::share(Kernel kernel) {
  auto& shared = kernels_[kernel.hash];
  if (!shared) shared = std::make_shared<const Kernel>(std::move(kernel));
  return shared;
}

void Emitter::add_operands(Step& step, const RegionKernel& built) {
  for (const RegionKernel::Input& input : built.inputs) {
    step.operands.push_back({memory(input.root), input.view.offset, input.view.strides});
  }
  for (const View& index : built.indices) step.operands.push_back({-1, index.offset, index.strides});
}

void Emitter::kernel_step(RegionKernel built, const Shape& space, const std::vector<Placed>& results,
                          std::int64_t reduced) {
  Step step;
  step.dtype = plan_.buffers[static_cast<std::size_t>(results[0].buffer)].dtype;
  step.scalars = std::move(built.scalars);
  add_operands(step, built);
  for (const Placed& out : results) step.operands.push_back({out.buffer, out.view.offset, out.view.strides});
  step.dims = space;
  order_and_collapse(step, reduced);
  auto& region = step.as<RegionStep>();
  const bool writes_nothing = std::any_of(step.dims.begin(), step.dims.end() - region.reduce_rank,
                                          [](std::int64_t extent) { return extent == 0; });
  if (writes_nothing) return;
  region.kernel = share(std::move(built.kernel));
  if (region.kernel->reduce)
    push_in_stages(std::move(step));
  else
    push(std::move(step));
}

/// A reduction over very many points becomes partial results over parts of it, then a reduction of those.
void Emitter::push_in_stages(Step step) {
  const int kept = step.dims.rank() - step.as<RegionStep>().reduce_rank;
  std::int64_t points = 1;
  for (int d = kept; d < step.dims.rank(); ++d) points *= step.dims[d];
  if (points <= kLongestReduction || step.dims.rank() == kMaxRank) {
    push(std::move(step));
    return;
  }
  // Several reduced dimensions: the outermost numbers the parts. One: it is cut, and what is left over is a
  // part too.
  const bool cut = step.as<RegionStep>().reduce_rank == 1;
  const std::int64_t length = step.dims[kept];
  const std::int64_t parts = cut ? length / kReductionPart : length;
  const std::int64_t rest = cut ? length - parts * kReductionPart : 0;
  const std::int64_t columns = parts + (rest > 0 ? 1 : 0);
  Shape partial_shape(step.dims.span().first(static_cast<std::size_t>(kept)));
  partial_shape.push_back(columns);
  // Partial results are kept as they are computed, 16-bit types in f32.
  const DType type = compute_type(step.dtype);
  const std::int32_t partial = add_buffer(BufferRole::arena, type, partial_shape.numel());
  const Dims partial_strides = partial_shape.strides();

  Step last = step;
  step.dtype = type;
  auto& region = step.as<RegionStep>();
  last.dims = partial_shape;
  last.work = RegionStep{.kernel = reload_kernel(*region.kernel), .reduce_rank = 1};
  region.kernel = stored_as(type, *region.kernel);
  last.scalars.clear();
  last.operands = {{partial, 0, partial_strides}, step.operands.back()};
  last.operands.back().strides =
      Dims(last.operands.back().strides.span().first(static_cast<std::size_t>(kept) + 1));

  Step remainder = step;
  if (cut) {
    remainder.dims[kept] = rest;
    for (Operand& operand : remainder.operands)
      operand.offset += operand.strides[kept] * parts * kReductionPart;
    step.dims[kept] = kReductionPart;
    step.dims.insert(kept, parts);
    for (Operand& operand : step.operands)
      operand.strides.insert(kept, operand.strides[kept] * kReductionPart);
  } else {
    --region.reduce_rank;
  }
  write_partial(step, partial, 0, partial_strides);
  push_in_stages(std::move(step));
  if (rest > 0) {
    write_partial(remainder, partial, parts, partial_strides);
    push_in_stages(std::move(remainder));
  }
  push_in_stages(std::move(last));
}

/// The kernel that goes on with a reduction from partial results in memory.
std::shared_ptr<const Kernel> Emitter::reload_kernel(const Kernel& of) {
  Kernel kernel;
  kernel.name = of.name + " partials";
  const DType type = compute_type(of.outputs[0].type);
  kernel.inputs = {type};
  kernel.code = {{.op = ScalarOp::load, .type = type}};
  kernel.outputs = {{0, of.outputs[0].type}};
  kernel.reduce = of.reduce;
  kernel.finish();
  return share(std::move(kernel));
}

/// The kernel with its one output stored as `type`.
std::shared_ptr<const Kernel> Emitter::stored_as(DType type, const Kernel& of) {
  Kernel kernel = of;
  kernel.outputs[0].type = type;
  kernel.finish();
  return share(std::move(kernel));
}

void order_and_collapse(Step& step, std::int64_t inner) {
  const auto rank = step.dims.rank();
  std::vector<Dims> strides(step.operands.size());
  Shape dims;
  int kept = 0;
  const auto append = [&](int axis, int boundary) {
    if (step.dims[axis] == 1) return;
    const int last = dims.rank() - 1;
    bool merges = last >= boundary;
    for (std::size_t k = 0; merges && k < strides.size(); ++k) {
      merges = strides[k][last] == step.operands[k].strides[axis] * step.dims[axis];
    }
    if (merges) {
      dims[last] *= step.dims[axis];
    } else {
      dims.push_back(step.dims[axis]);
    }
    for (std::size_t k = 0; k < strides.size(); ++k) {
      if (merges)
        strides[k][last] = step.operands[k].strides[axis];
      else
        strides[k].push_back(step.operands[k].strides[axis]);
    }
  };
  for (int axis = 0; axis < rank; ++axis) {
    if ((inner >> axis & 1) == 0) append(axis, 0);
  }
  kept = dims.rank();
  for (int axis = 0; axis < rank; ++axis) {
    if ((inner >> axis & 1) != 0) append(axis, kept);
  }
  step.as<RegionStep>().reduce_rank = static_cast<std::int8_t>(dims.rank() - kept);
  step.dims = dims;
  for (std::size_t k = 0; k < strides.size(); ++k) step.operands[k].strides = strides[k];
}

}  // namespace caldera
