#include "engine/runtime/capture/graph_key.h"

#include <algorithm>
#include <cstdint>

#include "engine/compile/program/moved_parts.h"
#include "engine/graph/data_leaf.h"

namespace caldera {
namespace {

bool is_data(const Node& node) { return node.has_value() && !node.is_scalar_leaf(); }

void mix_shape(Hash128& hash, const Node& node, std::uint64_t tag) {
  hash.mix(tag | static_cast<std::uint64_t>(node.dtype()) << 8 |
           static_cast<std::uint64_t>(node.shape().rank()) << 16);
  for (std::int64_t extent : node.shape()) hash.mix(static_cast<std::uint64_t>(extent));
}

/// Whether the node has the elements of its first input, all of them, and no others.
bool is_rearrangement(const Node& node) {
  switch (node.op().kind) {
    case OpClass::reshape:
    case OpClass::permute:
    case OpClass::identity:
    case OpClass::broadcast:
      return true;
    default:
      return false;
  }
}

/// Work that no kernel of others takes in, and that is long: to do it twice would be waste.
bool is_long_work(const Node& node) {
  return node.op().kind == OpClass::linalg || node.op().kind == OpClass::transfer;
}

}  // namespace

void GraphKey::add_held() {
  // Whether a value comes of long work, or of a leaf that would go if it were not for the value. The walk has
  // inputs first.
  std::vector<bool> is_dear(walk.order.size(), false);
  std::vector<bool> is_output(walk.order.size(), false);
  for (const Node* output : outputs) is_output[output->walk_index] = true;
  wanted.clear();
  for (Node* node : walk.order) {
    const std::uint32_t at = node->walk_index;
    if (is_output[at] || node->is_scalar_leaf()) continue;
    if (node->has_value()) {
      is_dear[at] = !node->is_held();
      continue;
    }
    const auto inputs = node->operands();
    is_dear[at] = is_long_work(*node) || std::any_of(inputs.begin(), inputs.end(), [&](const NodePtr& input) {
                    return is_dear[input->walk_index];
                  });
    if (!node->is_held() || node->op().kind == OpClass::placeholder) continue;
    if (!is_dear[at]) {
      // Of functions under differentiation, others keep what they need; constants cost nothing.
      if (!node->is_traced() && !inputs.empty()) wanted.push_back(at);
      continue;
    }
    Node* stored = node;
    while (is_rearrangement(*stored) && !stored->operands()[0]->has_value() &&
           !stored->operands()[0]->is_scalar_leaf())
      stored = stored->operands()[0].get();
    if (!is_output[stored->walk_index]) {
      is_output[stored->walk_index] = true;
      outputs.push_back(stored);
    }
    is_dear[at] = is_dear[stored->walk_index] = false;
  }
}

void GraphKey::walk_again() {
  evaluation_order(
      outputs, [](const Node& node) { return is_data(node) || node.is_scalar_leaf(); }, walk);
  data.clear();
  crosses = false;
  for (Node* node : walk.order) {
    if (is_data(*node))
      data.push_back(node);
    else if (node->op().kind == OpClass::transfer)
      crosses = true;
  }
}

void GraphKey::fill() {
  walk_again();
  add_held();
  if (!crosses) hash_structure();
}

void GraphKey::fill(const DevicePart& part) {
  reset(part.device);
  outputs = part.outputs;
  data.clear();
  crosses = false;
  walk.order.clear();
  const std::uint64_t number = next_walk();
  for (Node* node : part.nodes) node->walk = number;
  const auto append = [&](Node* node) {
    node->walk_index = static_cast<std::uint32_t>(walk.order.size());
    walk.order.push_back(node);
  };
  for (Node* node : part.nodes) {
    for (const NodePtr& input : node->operands()) {
      if (input->walk == number) continue;  // of the part, or met before
      input->walk = number;
      append(input.get());
      if (!input->is_scalar_leaf()) data.push_back(input.get());
    }
    append(node);
  }
  hash_structure();
}

/// Paddings that are added to one another may become concatenations, by where they lie: those stay as they
/// are.
void GraphKey::find_summands() {
  summands_.clear();
  std::vector<bool> pads;  // nodes that are paddings, or sums of nothing else
  for (const Node* node : walk.order) {
    if (node->has_value()) continue;
    const OpDef& op = node->op();
    if (op.kind == OpClass::pad) {
      pads.resize(walk.order.size(), false);
      summands_.resize(walk.order.size(), false);
      pads[node->walk_index] = true;
    }
    if (pads.empty() || op.kind != OpClass::elementwise || op.scalar != ScalarOp::add) continue;
    const std::uint32_t left = node->operands()[0]->walk_index;
    const std::uint32_t right = node->operands()[1]->walk_index;
    if (!pads[left] || !pads[right]) continue;
    pads[node->walk_index] = summands_[left] = summands_[right] = true;
  }
}

bool GraphKey::takes_positions(const Node& node) const {
  if (node.op().kind == OpClass::pad) return is_movable_pad(node) && !summands_[node.walk_index];
  return is_movable_slice(node);
}

void GraphKey::hash_structure() {
  find_summands();
  enum : std::uint64_t { kDataTag = 1, kScalarTag = 2, kNodeTag = 3, kMovedTag = 4 };
  scalars.clear();
  positions.clear();
  hash = {};
  hash.mix(static_cast<std::uint64_t>(device.kind) << 8 | device.index);
  auto leaf = data.begin();
  for (Node* node : walk.order) {
    if (node->is_scalar_leaf()) {
      mix_shape(hash, *node, kScalarTag);
      scalars.push_back(node);
    } else if (leaf != data.end() && *leaf == node) {
      mix_shape(hash, *node, kDataTag);
      ++leaf;
    } else if (takes_positions(*node)) {
      mix_shape(hash, *node, kMovedTag);
      hash.mix(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&node->op())));
      for_each_axis(*node, [&](const PartAxis& axis) {
        hash.mix(static_cast<std::uint64_t>(axis.step));
        if (axis.moves) positions.push_back(axis.first);
      });
      for (const NodePtr& input : node->operands()) hash.mix(input->walk_index);
    } else {
      mix_shape(hash, *node, kNodeTag);
      hash.mix(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&node->op())));
      for (std::int64_t value : node->attributes().values()) hash.mix(static_cast<std::uint64_t>(value));
      for (const NodePtr& input : node->operands()) hash.mix(input->walk_index);
    }
  }
  for (const Node* output : outputs) hash.mix(output->walk_index);
}

