#include "engine/device/vulkan/glsl/region_shader.h"

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

std::string block_declaration(const GlslOperands& operands) {
  std::string text = "struct Block {\n" + operands.slot_members() + "int points;\nint reduced;\n";
  for (int d = 0; d < operands.rank(); ++d) text += fmt::format("int d{};\n", d);
  return text + operands.integer_members() +
         "};\n"
         "layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments { Block "
         "blocks[]; };\n"
         "layout(push_constant) uniform Push { Arguments a; uint all_groups; };\n";
}

}  // namespace

ArgumentLayout argument_layout(const Kernel& kernel, const KernelVariant& variant) {
  const GlslOperands operands = make_operands(kernel, variant, {});
  return {operands.slots(), 2 + variant.rank + operands.integers()};
}

std::string to_glsl(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options) {
  const GlslOperands operands = make_operands(kernel, variant, options);
  GlslBody body;
  constexpr std::string_view kBlock = "a.blocks[gl_WorkGroupID.y].";
  operands.declare_loaded(kBlock, body);
  body.line("const uint points = uint({}points);", kBlock);
  body.line("const uint reduced = uint({}reduced);", kBlock);
  for (int d = 0; d < variant.rank; ++d) body.line("const int d{} = {}d{};", d, kBlock, d);

  GlslEvaluator evaluator(kernel, operands, body);
  evaluator.hoist();
  GlslForm form{kernel, variant, options, operands, evaluator, body, {}};
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
