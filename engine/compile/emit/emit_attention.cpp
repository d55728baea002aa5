// Attention: one step for the forward pass, one for the gradient of the queries, one for those of the keys
// and the values.
#include <algorithm>
#include <array>

#include "engine/compile/emit/causal.h"
#include "engine/compile/emit/emitter.h"
#include "engine/compile/fuse/attention_kernels.h"

namespace caldera {
namespace {

/// Dimensions of a step after the batch.
enum : int { kQueries, kKeys, kHead, kValue, kInner };

/// A view over (batch..., rows, columns) over all dimensions of a step: `rows` and `columns` name the step's
/// (kInner: none).
Dims spread(const View& view, int batch, int rows, int columns) {
  Dims out = Dims::filled(batch + kInner, 0);
  for (int d = 0; d < batch; ++d) out[d] = view.strides[d];
  if (rows != kInner) out[batch + rows] = view.strides[batch];
  if (columns != kInner) out[batch + columns] = view.strides[batch + 1];
  return out;
}

/// Drops batch extents of 1 and merges neighbours that all operands walk as one.
void collapse_batch(Step& step, int batch) {
  for (int axis = batch - 1; axis >= 0; --axis) {
    const bool merges =
        axis + 1 < batch && std::all_of(step.operands.begin(), step.operands.end(), [&](const Operand& o) {
          return o.strides[axis] == o.strides[axis + 1] * step.dims[axis + 1];
        });
    if (merges) step.dims[axis + 1] *= step.dims[axis];
    if (!merges && step.dims[axis] != 1) continue;
    step.dims.erase(axis);
    for (Operand& o : step.operands) o.strides.erase(axis);
    --batch;
  }
}

/// What the program computed instead of an attention step and nobody needs any more: all that leads to the
/// nodes that its attributes name.
void collect_absorbed(const Placement& placement, std::uint32_t attention,
                      std::vector<std::uint32_t>& origins) {
  std::vector<std::uint32_t> stack, seen;
  for (std::int64_t i : placement.node(attention).attributes) stack.push_back(static_cast<std::uint32_t>(i));
  while (!stack.empty()) {
    const std::uint32_t root = placement.source(stack.back()).root;
    stack.pop_back();
    const OpClass kind = placement.node(root).op->kind;
    const bool absorbed =
        !placement.is_live(root) && (placement.is_expression(root) || kind == OpClass::contract);
    if (!absorbed || std::find(seen.begin(), seen.end(), root) != seen.end()) continue;
    seen.push_back(root);
    origins.push_back(placement.node(root).origin);
    for (std::uint32_t input : placement.program().inputs_of(root)) stack.push_back(input);
  }
}

}  // namespace

/// An operand that has `rows` and `columns` of a step's dimensions.
void Emitter::add_matrix(Step& step, const Placed& p, int rows, int columns) {
  const int batch = step.dims.rank() - kInner;
  step.operands.push_back({p.buffer, p.view.offset, spread(p.view, batch, rows, columns)});
}

/// q, k, v; in gradients also go, highest, total and delta.
StoredKeys Emitter::add_attention_inputs(Step& step, std::uint32_t i, bool forward) {
  constexpr std::array<std::pair<int, int>, 7> kPlaces{{{kQueries, kHead},
                                                        {kHead, kKeys},
                                                        {kKeys, kValue},
                                                        {kQueries, kValue},
                                                        {kQueries, kInner},
                                                        {kQueries, kInner},
                                                        {kQueries, kInner}}};
  const auto type_of = [&](std::size_t k) { return type_in_memory(placement_.operand(i, k)); };
  if (forward && absorbed_[placement_.operand(i, 1).root]) {
    const Source q = placement_.operand(i, 0);
    add_matrix(step, placed(q), kQueries, kHead);
    return add_stored_keys(step, i);
  }
  // The matrices have one type, all of them: kernels of devices are made for it, but for what StoredKeys
  // says.
  const std::size_t matrices = forward ? 3 : 4;
  bool alike = true;
  for (std::size_t k = 1; k < matrices; ++k) alike = alike && type_of(k) == type_of(0);
  if (forward && traits_.reads_stored_keys && type_of(0) == DType::f32 && type_of(1) == type_of(2))
    alike = true;
  for (std::size_t k = 0; k < (forward ? 3U : 7U); ++k) {
    const Source source = placement_.operand(i, k);
    const bool widened = !alike && k < matrices && type_in_memory(source) != DType::f32;
    add_matrix(step, widened ? written_out(source, DType::f32) : placed(source), kPlaces[k].first,
               kPlaces[k].second);
  }
  return {};
}

/// The operands of a score's kernel, or its gradient's.
std::shared_ptr<const Kernel> Emitter::add_attention_kernel(Step& step, RegionKernel built) {
  for (const RegionKernel::Input& input : built.inputs)
    add_matrix(step, {memory(input.root), input.view}, kQueries, kKeys);
  for (const View& index : built.indices) add_matrix(step, {-1, index}, kQueries, kKeys);
  step.scalars.insert(step.scalars.end(), built.scalars.begin(), built.scalars.end());
  return share(std::move(built.kernel));
}

void Emitter::add_attention_results(Step& step, std::uint32_t i, AttentionPass pass) {
  const Program::Node& n = node(i);
  const int batch = n.shape.rank() - 2;
  const auto add_result = [&](std::uint32_t root, int rows, int columns) {
    add_matrix(step, {destination(root), dense_view(node(root).shape)}, rows, columns);
  };
  // Further results have memory even where nobody reads them.
  const auto add_other = [&](std::int64_t which, DType dtype, int rows, int columns, const Shape& shape) {
    const auto reader = other_.find({i, which});
    if (reader != other_.end()) return add_result(reader->second, rows, columns);
    add_matrix(step, {add_buffer(BufferRole::arena, dtype, shape.numel()), dense_view(shape)}, rows, columns);
  };
  Shape row = n.shape;
  row[batch] = step.dims[batch + kQueries];
  row[batch + 1] = 1;
  Shape values = n.shape;
  values[batch + 1] = step.dims[batch + kValue];
  switch (pass) {
    case AttentionPass::forward:
      add_result(i, kQueries, kValue);
      add_other(1, DType::f32, kQueries, kInner, row);
      add_other(2, DType::f32, kQueries, kInner, row);
      break;
    case AttentionPass::grad_q:
      add_result(i, kQueries, kHead);
      break;
    case AttentionPass::grad_kv:
    case AttentionPass::grad_qkv:
      add_result(i, kKeys, kHead);
      add_other(1, n.dtype, kKeys, kValue, values);
      if (pass == AttentionPass::grad_qkv) add_result(other_.at({i, 2}), kQueries, kHead);
      break;
  }
}

void Emitter::attention(std::uint32_t i) {
  const Program::Node& n = node(i);
  const auto shape_of = [&](std::size_t k) -> const Shape& {
    return node(placement_.operand(i, k).shape_of).shape;
  };
  AttentionStep work;
  work.pass = n.op->kind == OpClass::attention          ? AttentionPass::forward
              : n.op->kind == OpClass::attention_grad_q ? AttentionPass::grad_q
              : other_.contains({i, 2})                 ? AttentionPass::grad_qkv
                                                        : AttentionPass::grad_kv;
  const bool forward = work.pass == AttentionPass::forward;
  const int batch = n.shape.rank() - 2;
  Step step;
  step.dtype = DType::f32;
  step.dims = Shape(n.shape.span().first(static_cast<std::size_t>(batch)));
  for (std::int64_t extent :
       {shape_of(0)[batch], shape_of(1)[batch + 1], shape_of(0)[batch + 1], shape_of(2)[batch + 1]}) {
    step.dims.push_back(extent);
  }
  work.stored = add_attention_inputs(step, i, forward);
  RegionKernel score = score_kernel(placement_, i);
  work.causal = find_causal_mask(score, shape_of(0)[batch]);
  work.score = add_attention_kernel(step, std::move(score));
  if (!forward) work.gradient = add_attention_kernel(step, gradient_kernel(placement_, i));
  add_attention_results(step, i, work.pass);
  step.work = std::move(work);
  collapse_batch(step, batch);
  collect_absorbed(placement_, i, origins_);
  push(std::move(step));
}

}  // namespace caldera
