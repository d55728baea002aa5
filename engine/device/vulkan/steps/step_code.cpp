#include "engine/device/vulkan/steps/step_code.h"

#include "engine/device/vulkan/glsl/epilogue.h"
#include "engine/device/vulkan/glsl/region_shader.h"
#include "engine/device/vulkan/steps/region_space.h"

namespace caldera::vulkan {
namespace {

/// The shader of a region in the form that long rows get on a GPU.
std::string region_shader(const Step& step) {
  const Kernel& kernel = *step.as<RegionStep>().kernel;
  const RegionSpace space = make_space(step);
  const bool by_group = space.reduced_points > kShortRow;
  KernelVariant variant;
  variant.rank = static_cast<std::uint8_t>(space.rank());
  variant.reduce_rank = static_cast<std::uint8_t>(space.reduced.rank());
  if (kernel.reduce) variant.form = by_group ? RegionForm::reduce_per_group : RegionForm::reduce_per_thread;
  if (kernel.has_rows()) variant.form = by_group ? RegionForm::rows_per_group : RegionForm::rows_per_thread;
  variant.access = common_access(kernel, {&space, 1});
  return to_glsl(kernel, variant, {});
}

/// The function that a contraction or an attention step calls for each of its values. `first`: the operand
/// that follows the kernel's parameters; moves behind the kernel's operands.
std::string called_function(const Step& step, const StepKernel& used, std::size_t& first) {
  const Kernel& kernel = *used.kernel;
  const bool returns = !step.is<ContractStep>();
  const int space_rank = step.dims.rank() - (returns ? 2 : 1);
  GlslEpilogue::Shape shape{.rank = space_rank, .parameters = used.given, .returns = returns, .access = {}};
  const std::size_t operands = kernel.inputs.size() - static_cast<std::size_t>(used.given) +
                               static_cast<std::size_t>(kernel.index_count) +
                               (returns ? 0 : kernel.outputs.size());
  for (const std::size_t end = first + operands; first < end; ++first) {
    Access access = Access::scalar;
    for (int d = 0; d < space_rank; ++d) {
      if (step.operands[first].strides[d] != 0 && step.dims[d] > 1) access = Access::strided;
    }
    shape.access.push_back(access);
  }
  return GlslEpilogue(kernel, shape, std::string(used.role)).function();
}

}  // namespace

std::vector<GeneratedCode> code_of_step(const Step& step) {
  if (step.is<RegionStep>()) return {{"GLSL", region_shader(step)}};
  std::vector<GeneratedCode> all;
  auto first = static_cast<std::size_t>(step.named_operands());
  for (const StepKernel& used : step.kernels())
    all.push_back({"GLSL of the " + std::string(used.role), called_function(step, used, first)});
  return all;
}

}  // namespace caldera::vulkan
