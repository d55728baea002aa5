// Contractions: one step for a product or a sum of products, with the operations that follow it.
#include <algorithm>

#include "engine/base/error.h"
#include "engine/compile/emit/emitter.h"
#include "engine/compile/program/limits.h"
#include "engine/compile/rewrite/products.h"

namespace caldera {
namespace {

/// Extents of an operand: those of `space` with the last `inner` ones replaced.
Shape lead_of(const Shape& space, int inner) {
  return Shape(space.span().first(static_cast<std::size_t>(space.rank() - inner)));
}

/// A (batch..., M, K) over the lead of `space` and K, in the order of a step: lead..., N (stride 0), K.
std::optional<View> rows_over(const View& view, const Shape& own, const Shape& space) {
  Shape wanted = lead_of(space, 1);
  wanted.push_back(own.back());
  auto out = own == wanted ? view : reshape_view(view, own, wanted);
  if (out) out->strides.insert(space.rank() - 1, 0);
  return out;
}

/// B (batch..., K, N) over the same.
View columns_over(const View& view, const Shape& own, const Shape& space) {
  const int rank = own.rank();
  View out{view.offset, Dims::filled(space.rank() + 1, 0)};
  // Batches are only where the space is that of the product itself.
  for (int d = 0; d + 2 < rank; ++d) out.strides[d] = view.strides[d];
  out.strides[space.rank() - 1] = view.strides[rank - 1];
  out.strides[space.rank()] = view.strides[rank - 2];
  return out;
}

/// Drops extents of 1 and merges neighbours among the dimensions ahead of N that all operands walk as one,
/// leaving at least M.
void collapse_lead(Step& step) {
  for (int axis = step.dims.rank() - 4; axis >= 0; --axis) {
    const int next = axis + 1;
    const bool merges = std::all_of(step.operands.begin(), step.operands.end(), [&](const Operand& o) {
      return o.strides[axis] == o.strides[next] * step.dims[next];
    });
    int drop = axis;
    if (merges) {
      step.dims[next] *= step.dims[axis];
    } else if (step.dims[axis] != 1) {
      // A batch of single rows is rows, if all of them meet the same B.
      bool one_b = true;
      for (std::size_t s = 0; s < step.as<ContractStep>().segments.size(); ++s) {
        one_b = one_b && step.operands[2 * s + 1].strides[axis] == 0;
      }
      if (step.dims[next] != 1 || (next == step.dims.rank() - 3 && !one_b)) continue;
      drop = next;
    }
    step.dims.erase(drop);
    for (Operand& o : step.operands) o.strides.erase(drop);
  }
}

/// In how many parts K is computed side by side: 1 but for small results of long sums.
std::int64_t k_parts(const Step& step) {
  const auto& contract = step.as<ContractStep>();
  if (contract.epilogue || contract.segments.size() != 1 || step.dims.rank() >= kMaxRank) return 1;
  const std::int64_t k = step.dims.back();
  if (k < kLongSum || step.dims.numel() / k > kFewResults) return 1;
  for (std::int64_t parts = std::min(kMaxPartsOfSum, k / kShortestPartOfSum); parts > 1; --parts) {
    if (k % parts == 0) return parts;
  }
  return 1;
}

}  // namespace

/// Products read f16 and bf16 where their sums are f32. Narrow integers are written out in the type of the
/// sums.
DType Emitter::factor_type(const Source& source) const {
  const DType type = node(source.shape_of).dtype;
  return is_narrow_integer(type) ? compute_type(type) : type;
}
Emitter::Placed Emitter::factor(const Source& source) {
  return is_narrow_integer(type_in_memory(source)) ? written_out(source, factor_type(source))
                                                   : placed(source);
}

void Emitter::product(const Group& group) {
  const std::uint32_t i = group.other;
  const Program::Node& n = node(i);
  if (n.shape.numel() == 0) {
    destination(i);
    return;
  }
  if (n.shape.rank() == kMaxRank) return product_of_copies(i);
  const Shape& space = group.members.empty() ? n.shape.get() : group.space;
  const SegmentList list = segments_of(n);
  Step step;
  auto& contract = step.work.emplace<ContractStep>();
  step.dtype = compute_type(n.dtype);
  step.dims = space;
  std::size_t scale = 2 * static_cast<std::size_t>(list.count);
  for (int s = 0; s < list.count; ++s) {
    const Source sa = placement_.operand(i, 2 * static_cast<std::size_t>(s));
    const Source sb = placement_.operand(i, 2 * static_cast<std::size_t>(s) + 1);
    const Shape& own_a = node(sa.shape_of).shape;
    Placed a = factor(sa);
    const Placed b = factor(sb);
    auto rows = rows_over(a.view, own_a, space);
    if (!rows) {  // rows that are no run: made one
      a = written_out(sa, factor_type(sa));
      rows = rows_over(a.view, own_a, space);
    }
    const View columns = columns_over(b.view, node(sb.shape_of).shape, space);
    step.operands.push_back({a.buffer, rows->offset, rows->strides});
    step.operands.push_back({b.buffer, columns.offset, columns.strides});
    Segment segment{.k = own_a.back()};
    if ((list.scaled >> s & 1) != 0) segment.scale = node(placement_.operand(i, scale++).root).slot;
    contract.segments.push_back(segment);
  }
  step.dims.push_back(contract.segments[0].k);

  const auto add = [&](Placed place) {
    place.view.strides.push_back(0);
    step.operands.push_back({place.buffer, place.view.offset, place.view.strides});
  };
  if (group.members.empty()) {
    add({destination(i), dense_view(n.shape)});
  } else {
    RegionKernel built = build_group_kernel(placement_, group);
    for (RegionKernel::Input& input : built.inputs) add({memory(input.root), input.view});
    for (const View& index : built.indices) add({-1, index});
    for (std::uint32_t out : group.outputs) add(result(group, out));
    step.scalars = std::move(built.scalars);
    contract.epilogue = share(std::move(built.kernel));
  }
  collapse_lead(step);
  if (const std::int64_t parts = k_parts(step); parts > 1) {
    split_k(std::move(step), parts);
  } else {
    push_product(std::move(step));
  }
}

/// With as many dimensions as there may be, K would be one too many: the operands are copied, so that the
/// batch becomes one dimension.
void Emitter::product_of_copies(std::uint32_t i) {
  const Program::Node& n = node(i);
  const SegmentList list = segments_of(n);
  const std::int64_t rows = n.shape[kMaxRank - 2], columns = n.shape.back();
  const std::int64_t batch = n.shape.numel() / (rows * columns);
  Step step;
  auto& contract = step.work.emplace<ContractStep>();
  step.dtype = compute_type(n.dtype);
  step.dims = Shape{batch, rows, columns};
  std::size_t scale = 2 * static_cast<std::size_t>(list.count);
  for (int s = 0; s < list.count; ++s) {
    const Source sa = placement_.operand(i, 2 * static_cast<std::size_t>(s));
    const Source sb = placement_.operand(i, 2 * static_cast<std::size_t>(s) + 1);
    const std::int64_t k = node(sa.shape_of).shape.back();
    step.operands.push_back({written_out(sa, factor_type(sa)).buffer, 0, {rows * k, k, 0, 1}});
    step.operands.push_back({written_out(sb, factor_type(sb)).buffer, 0, {k * columns, 0, 1, columns}});
    Segment segment{.k = k};
    if ((list.scaled >> s & 1) != 0) segment.scale = node(placement_.operand(i, scale++).root).slot;
    contract.segments.push_back(segment);
  }
  step.dims.push_back(contract.segments[0].k);
  step.operands.push_back({destination(i), 0, {rows * columns, columns, 1, 0}});
  push_product(std::move(step));
}

/// A result of a type of memory is computed in the type for it: an epilogue stores it.
void Emitter::push_product(Step step) {
  const DType type = plan_.buffers[static_cast<std::size_t>(step.operands.back().buffer)].dtype;
  auto& epilogue = step.as<ContractStep>().epilogue;
  if (!epilogue && type != step.dtype) epilogue = share(build_store_kernel(step.dtype, type));
  push(std::move(step));
}

/// Few results of many terms each: the terms are shared out among partial products, which a second step adds
/// up, in a fixed order.
void Emitter::split_k(Step step, std::int64_t parts) {
  const int rank = step.dims.rank();
  const std::int64_t k = step.dims.back() / parts;
  const Operand out = step.operands[2];
  Shape partial_shape(step.dims.span().first(static_cast<std::size_t>(rank - 1)));
  partial_shape.insert(0, parts);
  const std::int32_t partial = add_buffer(BufferRole::arena, step.dtype, partial_shape.numel());
  const Dims partial_strides = partial_shape.strides();

  step.dims[rank - 1] = k;
  step.dims.insert(0, parts);
  step.as<ContractStep>().segments[0].k = k;
  for (std::size_t o = 0; o < 2; ++o) {
    step.operands[o].strides.insert(0, step.operands[o].strides[rank - 1] * k);
  }
  step.operands[2] = {partial, 0, partial_strides};
  step.operands[2].strides.push_back(0);
  push(std::move(step));

  Step sum;
  sum.dtype = plan_.buffers[static_cast<std::size_t>(out.buffer)].dtype;
  Kernel add = build_store_kernel(plan_.steps.back().dtype, sum.dtype);
  add.name = "sum of partial products";
  add.reduce = Combine::sum;
  add.finish();
  sum.work = RegionStep{.kernel = share(std::move(add))};
  sum.dims = partial_shape;
  Dims to = out.strides;
  to.erase(rank - 1);
  to.insert(0, 0);
  sum.operands = {{partial, 0, partial_strides}, {out.buffer, out.offset, to}};
  order_and_collapse(sum, 1);
  push(std::move(sum));
}

}  // namespace caldera
