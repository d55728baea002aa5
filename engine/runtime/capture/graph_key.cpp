#include "engine/runtime/capture/graph_key.h"

#include <algorithm>
#include <cstdint>

#include "engine/compile/program/moved_parts.h"
#include "engine/graph/data_leaf.h"
#include "engine/graph/origins_walk.h"

namespace caldera {
namespace {

bool is_data(const Node& node) { return node.has_value() && !node.is_scalar_leaf(); }

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
  return node.op().kind == OpClass::linalg || node.op().kind == OpClass::transfer ||
         node.op().kind == OpClass::control;
}

bool is_add(const Node& node) {
  return node.op().kind == OpClass::elementwise && node.op().scalar == ScalarOp::add;
}

}  // namespace

/// What is known of a node.
enum GraphKey::Mark : std::uint8_t {
  kIsOutput = 1,
  kIsDear = 2,         // comes of long work, or of a leaf that would go if it were not for the value
  kHasOrigins = 4,     // came from something that can be differentiated with respect to
  kGivesOrigins = 8,   // what is computed of it has
  kIsPads = 16,        // a padding, or a sum of nothing else
  kIsSummand = 32,     // of such a sum
  kHasPositions = 64,  // as arguments (engine/compile/program/moved_parts.h)
};
namespace {
/// In place of a place, until the walk comes to it.
constexpr std::uint32_t kIsAskedFor = 0xffffffff;
}  // namespace

bool GraphKey::is_dear(std::size_t place) const { return (marks_[place] & kIsDear) != 0; }
bool GraphKey::has_origins(std::size_t place) const { return (marks_[place] & kHasOrigins) != 0; }

void GraphKey::fill() { walk_and_read(Held::are_added); }

void GraphKey::walk_again() { walk_and_read(Held::stay); }

void GraphKey::walk_and_read(Held held) {
  begin();
  data.clear();
  if (held == Held::are_added) wanted.clear();
  for (Node* output : outputs) output->walk_index = kIsAskedFor;
  evaluation_order(
      outputs, [](const Node& node) { return is_data(node) || node.is_scalar_leaf(); }, walk,
      [&](Node& node, std::uint32_t place) {
        if (node.is_scalar_leaf()) {
          read_scalar(node);
        } else if (node.has_value()) {
          read_data(node);
          data.push_back(&node);
        } else {
          read_operation(node, place, held);
        }
      });
  outputs.insert(outputs.end(), added_.begin(), added_.end());
  end();
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
  begin();
  std::size_t leaves = 0;
  for (std::uint32_t place = 0; place < walk.order.size(); ++place) {
    Node& node = *walk.order[place];
    if (node.is_scalar_leaf()) {
      read_scalar(node);
    } else if (leaves < data.size() && data[leaves] == &node) {
      read_data(node);
      ++leaves;
    } else {
      read_operation(node, place, Held::stay);
    }
  }
  end();
}

void GraphKey::begin() {
  scalars.clear();
  positions.clear();
  movable_.clear();
  added_.clear();
  marks_.clear();
  crosses = has_dear = has_calls = false;
  hash = {};
  hash.mix(static_cast<std::uint64_t>(device.kind) << 8 | device.index);
}

void GraphKey::end() {
  mix_positions();
  for (const Node* output : outputs) hash.mix(output->walk_index);
}

namespace {

/// The operation (of a leaf, none), the type, and how many words follow, in one word: addresses have 48 bits.
std::uint64_t word_of(const OpDef* op, const Node& node, std::size_t operands) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(op)) |
         static_cast<std::uint64_t>(node.dtype()) << 48 | static_cast<std::uint64_t>(operands & 0xff) << 56;
}

}  // namespace

void GraphKey::mix_leaf(const Node& node) {
  PartHash part(word_of(nullptr, node, node.is_scalar_leaf() ? 1 : 2), node.interned_shape().word());
  node.interned_shape().mix_rest_into(part);
  hash.mix_both(part.lo, part.hi);
}

void GraphKey::read_scalar(Node& node) {
  mix_leaf(node);
  scalars.push_back(&node);
  marks_.push_back(0);
}

void GraphKey::read_data(const Node& node) {
  mix_leaf(node);
  const bool is_held = node.is_held();
  const bool has_origins = node.has_value() && !node.op().zero_gradient &&
                           (node.is_cut() ? static_cast<bool>(node.origins()) : !node.inputs().empty());
  std::uint8_t marks = is_held ? 0 : kIsDear;
  has_dear = has_dear || !is_held;
  if (has_origins) marks |= kHasOrigins;
  if ((is_held || has_origins) && carries_gradients(node)) marks |= kGivesOrigins;
  marks_.push_back(marks);
}

