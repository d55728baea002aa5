#include "engine/plan/steps/region.h"

#include <algorithm>

#include "engine/plan/kernel/check_kernel.h"
#include "engine/plan/kernel/kernel_cost.h"
#include "engine/plan/steps/step_form.h"

namespace caldera {

using verify::DimSet;
using verify::Fault;
using verify::OperandRole;

std::string_view RegionStep::form() const {
  if (kernel->has_rows()) return "row";
  if (kernel->reduce) return "reduce";
  const bool moves_only = std::all_of(kernel->code.begin(), kernel->code.end(), [](const Instruction& i) {
    return info(i.op).arity == 0 || i.op == ScalarOp::cast;
  });
  return moves_only ? "copy" : "map";
}

std::string RegionStep::name() const { return kernel ? kernel->name : "region"; }

int RegionStep::output_count() const { return static_cast<int>(kernel->outputs.size()); }

bool RegionStep::reads_in_place(std::size_t) const { return !kernel->reduce.has_value(); }

std::vector<StepKernel> RegionStep::kernels() const { return {{kernel.get(), "", 0}}; }

std::int64_t RegionStep::own_operations() const { return kernel->reduce ? 1 : 0; }

std::int64_t RegionStep::flops(const StepHeader& step) const {
  return kernel_flops(*kernel, step.dims.numel(), product_of(step.dims, step.dims.rank() - reduce_rank));
}

void RegionStep::check(verify::StepForm& form) const {
  if (reduce_rank < 0 || reduce_rank > form.rank()) throw Fault{"more reduced dimensions than there are"};
  if (kernel == nullptr) throw Fault{"a region without a kernel"};
  verify::check_kernel(*kernel, true);
  bool rows = false;
  std::vector<bool> of_row(kernel->inputs.size(), false);
  for (const Instruction& i : kernel->code) {
    rows = rows || is_row_reduction(i.op);
    if (i.op == ScalarOp::load_row) of_row[i.a] = true;
  }
  if (kernel->reduce ? kernel->outputs.size() != 1 : !rows && reduce_rank != 0)
    throw Fault{"reduced dimensions do not fit the kernel"};
  const DimSet kept = (DimSet{1} << (form.rank() - reduce_rank)) - 1;
  const bool own = !kernel->reduce;
  for (std::size_t i = 0; i < kernel->inputs.size(); ++i) {
    const DimSet walked = of_row[i] ? kept : form.all();
    form.add(OperandRole::read, kernel->inputs[i], walked, walked, own).moved =
        "an operand of the row varies along it";
  }
  for (int i = 0; i < kernel->index_count; ++i) form.add(OperandRole::index, DType::i64, form.all(), 0);
  const std::vector<bool> whole = verify::row_values(*kernel);
  for (const Kernel::Output& output : kernel->outputs) {
    const DimSet walked = kernel->reduce || (rows && whole[output.value]) ? kept : form.all();
    form.add(OperandRole::written, output.type, walked, walked, own).moved =
        kernel->reduce ? "the result of a reduction varies along a reduced dimension"
                       : "the result of a row varies along it";
  }
  form.add_scalars_of(*kernel);
}

}  // namespace caldera
