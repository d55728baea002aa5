// Program: the graph of one evaluation as the compiler sees it, with leaves numbered in the order in which
// replays bind them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/op.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace caldera {

struct Program {
  struct Node {
    const OpDef* op = nullptr;
    DType dtype = DType::f32;
    Shape shape;
    std::span<const std::int64_t> attributes;  // owned by the graph's node
    std::uint32_t first_input = 0;             // range in `inputs`
    std::uint32_t input_count = 0;
    std::int32_t slot = -1;  // data leaf: number of the plan input; scalar leaf: number of the plan scalar
  };

  Device device;
  std::vector<Node> nodes;            // inputs before users
  std::vector<std::uint32_t> inputs;  // of all nodes, by position
  std::vector<std::uint32_t> outputs;
  std::vector<std::uint32_t> data;  // positions of the data leaves, by slot
  std::vector<DType> scalars;       // by slot

  std::span<const std::uint32_t> inputs_of(const Node& n) const {
    return {inputs.data() + n.first_input, n.input_count};
  }
};

}  // namespace caldera
