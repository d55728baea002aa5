#include "engine/device/vulkan/glsl/operands.h"

#include "engine/device/vulkan/glsl/memory.h"

namespace caldera {

GlslOperands::GlslOperands(const Kernel& kernel, Shape shape, const GlslOptions& options)
    : kernel_(kernel),
      shape_(std::move(shape)),
      options_(options),
      outputs_from_(static_cast<int>(kernel.inputs.size()) + kernel.index_count),
      one_a_row_(row_operands(kernel)) {}

DType GlslOperands::memory_type(int operand) const {
  return is_output(operand) ? kernel_.outputs[static_cast<std::size_t>(operand - outputs_from_)].type
                            : kernel_.inputs[static_cast<std::size_t>(operand)];
}

int GlslOperands::strides(int operand) const {
  if (!is_there(operand) || access(operand) != Access::strided) return 0;
  return one_a_row(operand) ? kept_rank() : rank();
}

std::vector<GlslOperands::Member> GlslOperands::slot_list() const {
  std::vector<Member> list;
  for (int k = 0; k < count(); ++k) {
    if (has_memory(k))
      list.push_back({glsl_memory(memory_type(k), options_), fmt::format("{}p{}", prefix(), k)});
  }
  for (std::size_t s = 0; s < kernel_.scalars.size(); ++s)
    list.push_back({"uvec2", fmt::format("{}s{}", prefix(), s)});
  return list;
}

std::vector<GlslOperands::Member> GlslOperands::integer_list() const {
  std::vector<Member> list;
  for (int k = 0; k < count(); ++k) {
    if (has_bias(k)) list.push_back({"int", fmt::format("{}b{}", prefix(), k)});
    for (int d = 0; d < strides(k); ++d) list.push_back({"int", fmt::format("{}t{}_{}", prefix(), k, d)});
  }
  return list;
}

std::string GlslOperands::slot_members() const {
  std::string text;
  for (const Member& m : slot_list()) text += fmt::format("{} {};\n", m.type, m.name);
  return text;
}

std::string GlslOperands::integer_members() const {
  std::string text;
  for (const Member& m : integer_list()) text += fmt::format("{} {};\n", m.type, m.name);
  return text;
}

void GlslOperands::declare_loaded(std::string_view block, GlslBody& body) const {
  // Not const: glslang has no constants of reference types.
  for (const Member& m : slot_list()) body.line("{} {} = {}{};", m.type, m.name, block, m.name);
  for (const Member& m : integer_list()) body.line("const {} {} = {}{};", m.type, m.name, block, m.name);
}

void GlslOperands::load(std::string_view block, GlslBody& body) const {
  for (const Member& m : slot_list()) body.line("{} = {}{};", m.name, block, m.name);
  for (const Member& m : integer_list()) body.line("{} = {}{};", m.name, block, m.name);
}

}  // namespace caldera
