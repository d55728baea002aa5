#include "engine/plan/steps/step_form.h"

#include <fmt/core.h>

#include <utility>

#include "engine/plan/kernel/fault.h"

namespace caldera::verify {

void StepForm::check_rank(int least) const {
  if (rank_ < least) throw Fault{"too few dimensions"};
}

OperandForm& StepForm::add(OperandRole role, DType type, DimSet walked, DimSet needed, bool own) {
  OperandForm form;
  form.role = role;
  form.type = type;
  form.extents = step_.dims;
  form.walked = walked;
  form.needed = needed;
  form.own = own;
  forms_.push_back(form);
  return forms_.back();
}

void StepForm::add_kernel_operands(const Kernel& kernel, std::size_t given, DimSet points, bool own) {
  for (std::size_t i = given; i < kernel.inputs.size(); ++i)
    add(OperandRole::read, kernel.inputs[i], points, points, own);
  for (int i = 0; i < kernel.index_count; ++i) add(OperandRole::index, DType::i64, points, 0);
}

std::optional<DType> StepForm::buffer_type() const {
  const std::size_t k = forms_.size();
  if (k >= step_.operands.size()) return std::nullopt;
  const auto buffer = static_cast<std::size_t>(step_.operands[k].buffer);
  return buffer < buffers_.size() ? std::optional(buffers_[buffer].dtype) : std::nullopt;
}

DType StepForm::in_memory(DType type) const {
  const std::optional<DType> there = buffer_type();
  return type == DType::f32 && there && is_half(*there) ? *there : type;
}

void StepForm::check_indexed(const IndexedAxis& axis) const {
  check_rank(3);
  if (rank_ != 3) throw Fault{"not the dimensions outer, indices, inner"};
  if (axis.extent < 0) throw Fault{"a negative extent"};
}

void StepForm::add_scalars_of(const Kernel& kernel) {
  arguments_.insert(arguments_.end(), kernel.scalars.begin(), kernel.scalars.end());
}

void StepForm::check_scalar(std::int32_t slot, DType type) const {
  if (slot < 0 || static_cast<std::size_t>(slot) >= scalars_.size())
    throw Fault{"a scalar argument that does not exist"};
  if (scalars_[static_cast<std::size_t>(slot)] != type) throw Fault{"a scalar argument of the wrong type"};
}

std::vector<OperandForm> StepForm::finish() {
  if (arguments_.size() != step_.scalars.size()) throw Fault{"the wrong number of scalar arguments"};
  for (std::size_t i = 0; i < arguments_.size(); ++i) check_scalar(step_.scalars[i], arguments_[i]);
  if (step_.operands.size() != forms_.size()) throw Fault{"the wrong number of operands"};
  for (std::size_t k = 0; k < forms_.size(); ++k) check_operand(k);
  return std::move(forms_);
}

void StepForm::check_operand(std::size_t k) const {
  const Operand& operand = step_.operands[k];
  const OperandForm& form = forms_[k];
  if (operand.strides.rank() != form.extents.rank())
    throw Fault{fmt::format("operand {} has the wrong rank", k)};
  if (form.role == OperandRole::index) {
    if (operand.buffer != -1 || operand.position != -1)
      throw Fault{fmt::format("index operand {} names a buffer or a position", k)};
  } else {
    if (operand.buffer < 0 || static_cast<std::size_t>(operand.buffer) >= buffers_.size())
      throw Fault{fmt::format("operand {} names a buffer that does not exist", k)};
    if (buffers_[static_cast<std::size_t>(operand.buffer)].dtype != form.type)
      throw Fault{fmt::format("operand {} has the wrong type", k)};
  }
  for (int d = 0; d < operand.strides.rank(); ++d) {
    if (operand.strides[d] == 0 || (form.walked >> d & 1U) != 0) continue;
    if (form.moved != nullptr) throw Fault{form.moved};
    throw Fault{fmt::format("operand {} varies along dimension {}, which it lacks", k, d)};
  }
}

void check_given(const Kernel& kernel, std::size_t given, DType type) {
  if (kernel.inputs.size() < given) throw Fault{"a kernel without the input that the step gives it"};
  for (std::size_t i = 0; i < given; ++i) {
    if (kernel.inputs[i] != type) throw Fault{"a kernel whose given input has another type"};
  }
}

}  // namespace caldera::verify
