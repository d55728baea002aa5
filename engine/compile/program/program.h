// Program: the graph of one evaluation as the compiler sees it, with leaves numbered in the order in which
// replays bind them. Passes take a program and give a program.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/graph/op.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/interned_shape.h"

namespace caldera {

struct ControlFlow;

/// The position of no node.
inline constexpr std::uint32_t kNoRoot = 0xffffffffU;

struct Program {
  struct Node {
    const OpDef* op = nullptr;
    DType dtype = DType::f32;
    InternedShape shape;
    std::span<const std::int64_t> attributes;  // owned by the graph's node, or by `owned_attributes`
    std::uint32_t first_input = 0;             // range in `inputs`
    std::uint32_t input_count = 0;
    std::int32_t slot = -1;    // data leaf: number of the plan input; scalar leaf: number of the plan scalar
    std::uint32_t origin = 0;  // the node of the graph's own program that this one stands for
    const ControlFlow* control = nullptr;  // of OpClass::control: its programs, owned by the graph's node
  };

  Device device;
  std::vector<Node> nodes;            // inputs before users
  std::vector<std::uint32_t> inputs;  // of all nodes, by position
  std::vector<std::uint32_t> outputs;
  std::vector<std::uint32_t> data;       // positions of the data leaves, by slot
  std::vector<DType> scalars;            // by slot: those that replays bind, then the constants
  std::vector<std::uint64_t> constants;  // bits of the last scalars, which passes have added
  /// Nodes of the graph's own program, ascending: their values are wanted where the plan stores them anyway
  /// (Plan::optional_outputs). Passes neither look at them nor hand them on.
  std::vector<std::uint32_t> optional_outputs;
  /// Says where the value of each node of the graph's own program is by now; kNoRoot: it is not computed by
  /// itself. Empty: where it always was.
  std::vector<std::uint32_t> moved_to;
  /// Holds the attributes of nodes that passes have made; grows while passes make one program of another.
  std::shared_ptr<std::deque<std::vector<std::int64_t>>> owned_attributes;

  /// Keeps attributes for a node that is made.
  std::vector<std::int64_t>& own(std::vector<std::int64_t> attributes) {
    if (!owned_attributes) owned_attributes = std::make_shared<std::deque<std::vector<std::int64_t>>>();
    return owned_attributes->emplace_back(std::move(attributes));
  }
  std::span<const std::uint32_t> inputs_of(const Node& n) const {
    return {inputs.data() + n.first_input, n.input_count};
  }
  std::span<const std::uint32_t> inputs_of(std::uint32_t i) const { return inputs_of(nodes[i]); }
};

/// Counts, for each node, the inputs of needed nodes and the outputs that it is. 0: nobody needs it.
std::vector<std::uint32_t> count_uses(const Program& program);

}  // namespace caldera
