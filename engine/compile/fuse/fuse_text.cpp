#include "engine/compile/fuse/fuse_text.h"

#include <fmt/format.h>

namespace caldera {
namespace {

/// How a root has its values.
std::string life_of(const Placement& placement, std::uint32_t root) {
  if (placement.is_free(root)) return "free";
  if (placement.is_generated(root)) return "generated";
  if (const auto& part = placement.part(root)) return fmt::format("part of n{}", part->whole);
  return "root";
}

std::string nodes_of(const std::vector<std::uint32_t>& nodes) {
  std::string text;
  for (std::uint32_t node : nodes) text += fmt::format(" n{}", node);
  return text;
}

}  // namespace

std::string to_string(const Placement& placement) {
  std::string text;
  const auto count = static_cast<std::uint32_t>(placement.program().nodes.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const Source source = placement.source(i);
    if (!placement.is_live(source.root)) continue;
    text += fmt::format("  n{} {}: ", i, placement.node(i).op->name);
    text += source.root == i ? life_of(placement, i)
                             : fmt::format("view of n{}, offset {}, strides ({})", source.root,
                                           source.view->offset, fmt::join(source.view->strides, ", "));
    text += '\n';
  }
  return text;
}

std::string to_string(const Placement& placement, const std::vector<Group>& groups) {
  std::string text;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    text += fmt::format("  group {} over {}:", g, group.space.to_string());
    if (group.other != kNoRoot)
      text += fmt::format(" {} n{}", placement.node(group.other).op->name, group.other);
    for (std::uint32_t member : group.members)
      text += fmt::format(" {} n{}", placement.node(member).op->name, member);
    text += fmt::format("; stores{}\n", nodes_of(group.outputs));
  }
  return text;
}

}  // namespace caldera
