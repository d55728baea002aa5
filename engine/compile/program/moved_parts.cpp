#include "engine/compile/program/moved_parts.h"

#include <utility>
#include <vector>

namespace caldera {
namespace {

const OpDef kMovedSlice{.name = "slice", .kind = OpClass::dynamic_slice};

bool is_view(OpClass kind) {
  return kind == OpClass::slice || kind == OpClass::reshape || kind == OpClass::permute ||
         kind == OpClass::broadcast || kind == OpClass::dynamic_slice;
}

bool any_moves(const Node& node) {
  bool any = false;
  for_each_axis(node, [&](const PartAxis& axis) { any = any || axis.moves; });
  return any;
}

}  // namespace

bool is_movable_slice(const Node& node) {
  constexpr int kMostViews = 16;  // one behind the other
  if (node.op().kind != OpClass::slice || node.shape().numel() == 0) return false;
  const Node* from = node.inputs()[0].get();
  for (int views = 0; !from->has_value(); ++views, from = from->inputs()[0].get()) {
    if (views == kMostViews || !is_view(from->op().kind)) return false;
  }
  return !from->is_scalar_leaf() && any_moves(node);
}

bool is_movable_pad(const Node& node) {
  return node.op().kind == OpClass::pad && node.inputs()[0]->shape().numel() > 0 && any_moves(node);
}

void name_positions(Program& program, Program::Node& n, const Node& node, std::int64_t& position) {
  std::vector<std::int64_t> slots, starts, steps;
  for_each_axis(node, [&](const PartAxis& axis) {
    slots.push_back(axis.moves ? position++ : -1);
    const std::int64_t lowest = axis.moves ? 0 : axis.first;
    starts.push_back(lowest + (axis.step < 0 ? axis.reach : 0));
    steps.push_back(axis.step);
  });
  if (n.op->kind == OpClass::pad) {
    auto& attributes = program.own({n.attributes.begin(), n.attributes.end()});
    for (std::size_t d = 0; d < slots.size(); ++d) attributes[d] = starts[d];
    attributes.insert(attributes.end(), slots.begin(), slots.end());
    n.attributes = attributes;
    return;
  }
  slots.insert(slots.end(), starts.begin(), starts.end());
  slots.insert(slots.end(), steps.begin(), steps.end());
  n.op = &kMovedSlice;
  n.attributes = program.own(std::move(slots));
}

void name_slots(Program& program, Program::Node& n) {
  const std::uint32_t tensors = n.op->kind == OpClass::dynamic_slice ? 1 : 2;
  auto& attributes = program.own({n.attributes.begin(), n.attributes.end()});
  for (std::size_t d = 0; d < static_cast<std::size_t>(n.shape.rank()); ++d) {
    const auto which = static_cast<std::size_t>(attributes[d]);
    attributes[d] = which == 0 ? -1 : program.nodes[program.inputs[n.first_input + which]].slot;
  }
  n.attributes = attributes;
  n.input_count = tensors;
  program.inputs.resize(n.first_input + std::size_t{tensors});
}

}  // namespace caldera
