#include "engine/plan/steps/quantized.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "engine/plan/kernel/fault.h"
#include "engine/plan/steps/step_form.h"
#include "engine/tensor/interleaved_rows.h"

namespace caldera {
namespace {

std::vector<QuantizedPart> parts_of(const QuantizedNode& what) {
  return parts_of(what.layout, what.rows, what.columns);
}

/// The type of a part whose operand comes next: u32 may be as i32 with the same bits.
DType type_in_memory(const verify::StepForm& form, const QuantizedPart& part) {
  if (part.is_any_float) return form.in_memory(part.dtype);
  return part.dtype == DType::u32 && form.buffer_type() == DType::i32 ? DType::i32 : part.dtype;
}

std::string_view word_for(QuantizedWork work) {
  switch (work) {
    case QuantizedWork::dequantize:
      return "dequantize";
    case QuantizedWork::take_rows:
      return "rows";
    case QuantizedWork::product:
      return "matmul";
    case QuantizedWork::transposed_product:
      break;
  }
  return "transposed matmul";
}

/// Backends write a result densely. One that varies along the sum is found with the other operands.
void check_result(const QuantizedNode& what, const Shape& dims, const Dims& strides) {
  if (strides.rank() != 3) return;
  const bool is_product = what.work == QuantizedWork::product;
  const int column = is_product ? 1 : 2;
  const std::int64_t width = dims[column];
  const auto lies = [&](int d, std::int64_t stride) { return dims[d] <= 1 || strides[d] == stride; };
  const bool is_whole = what.work == QuantizedWork::dequantize;
  if (!is_whole && !lies(3 - column, 0)) return;
  const bool is_dense =
      lies(column, 1) && lies(0, is_whole ? dims[1] * width : width) && (!is_whole || lies(1, width));
  if (!is_dense) throw verify::Fault{"a quantised result that is not dense"};
}

}  // namespace

std::string QuantizedStep::name() const {
  // Of steps that the verifier refuses too.
  const auto format = static_cast<std::size_t>(what.layout.format);
  const std::string_view spelled = format < kQuantizedFacts.size() ? kQuantizedFacts[format].name : "unknown";
  return fmt::format("{}{} {}", spelled, what.rounds() ? " rounded" : "", word_for(what.work));
}

int QuantizedStep::named_operands() const { return static_cast<int>(first_part() + parts_of(what).size()); }

Shape QuantizedStep::operand_dims(const StepHeader& step, std::size_t k) const {
  const std::vector<QuantizedPart> parts = parts_of(what);
  if (k < first_part() || k >= first_part() + parts.size()) return step.dims;
  const QuantizedPart& part = parts[k - first_part()];
  return Shape{what.matrices, part.rows, part.columns};
}

/// Of parts, where `which` picks rows or matrices: no more than it has elements.
std::int64_t QuantizedStep::most_elements(const StepHeader& step, std::size_t k) const {
  const std::vector<QuantizedPart> parts = parts_of(what);
  if (!has_which() || k < first_part() || k >= first_part() + parts.size())
    return std::numeric_limits<std::int64_t>::max();
  const QuantizedPart& part = parts[k - first_part()];
  const std::int64_t picked = step.dims[0];
  if (what.work == QuantizedWork::take_rows)
    return std::min(picked, what.matrices * part.rows) * part.columns;
  return std::min(picked, what.matrices) * part.rows * part.columns;
}

std::int64_t QuantizedStep::flops(const StepHeader& step) const {
  return (what.is_product() ? 2 : 1) * step.dims.numel();
}

void QuantizedStep::check(verify::StepForm& form) const {
  using verify::Fault;
  form.check_rank(3);
  if (form.rank() != 3) throw Fault{"not the dimensions M, N, K"};
  const StepHeader& step = form.step();
  if (step.dtype != DType::f32) throw Fault{"a quantised step of another type than float32"};
  if (static_cast<std::size_t>(what.layout.format) >= kQuantizedFacts.size())
    throw Fault{"a quantised format that does not exist"};
  if (what.work > QuantizedWork::transposed_product) throw Fault{"quantised work that does not exist"};
  if (!why_no_layout(what.layout, what.rows, what.columns).empty() ||
      !why_not_interleaved(what.layout, what.rows).empty() || what.matrices < 0)
    throw Fault{"matrices that the quantised format does not have"};
  if (what.activations > Activations::rounded) throw Fault{"activations that are neither exact nor rounded"};
  if (what.rounds() && (what.work != QuantizedWork::product || !has_integer_codes(what.layout.format)))
    throw Fault{"rounded activations of a step that multiplies no integers"};
  const bool takes = what.work == QuantizedWork::take_rows;
  if (step.dims[2] != what.columns || step.dims[1] != (takes ? 1 : what.rows))
    throw Fault{"a space that is not that of the quantised matrix"};
  if (what.work == QuantizedWork::dequantize && step.dims[0] != what.matrices)
    throw Fault{"a space that is not that of the quantised matrices"};
  if (what.is_product() && !what.is_indexed && what.matrices != 1)
    throw Fault{"several quantised matrices, and nothing says which"};
  const bool across = what.work == QuantizedWork::transposed_product;
  const verify::DimSet m = form.inner(3);
  if (has_x()) form.read(DType::f32, m | form.inner(across ? 2 : 1), form.all());
  if (has_which()) form.read(DType::i32, m, form.all());
  for (const QuantizedPart& part : parts_of(what)) {
    const std::size_t k = form.count();
    verify::OperandForm& operand =
        form.add(verify::OperandRole::read, type_in_memory(form, part), form.all(), form.all());
    operand.extents = Shape{what.matrices, part.rows, part.columns};
    const Dims dense = Shape{what.matrices, part.rows, part.columns}.strides();
    if (k >= step.operands.size()) continue;
    const Dims& strides = step.operands[k].strides;
    for (int d = 0; d < 3 && strides.rank() == 3; ++d)
      if (operand.extents[d] > 1 && strides[d] != dense[d]) throw Fault{"a quantised part that is not dense"};
  }
  const std::size_t out = form.count();
  if (what.is_product())
    form.write(DType::f32, m | form.inner(across ? 1 : 2));
  else
    form.write(DType::f32, takes ? m | form.inner(1) : form.all());
  if (out < step.operands.size()) check_result(what, step.dims, step.operands[out].strides);
}

}  // namespace caldera
