#include "engine/plan/steps/attention.h"

#include <algorithm>

#include "engine/plan/kernel/check_kernel.h"
#include "engine/plan/kernel/kernel_cost.h"
#include "engine/plan/steps/step_form.h"
#include "engine/tensor/quantized_format.h"

namespace caldera {
namespace {

using verify::DimSet;
using verify::Fault;
using verify::OperandRole;

/// Pairs of a query and a key that the mask leaves, of one batch entry.
std::int64_t visible_pairs(const CausalMask& causal, std::int64_t queries, std::int64_t keys) {
  if (causal.fill < 0 || causal.offset_scalar >= 0 || causal.in_parts) return queries * keys;
  std::int64_t pairs = 0;
  for (std::int64_t m = 0; m < queries; ++m)
    pairs += std::clamp<std::int64_t>(causal.first_hidden(m, 0, keys), 0, keys);
  return pairs;
}

/// Bytes of a row in blocks of q8_0.
std::int64_t row_bytes(std::int64_t width) {
  const QuantizedFacts& f = facts(QuantizedFormat::q8_0);
  return width / f.block * f.block_bytes;
}

/// Of the kernel of a score or its gradient. Their operands are read all the while, so nothing may be written
/// over them.
void add_score(verify::StepForm& form, const Kernel& kernel, std::size_t given, DimSet scores) {
  verify::check_kernel(kernel, false);
  verify::check_given(kernel, given, DType::f32);
  if (kernel.outputs.size() != 1 || kernel.outputs[0].type != DType::f32)
    throw Fault{"a score that is not one number of float32"};
  form.add_kernel_operands(kernel, given, scores, false);
}

}  // namespace

std::string_view AttentionStep::kind() const {
  switch (pass) {
    case AttentionPass::forward:
      break;
    case AttentionPass::grad_q:
      return "attention_grad_q";
    case AttentionPass::grad_kv:
      return "attention_grad_kv";
    case AttentionPass::grad_qkv:
      return "attention_grad";
  }
  return "attention";
}

int AttentionStep::output_count() const {
  switch (pass) {
    case AttentionPass::forward:
      break;
    case AttentionPass::grad_q:
      return 1;
    case AttentionPass::grad_kv:
      return 2;
    case AttentionPass::grad_qkv:
      break;
  }
  return 3;
}

std::vector<StepKernel> AttentionStep::kernels() const {
  std::vector<StepKernel> all{{score.get(), "score", 1}};
  if (gradient) all.push_back({gradient.get(), "gradient", 2});
  return all;
}

std::int64_t AttentionStep::flops(const StepHeader& step) const {
  const int rank = step.dims.rank();
  const std::int64_t d = step.dims[rank - 2];
  const std::int64_t e = step.dims[rank - 1];
  const std::int64_t pairs =
      product_of(step.dims, rank - 4) * visible_pairs(causal, step.dims[rank - 4], step.dims[rank - 3]);
  std::int64_t flops = kernel_flops(*score, pairs, pairs);
  if (pass == AttentionPass::forward) return flops + pairs * (2 * d + 2 * e + 3);  // subtract, exp, sum
  // Scores, P (subtract, exp, divide), dP, dS; then dq, dk and dv, or some of them.
  flops += pairs * (2 * d + 2 * e + 5);
  if (gradient) flops += kernel_flops(*gradient, pairs, pairs);
  if (pass != AttentionPass::grad_kv) flops += pairs * 2 * d;
  return flops + (pass != AttentionPass::grad_q ? pairs * (2 * d + 2 * e) : 0);
}

Shape AttentionStep::operand_dims(const StepHeader& step, std::size_t k) const {
  Shape dims = step.dims;
  if (!stored.blocks || (k != 1 && k != 2)) return dims;
  std::int64_t& width = dims[dims.rank() - (k == 1 ? 2 : 1)];
  width = row_bytes(width);
  return dims;
}

std::optional<IndexedAxis> AttentionStep::indexed_axis(const StepHeader&, std::size_t k) const {
  if (stored.rows == 0 || (k != 1 && k != 2)) return std::nullopt;
  return IndexedAxis{stored.rows, k == 1 ? stored.key_stride : stored.value_stride};
}

void AttentionStep::check(verify::StepForm& form) const {
  const bool forward = pass == AttentionPass::forward;
  if (score == nullptr) throw Fault{"attention without a kernel"};
  if ((gradient == nullptr) != forward) throw Fault{"the kernel of a gradient does not fit the step"};
  form.check_rank(4);
  if (form.step().dtype != DType::f32) throw Fault{"attention of another type than float32"};
  if (causal.fill != -1) form.check_scalar(causal.fill, DType::f32);
  if (causal.offset_scalar != -1) form.check_scalar(causal.offset_scalar, DType::i32);
  if (!forward && (causal.one_query || causal.in_parts))
    throw Fault{"a gradient of attention over parts of the keys"};
  if (causal.in_parts && form.rank() < 5)
    throw Fault{"parts of the keys without a dimension that counts them"};
  const DimSet m = form.inner(4);
  const DimSet n = form.inner(3);
  const DimSet d = form.inner(2);
  const DimSet e = form.inner(1);
  const DimSet batch = form.all() & ~(m | n | d | e);
  const DimSet scores = batch | m | n;
  const DType type = form.in_memory(DType::f32);
  const auto matrix = [&](DimSet walked, DimSet needed) {
    if (form.in_memory(DType::f32) != type) throw Fault{"attention over matrices of several types"};
    form.read(type, walked, needed);
  };
  const auto result = [&](DimSet walked) { form.write(form.in_memory(DType::f32), walked); };
  // Along the row of keys that are stored in another way.
  const auto keys = [&](int inner, DimSet width, const char* which) {
    const DType there = form.in_memory(DType::f32);
    if (!stored.blocks && there != type && (!forward || type != DType::f32))
      throw Fault{"attention over matrices of several types"};
    const std::size_t k = form.count();
    const std::int64_t extent = form.step().dims[form.rank() - inner];
    const DimSet along = stored.rows > 0 ? width : n | width;
    verify::OperandForm& operand =
        form.add(OperandRole::read, stored.blocks ? DType::u8 : there, batch | along, scores | width);
    if (stored.rows > 0)
      operand.indexed = {stored.rows, inner == 2 ? stored.key_stride : stored.value_stride};
    if (!stored.blocks) return there;
    operand.extents[form.rank() - inner] = row_bytes(extent);
    if (extent % facts(QuantizedFormat::q8_0).block != 0) throw Fault{which};
    if (k >= form.step().operands.size()) return DType::u8;
    const Dims& strides = form.step().operands[k].strides;
    if (strides.rank() == form.rank() && strides[form.rank() - inner] != 1) throw Fault{which};
    return DType::u8;
  };
  if (!forward && !stored.is_plain()) throw Fault{"a gradient of attention over stored keys"};
  if (stored.rows < 0) throw Fault{"a negative extent"};
  matrix(batch | m | d, scores | d);  // q
  const DType of_keys = keys(2, d, "keys that are not whole blocks");
  if (keys(1, e, "values that are not whole blocks") != of_keys)
    throw Fault{"attention over matrices of several types"};
  if (stored.rows > 0) form.read(DType::i32, batch | n, scores);
  if (!forward) {
    matrix(batch | m | e, scores | e);                                           // go
    for (int row = 0; row < 3; ++row) form.read(DType::f32, batch | m, scores);  // highest, total, delta
  }
  add_score(form, *score, 1, scores);
  form.add_scalars_of(*score);
  if (!forward) {
    add_score(form, *gradient, 2, scores);
    form.add_scalars_of(*gradient);
  }
  switch (pass) {
    case AttentionPass::forward:
      result(batch | m | e);
      form.write(DType::f32, batch | m);  // highest
      form.write(DType::f32, batch | m);  // total
      break;
    case AttentionPass::grad_q:
      result(batch | m | d);
      break;
    case AttentionPass::grad_kv:
    case AttentionPass::grad_qkv:
      const DType of_gradient = form.in_memory(DType::f32);
      const auto another = [&](DimSet walked) {
        if (form.in_memory(DType::f32) != of_gradient) throw Fault{"attention with results of several types"};
        result(walked);
      };
      result(batch | n | d);
      another(batch | n | e);
      if (pass == AttentionPass::grad_qkv) another(batch | m | d);
  }
}

}  // namespace caldera
