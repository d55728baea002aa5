// RecordedGraph: a graph as it stood when it was evaluated.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace caldera {

struct OpDef;

/// Holds what is kept of a node: neither its value nor its inputs stay alive.
struct GraphNode {
  const OpDef* op = nullptr;
  Shape shape;
  DType dtype = DType::f32;
  std::uint64_t id = 0;
  bool is_data = false;               // a leaf that has its value
  std::vector<std::uint32_t> inputs;  // positions in RecordedGraph::nodes
};

/// A graph as it stood when it was evaluated. Step::nodes are positions in `nodes`.
struct RecordedGraph {
  std::vector<GraphNode> nodes;  // inputs before users
  std::vector<std::uint32_t> outputs;
};

}  // namespace caldera
