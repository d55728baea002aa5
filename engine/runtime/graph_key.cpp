#include "engine/runtime/graph_key.h"

#include <utility>

#include "engine/graph/data_leaf.h"

namespace caldera {
namespace {

bool is_data(const Node& node) { return node.has_value() && !node.is_scalar_leaf(); }

void mix_shape(Hash128& hash, const Node& node, std::uint64_t tag) {
  hash.mix(tag | static_cast<std::uint64_t>(node.dtype()) << 8 |
           static_cast<std::uint64_t>(node.shape().rank()) << 16);
  for (std::int64_t extent : node.shape()) hash.mix(static_cast<std::uint64_t>(extent));
}

// ---- positions ----

/// What a slice takes of an axis.
struct SlicedAxis {
  std::int64_t first = 0;  // the lowest element
  std::int64_t step = 1;
  std::int64_t start = 0;  // where the slice begins, counted from the lowest
  bool moves = false;      // there is more than one place for it
};

/// Whether the starts of a slice are arguments of the plan, and no part of its key: it takes some elements of
/// stored data, or of a view of such.
bool has_moving_starts(const Node& node) {
  constexpr int kMostViews = 16;  // one behind the other
  if (node.op().kind != OpClass::slice || node.shape().numel() == 0) return false;
  const Node* from = node.inputs()[0].get();
  for (int views = 0; views < kMostViews; ++views, from = from->inputs()[0].get()) {
    if (is_data(*from)) return true;
    const OpClass kind = from->op().kind;
    const bool is_view = kind == OpClass::slice || kind == OpClass::reshape || kind == OpClass::permute ||
                         kind == OpClass::broadcast || kind == OpClass::dynamic_slice;
    if (!is_view) return false;
  }
  return false;
}

template <class Visit>
void for_each_axis(const Node& slice, Visit visit) {
  const auto attributes = slice.attributes();
  const Shape& whole = slice.inputs()[0]->shape();
  const auto rank = static_cast<std::size_t>(whole.rank());
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t step = attributes[rank + d];
    const std::int64_t reach = (slice.shape()[static_cast<int>(d)] - 1) * step;
    SlicedAxis axis{.first = attributes[d], .step = step};
    if (reach < 0) {
      axis.first += reach;
      axis.start = -reach;
    }
    axis.moves = (reach < 0 ? -reach : reach) + 1 < whole[static_cast<int>(d)];
    if (!axis.moves) axis.start = attributes[d];
    visit(axis);
  }
}

const OpDef kMovedSlice{.name = "slice", .kind = OpClass::dynamic_slice};

/// Makes of the program's slice one that its next positions move.
void move_slice(Program& program, Program::Node& n, const Node& slice, std::int64_t& position) {
  std::vector<std::int64_t> slots, starts, steps;
  for_each_axis(slice, [&](const SlicedAxis& axis) {
    slots.push_back(axis.moves ? position++ : -1);
    starts.push_back(axis.start);
    steps.push_back(axis.step);
  });
  slots.insert(slots.end(), starts.begin(), starts.end());
  slots.insert(slots.end(), steps.begin(), steps.end());
  n.op = &kMovedSlice;
  n.attributes = program.owned_attributes.emplace_back(std::move(slots));
}

/// Names the numbers that move a part by their slots, in place of inputs.
void name_slots(Program& program, Program::Node& n) {
  const std::uint32_t named = n.op->kind == OpClass::dynamic_slice ? 1 : 2;
  auto& attributes = program.owned_attributes.emplace_back(n.attributes.begin(), n.attributes.end());
  for (std::size_t d = 0; d < static_cast<std::size_t>(n.shape.rank()); ++d) {
    const auto which = static_cast<std::size_t>(attributes[d]);
    attributes[d] = which == 0 ? -1 : program.nodes[program.inputs[n.first_input + which]].slot;
  }
  n.attributes = attributes;
  n.input_count = named;
  program.inputs.resize(n.first_input + std::size_t{named});
}

}  // namespace

void GraphKey::fill() {
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

void GraphKey::hash_structure() {
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
    } else if (has_moving_starts(*node)) {
      mix_shape(hash, *node, kMovedTag);
      for_each_axis(*node, [&](const SlicedAxis& axis) {
        hash.mix(static_cast<std::uint64_t>(axis.step));
        if (axis.moves) positions.push_back(axis.first);
      });
      hash.mix(node->operands()[0]->walk_index);
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
      if (has_moving_starts(*node))
        move_slice(program, n, *node, position);
      else if (n.op->kind == OpClass::dynamic_slice || n.op->kind == OpClass::dynamic_update)
        name_slots(program, n);
    }
    program.nodes.push_back(n);
  }
  program.scalars.insert(program.scalars.end(), positions.size(), DType::i64);
  for (const Node* output : outputs) program.outputs.push_back(output->walk_index);
  return program;
}

}  // namespace caldera
