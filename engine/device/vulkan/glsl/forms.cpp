#include "engine/device/vulkan/glsl/forms.h"

#include "engine/device/vulkan/glsl/reduction.h"
#include "engine/device/vulkan/glsl/space.h"

namespace caldera {

void GlslForm::open_points() const {
  if (by_group()) {
    body.line("const uint share = (points + all_groups - 1u) / all_groups;");
    body.line("const uint first = gl_WorkGroupID.x * share;");
    body.line("const uint last = min(points, first + share);");
    body.open("for (uint n = first; n < last; ++n) {{");
  } else {
    body.line("const uint wave = all_groups * {}u;", variant.lanes);
    body.line("const uint share = (points + wave - 1u) / wave * {}u;", variant.lanes);
    body.line("const uint first = gl_WorkGroupID.x * share;");
    body.line("const uint last = min(points, first + share);");
    body.open("for (uint n = first + gl_LocalInvocationID.x; n < last; n += {}u) {{", variant.lanes);
  }
}

void GlslForm::open_row(const std::vector<bool>& used) const {
  if (by_group()) {
    body.open("for (uint r = gl_LocalInvocationID.x; r < reduced; r += {}u) {{", variant.lanes);
    append_coordinates(operands, GlslPart::along, "r", used, body);
  } else {
    // A nest, so that coordinates need no division.
    body.open("{{");
    body.line("uint r = 0u;");
    for (int d = operands.kept_rank(); d < operands.rank(); ++d)
      body.open("for (int c{0} = 0; c{0} < d{0}; ++c{0}) {{", d);
  }
  append_offsets(operands, GlslPart::along, "r", used, body);
}

void GlslForm::open_point(const std::vector<bool>& used, int e) const {
  body.open("if (gl_LocalInvocationID.x + {}u < reduced) {{", e * variant.lanes);
  body.line("const uint r = gl_LocalInvocationID.x + {}u;", e * variant.lanes);
  append_coordinates(operands, GlslPart::along, "r", used, body);
  append_offsets(operands, GlslPart::along, "r", used, body);
}

void GlslForm::close_row() const {
  if (!by_group()) {
    body.line("++r;");
    for (int d = operands.kept_rank(); d < operands.rank(); ++d) body.close();
  }
  body.close();
}

void write_elementwise(GlslForm& form) {
  const GlslOperands& operands = form.operands;
  form.open_points();
  append_coordinates(operands, GlslPart::whole, "n", all_operands(operands), form.body);
  append_offsets(operands, GlslPart::whole, "n", all_operands(operands), form.body);
  std::vector<std::uint16_t> roots;
  for (const Kernel::Output& o : form.kernel.outputs) roots.push_back(o.value);
  form.evaluator.evaluate(form.evaluator.needed(roots));
  // Inputs may lie where outputs do: every load of the point stands ahead of its stores.
  for (int o = 0; o < static_cast<int>(form.kernel.outputs.size()); ++o)
    form.evaluator.store(o, form.evaluator.value(form.kernel.outputs[static_cast<std::size_t>(o)].value),
                         fmt::format("o{}", operands.output(o)));
  form.body.close();
}

void write_reduction(GlslForm& form) {
  const GlslOperands& operands = form.operands;
  GlslBody& body = form.body;
  const std::uint16_t reduced = form.kernel.outputs[0].value;
  const DType type = form.kernel.code[reduced].type;
  GlslReductions reductions({{*form.kernel.reduce, type, "acc"}}, body);
  const std::vector<bool> wanted = form.evaluator.needed({reduced});

  form.open_points();
  append_coordinates(operands, GlslPart::kept, "n", all_operands(operands), body);
  append_offsets(operands, GlslPart::kept, "n", all_operands(operands), body);
  reductions.declare();
  form.open_row(form.evaluator.operands_of(wanted));
  form.evaluator.evaluate(wanted);
  reductions.add(0, form.evaluator.value(reduced).text);
  reductions.end_point();
  form.close_row();
  reductions.finish();
  if (form.by_group()) {
    reductions.combine_lanes(form.options, form.variant.lanes, false, true, form.shared);
    body.open("if (gl_LocalInvocationID.x == 0u) {{");
  }
  form.evaluator.store(0, {"acc", type}, fmt::format("k{}", operands.output(0)));
  if (form.by_group()) body.close();
  body.close();
}

}  // namespace caldera