void GraphKey::read_operation(Node& node, std::uint32_t place, Held held) {
  const OpDef& op = node.op();
  const auto operands = node.operands();
  PartHash part(word_of(&op, node, operands.size()), node.interned_shape().word());
  node.interned_shape().mix_rest_into(part);
  std::uint8_t of_operands = 0;
  for (std::size_t i = 0; i < operands.size(); i += 2) {
    std::uint64_t places = operands[i]->walk_index;
    of_operands |= marks_[places];
    if (i + 1 < operands.size()) {
      const std::uint64_t second = operands[i + 1]->walk_index;
      of_operands |= marks_[second];
      places |= second << 32;
    }
    part.mix(places);
  }
  const bool is_held = node.is_held();
  std::uint8_t marks = node.walk_index == kIsAskedFor ? kIsOutput : 0;
  if ((of_operands & kGivesOrigins) != 0 && !op.zero_gradient) marks |= kHasOrigins;
  if (node.inputs().size() != operands.size()) {
    marks |= kHasOrigins;
    has_calls = true;
  }
  if ((is_held || (marks & kHasOrigins) != 0) && carries_gradients(node)) marks |= kGivesOrigins;
  marks_.push_back(marks);
  const bool is_plain = node.kind() == OpClass::elementwise && node.attributes().values().empty() &&
                        (of_operands & (kIsDear | kIsPads)) == 0;
  if (!is_plain) read_rest(node, place, of_operands, part);
  // It is computed a second time, or more: not a third time.
  if (node.was_passed_by() && (marks & kIsOutput) == 0) {
    marks_[place] |= kIsDear;
    has_dear = true;
  }
  if (is_held && held == Held::are_added) add_held(node, place);
  hash.mix_both(part.lo, part.hi);
}

/// What most operations do not have.
void GraphKey::read_rest(const Node& node, std::uint32_t place, std::uint8_t of_operands, PartHash& part) {
  const OpClass kind = node.kind();
  if (kind == OpClass::transfer) crosses = true;
  if ((kind == OpClass::slice && is_movable_slice(node)) || (kind == OpClass::pad && is_movable_pad(node))) {
    movable_.emplace_back(&node, place);
  } else {
    for (const std::int64_t value : node.attributes().values()) part.mix(static_cast<std::uint64_t>(value));
  }
  if (kind == OpClass::pad) marks_[place] |= kIsPads;
  if ((of_operands & kIsPads) != 0 && is_add(node)) find_sum_of_pads(node, place);
  const bool is_output = (marks_[place] & kIsOutput) != 0;
  if (is_output || ((of_operands & kIsDear) == 0 && !is_long_work(node))) return;
  marks_[place] |= kIsDear;
  has_dear = true;
}

/// Of a value that the program holds. Makes an output of it, or of what it is a view of, if it is costly: it
/// is not costly then.
void GraphKey::add_held(Node& node, std::uint32_t place) {
  if ((marks_[place] & kIsOutput) != 0 || node.kind() == OpClass::placeholder) return;
  if ((marks_[place] & kIsDear) == 0) {
    // Of functions under differentiation, others keep what they need; constants cost nothing.
    if (!node.is_traced() && !node.operands().empty()) wanted.push_back(place);
    return;
  }
  Node* stored = &node;
  while (is_rearrangement(*stored) && !stored->operands()[0]->has_value() &&
         !stored->operands()[0]->is_scalar_leaf())
    stored = stored->operands()[0].get();
  constexpr auto kNotDear = static_cast<std::uint8_t>(~kIsDear);
  std::uint8_t& marks = marks_[stored == &node ? place : stored->walk_index];
  if ((marks & kIsOutput) == 0) added_.push_back(stored);
  marks = (marks | kIsOutput) & kNotDear;
  marks_[place] &= kNotDear;
}

/// Paddings that are added to one another may become concatenations, by where they are: those stay as they
/// are.
void GraphKey::find_sum_of_pads(const Node& node, std::uint32_t place) {
  std::uint8_t& left = marks_[node.operands()[0]->walk_index];
  std::uint8_t& right = marks_[node.operands()[1]->walk_index];
  if ((left & right & kIsPads) == 0) return;
  marks_[place] |= kIsPads;
  left |= kIsSummand;
  right |= kIsSummand;
}

void GraphKey::mix_positions() {
  for (const auto& [node, place] : movable_) {
    std::uint8_t& marks = marks_[place];
    PartHash part(marks & kIsSummand, place);
    if ((marks & kIsSummand) != 0) {
      for (const std::int64_t value : node->attributes().values())
        part.mix(static_cast<std::uint64_t>(value));
    } else {
      marks |= kHasPositions;
      for_each_axis(*node, [&](const PartAxis& axis) {
        part.mix(static_cast<std::uint64_t>(axis.step));
        if (axis.moves) positions.push_back(axis.first);
      });
    }
    hash.mix_both(part.lo, part.hi);
  }
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
                    .shape = node->interned_shape(),
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
      if ((marks_[node->walk_index] & kHasPositions) != 0)
        name_positions(program, n, *node, position);
      else if (n.op->kind == OpClass::dynamic_slice || n.op->kind == OpClass::dynamic_update)
        name_slots(program, n);
      else if (n.op->kind == OpClass::control)
        n.control = node->control_flow().get();
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
