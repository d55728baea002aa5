#include "engine/device/vulkan/glsl/region_shader.h"

#include <algorithm>
#include <utility>

#include "engine/device/vulkan/glsl/forms.h"

namespace caldera {
namespace {

GlslOperands make_operands(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options) {
  GlslOperands::Shape shape;
  shape.access = variant.access;
  shape.rank = variant.rank;
  shape.reduce_rank = variant.reduce_rank;
  return {kernel, shape, options};
}

/// How many extents, from the second on, coordinates are found by.
int divisors(const GlslOperands& operands) {
  bool coordinates = false;
  for (int k = 0; k < operands.count(); ++k) coordinates |= operands.strides(k) > 0;
  return coordinates ? std::max(operands.rank() - 1, 0) : 0;
}

std::string block_members(const GlslOperands& operands) {
  std::string text = operands.slot_members() + "int points;\nint reduced;\n";
  for (int d = 0; d < operands.rank(); ++d) text += fmt::format("int d{};\n", d);
  text += operands.integer_members();
  for (int d = 1; d <= divisors(operands); ++d) text += fmt::format("uint m{};\n", d);
  return text;
}

/// The statements of main(), or of a function that has the arguments `block` refers to; what they need is in
/// the body. Returns declarations of shared memory.
std::string write_body(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options,
                       const GlslOperands& operands, std::string_view block, GlslBody& body) {
  operands.declare_loaded(block, body);
  body.line("const uint points = uint({}points);", block);
  body.line("const uint reduced = uint({}reduced);", block);
  for (int d = 0; d < variant.rank; ++d) body.line("const int d{} = {}d{};", d, block, d);
  for (int d = 1; d <= divisors(operands); ++d) {
    body.line("const uint m{0} = {1}m{0};", d, block);
    body.line("const uint h{0} = uint(findMSB(uint(d{0} - 1)) + 1);", d);
  }

  GlslNeighbours neighbours(operands, variant, body);
  GlslEvaluator evaluator(kernel, operands, body, variant.width > 1 ? &neighbours : nullptr);
  evaluator.hoist();
  GlslForm form{kernel, variant, options, operands, evaluator, neighbours, body, {}};
  if (variant.width > 1) neighbours.declare_aligned();
  switch (variant.form) {
    case RegionForm::elementwise:
      write_elementwise(form);
      break;
    case RegionForm::reduce_per_thread:
    case RegionForm::reduce_per_group:
      write_reduction(form);
      break;
    case RegionForm::rows_per_thread:
    case RegionForm::rows_per_group:
      write_rows(form);
      break;
  }
  return std::move(form.shared);
}

}  // namespace

ArgumentLayout argument_layout(const Kernel& kernel, const KernelVariant& variant) {
  const GlslOperands operands = make_operands(kernel, variant, {});
  return {operands.slots(), 2 + variant.rank + operands.integers(), divisors(operands)};
}

std::string to_glsl(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options) {
  const GlslOperands operands = make_operands(kernel, variant, options);
  GlslBody body;
  const std::string shared =
      write_body(kernel, variant, options, operands, "a.blocks[gl_WorkGroupID.y].", body);
  std::string text = "// " + kernel.name + '\n';
  append_glsl_preamble(body.needs, options, text);
  text += fmt::format("layout(local_size_x = {}) in;\n", variant.lanes);
  text += "struct Block {\n" + block_members(operands) +
          "};\n"
          "layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments { Block "
          "blocks[]; };\n"
          "layout(push_constant) uniform Push { Arguments a; uint all_groups; };\n" +
          shared;
  append_glsl_functions(body.needs, text);
  text += "void main() {\n" + body.text() + "}\n";
  return text;
}

GlslFinish finishing_glsl(const Kernel& kernel, const KernelVariant& variant, std::size_t blocks,
                          const GlslOptions& device_options) {
  // Not by subgroups. NVIDIA's driver 580 does not have those of the last workgroup converged after the
  // count, whatever SPV_KHR_subgroup_uniform_control_flow says: on an H200 rows came out as NaN.
  GlslOptions options = device_options;
  options.subgroup_size = 0;
  const GlslOperands operands = make_operands(kernel, variant, options);
  GlslBody body;
  const std::string shared = write_body(kernel, variant, options, operands, "a.blocks[block].", body);
  body.needs.coherent = true;
  GlslFinish finish{.needs = std::move(body.needs), .functions = {}, .statements = {}};
  finish.functions =
      "struct FinishBlock {\n" + block_members(operands) +
      "};\n"
      "layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer FinishArguments { "
      "FinishBlock blocks[]; };\n"
      "layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer FinishCounter { uint "
      "ended; };\n"
      "shared uint finish_ended;\n" +
      shared + "void finish_block(FinishArguments a, uint block) {\n" + body.text() + "}\n";
  // The invocation that counts stands for its workgroup, so it has a barrier of its own on either side.
  // What a workgroup stored is there for others before it is counted; the last one loads after it has
  // counted.
  finish.statements = fmt::format(
      "  memoryBarrierBuffer();\n"
      "  barrier();\n"
      "  if (gl_LocalInvocationIndex == 0u) {{\n"
      "    memoryBarrierBuffer();\n"
      "    finish_ended = atomicAdd(finish_counter.ended, 1u) + 1u;\n"
      "    memoryBarrierBuffer();\n"
      "    if (finish_ended == finish_turns) finish_counter.ended = 0u;\n"
      "  }}\n"
      "  barrier();\n"
      "  if (finish_ended == finish_turns) {{\n"
      "    memoryBarrierBuffer();\n"
      "    [[dont_unroll]] for (uint block = 0u; block < {}u; ++block) finish_block(finish_arguments, "
      "block);\n"
      "  }}\n",
      blocks);
  return finish;
}

}  // namespace caldera
