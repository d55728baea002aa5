#include "engine/plan/steps/contract.h"

#include "engine/plan/kernel/check_kernel.h"
#include "engine/plan/kernel/kernel_cost.h"
#include "engine/plan/steps/step_form.h"

namespace caldera {

using verify::DimSet;
using verify::Fault;
using verify::OperandRole;

std::string ContractStep::name() const { return epilogue ? "matmul+" + epilogue->name : "matmul"; }

Shape ContractStep::operand_dims(const StepHeader& step, std::size_t k) const {
  Shape extents = step.dims;
  if (k < 2 * segments.size()) extents[extents.rank() - 1] = segments[k / 2].k;
  return extents;
}

std::vector<StepKernel> ContractStep::kernels() const {
  if (!epilogue) return {};
  return {{epilogue.get(), "epilogue", 1}};
}

std::int64_t ContractStep::flops(const StepHeader& step) const {
  const std::int64_t results = product_of(step.dims, step.dims.rank() - 1);
  std::int64_t flops = 0;
  for (const Segment& segment : segments) flops += results * (2 * segment.k + (segment.scale >= 0 ? 1 : 0));
  return flops + (epilogue ? kernel_flops(*epilogue, results, results) : 0);
}

void ContractStep::check(verify::StepForm& form) const {
  if (segments.empty()) throw Fault{"segments do not fit the step"};
  form.check_rank(3);
  const DType type = form.step().dtype;
  if (is_memory_type(type)) throw Fault{"a product of a type of memory"};
  if (segments[0].k != form.step().dims.back()) throw Fault{"the first segment is not the last extent"};
  for (const Segment& segment : segments) {
    if (segment.k < 0) throw Fault{"a segment of negative length"};
    if (segment.scale != -1) form.check_scalar(segment.scale, type);
    for (const DimSet missing : {form.inner(2), form.inner(3)}) {
      verify::OperandForm& factor =
          form.add(OperandRole::read, form.in_memory(type), form.all() & ~missing, form.all());
      factor.extents[form.rank() - 1] = segment.k;
    }
  }
  const DimSet results = form.all() & ~form.inner(1);
  if (!epilogue) return form.write(type, results);
  verify::check_kernel(*epilogue, false);
  verify::check_given(*epilogue, 1, type);
  form.add_kernel_operands(*epilogue, 1, results, true);
  for (const Kernel::Output& output : epilogue->outputs)
    form.add(OperandRole::written, output.type, results, results, true);
  form.add_scalars_of(*epilogue);
}

}  // namespace caldera
