#include "engine/compile/program/program_text.h"

#include <fmt/format.h>

namespace caldera {

std::string to_string(const Program& program) {
  std::string text;
  for (std::size_t i = 0; i < program.nodes.size(); ++i) {
    const Program::Node& node = program.nodes[i];
    text += fmt::format("  n{} = {}", i, node.op->name);
    for (std::uint32_t input : program.inputs_of(node)) text += fmt::format(" n{}", input);
    if (node.slot >= 0) text += fmt::format(" #{}", node.slot);
    if (!node.attributes.empty()) text += fmt::format(" [{}]", fmt::join(node.attributes, " "));
    text += fmt::format("  {} {}\n", name(node.dtype), node.shape.to_string());
  }
  text += "  outputs";
  for (std::uint32_t output : program.outputs) text += fmt::format(" n{}", output);
  return text + "\n";
}

}  // namespace caldera