Program GraphKey::program() const {
  Program program;
  program.device = device;
  program.nodes.reserve(walk.order.size());
  auto position = static_cast<std::int64_t>(scalars.size());
  auto leaf = data.begin();
  for (const Node* node : walk.order) {
    const bool is_data = leaf != data.end() && *leaf == node;
    if (is_data) ++leaf;
    Program::Node n{.op = is_data ? &kDataOp : &node->op(),
                    .dtype = node->dtype(),
                    .shape = node->shape(),
                    .attributes = node->attributes().values(),
                    .first_input = static_cast<std::uint32_t>(program.inputs.size()),
                    .origin = node->walk_index};
    if (is_data) {
      n.slot = static_cast<std::int32_t>(program.data.size());
      program.data.push_back(static_cast<std::uint32_t>(program.nodes.size()));
    } else if (node->is_scalar_leaf()) {
      n.slot = static_cast<std::int32_t>(program.scalars.size());
      program.scalars.push_back(compute_type(node->dtype()));
    } else {
      n.input_count = static_cast<std::uint32_t>(node->operands().size());
      for (const NodePtr& input : node->operands()) program.inputs.push_back(input->walk_index);
      if (takes_positions(*node))
        name_positions(program, n, *node, position);
      else if (n.op->kind == OpClass::dynamic_slice || n.op->kind == OpClass::dynamic_update)
        name_slots(program, n);
    }
    program.nodes.push_back(n);
  }
  program.scalars.insert(program.scalars.end(), positions.size(), DType::i64);
  for (const Node* output : outputs) program.outputs.push_back(output->walk_index);
  return program;
}

std::vector<NodePtr> GraphKey::owned_nodes() const {
  std::vector<NodePtr> nodes;
  nodes.reserve(walk.order.size());
  for (Node* node : walk.order) {
    node->add_ref();
    nodes.emplace_back(node);
  }
  return nodes;
}

}  // namespace caldera
