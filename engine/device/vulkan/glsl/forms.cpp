#include "engine/device/vulkan/glsl/forms.h"

#include "engine/device/vulkan/glsl/reduction.h"
#include "engine/device/vulkan/glsl/space.h"

namespace caldera {

void GlslForm::open_points() const {
  if (variant.finishes) {
    if (by_group())
      body.open("for (uint n = 0u; n < points; ++n) {{");
    else
      body.open("for (uint n = gl_LocalInvocationID.x; n < points; n += {}u) {{", variant.lanes);
  } else if (by_group()) {
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
    const int width = variant.width;
    const std::string first = width > 1 ? fmt::format(" * {}u", width) : "";
    body.open("for (uint r = gl_LocalInvocationID.x{}; r < reduced; r += {}u) {{", first,
              variant.lanes * width);
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
  const std::string r =
      fmt::format("(gl_LocalInvocationID.x + {}u) * {}u", e * variant.lanes, int{variant.width});
  body.open("if ({} < reduced) {{", r);
  body.line("const uint r = {};", r);
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

namespace {

/// Elementwise, with neighbours: `n` counts groups of them.
void write_neighbours(GlslForm& form) {
  const GlslOperands& operands = form.operands;
  GlslEvaluator& evaluator = form.evaluator;
  GlslNeighbours& neighbours = form.neighbours;
  GlslBody& body = form.body;
  const int width = neighbours.width();
  form.open_points();
  body.line("const uint m = n * {}u;", width);
  append_coordinates(operands, GlslPart::whole, "m", all_operands(operands), body);
  append_offsets(operands, GlslPart::whole, "m", all_operands(operands), body);
  // Of several dimensions the innermost is divided without rest.
  std::string whole, left;
  if (operands.rank() < 2) {
    body.line("const uint left = min(reduced - m, {}u);", width);
    whole = fmt::format("left == {}u", width);
    left = "left";
  }
  std::vector<std::uint16_t> roots;
  std::vector<int> outputs;
  for (std::size_t o = 0; o < form.kernel.outputs.size(); ++o) {
    roots.push_back(form.kernel.outputs[o].value);
    outputs.push_back(operands.output(static_cast<int>(o)));
  }
  std::vector<bool> wanted = evaluator.needed(roots);
  const std::vector<bool> used = evaluator.operands_of(wanted);
  neighbours.declare_loads(used);
  neighbours.load(used, whole, left);
  evaluator.evaluate_once(wanted);
  neighbours.declare_stores(outputs);
  neighbours.open_each(used, left);
  evaluator.evaluate(wanted);
  for (std::size_t o = 0; o < outputs.size(); ++o)
    evaluator.store(static_cast<int>(o), evaluator.value(roots[o]), {});
  body.close();
  neighbours.store(outputs, whole, left);
  body.close();
}

}  // namespace

void write_elementwise(GlslForm& form) {
  if (form.variant.width > 1) {
    write_neighbours(form);
    return;
  }
  const GlslOperands& operands = form.operands;
  form.open_points();
  append_coordinates(operands, GlslPart::whole, "n", all_operands(operands), form.body);
  append_offsets(operands, GlslPart::whole, "n", all_operands(operands), form.body);
  std::vector<std::uint16_t> roots;
  for (const Kernel::Output& o : form.kernel.outputs) roots.push_back(o.value);
  form.evaluator.evaluate(form.evaluator.needed(roots));
  // Inputs may be where outputs do: every load of the point stands ahead of its stores.
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
  std::vector<bool> wanted = form.evaluator.needed({reduced});
  const std::vector<bool> used = form.evaluator.operands_of(wanted);
  const bool several = form.variant.width > 1;

  form.open_points();
  append_coordinates(operands, GlslPart::kept, "n", all_operands(operands), body);
  append_offsets(operands, GlslPart::kept, "n", all_operands(operands), body);
  reductions.declare();
  form.open_row(used);
  if (several) {
    form.neighbours.declare_loads(used);
    form.neighbours.load(used, {}, {});
    form.evaluator.evaluate_once(wanted);
    form.neighbours.open_each(used);
  }
  form.evaluator.evaluate(wanted);
  reductions.add(0, form.evaluator.value(reduced).text);
  if (several) body.close();
  reductions.end_point(form.variant.width);
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
