#include "engine/device/vulkan/glsl/region_shader.h"

#include <algorithm>

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

std::string block_declaration(const GlslOperands& operands) {
  std::string text = "struct Block {\n" + operands.slot_members() + "int points;\nint reduced;\n";
  for (int d = 0; d < operands.rank(); ++d) text += fmt::format("int d{};\n", d);
  text += operands.integer_members();
  for (int d = 1; d <= divisors(operands); ++d) text += fmt::format("uint m{};\n", d);
  return text +
         "};\n"
         "layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments { Block "
         "blocks[]; };\n"
         "layout(push_constant) uniform Push { Arguments a; uint all_groups; };\n";
}

}  // namespace

ArgumentLayout argument_layout(const Kernel& kernel, const KernelVariant& variant) {
  const GlslOperands operands = make_operands(kernel, variant, {});
  return {operands.slots(), 2 + variant.rank + operands.integers(), divisors(operands)};
}

std::string to_glsl(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options) {
  const GlslOperands operands = make_operands(kernel, variant, options);
  GlslBody body;
  constexpr std::string_view kBlock = "a.blocks[gl_WorkGroupID.y].";
  operands.declare_loaded(kBlock, body);
  body.line("const uint points = uint({}points);", kBlock);
  body.line("const uint reduced = uint({}reduced);", kBlock);
  for (int d = 0; d < variant.rank; ++d) body.line("const int d{} = {}d{};", d, kBlock, d);
  for (int d = 1; d <= divisors(operands); ++d) {
    body.line("const uint m{0} = {1}m{0};", d, kBlock);
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

  std::string text = "// " + kernel.name + '\n';
  append_glsl_preamble(body.needs, options, text);
  text += fmt::format("layout(local_size_x = {}) in;\n", variant.lanes);
  text += block_declaration(operands) + form.shared;
  append_glsl_functions(body.needs, text);
  text += "void main() {\n" + body.text() + "}\n";
  return text;
}

}  // namespace caldera
