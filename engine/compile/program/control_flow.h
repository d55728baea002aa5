// ControlFlow: the programs that a node of OpClass::control runs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/compile/program/program.h"
#include "engine/graph/control_layout.h"
#include "engine/graph/node.h"

namespace caldera {

class HostExchange;

/// A type of a tensor.
struct TensorType {
  DType dtype = DType::f32;
  InternedShape shape;
};

/// One program, with what binds it. Its outputs are the part's results, in order.
struct ControlPart {
  Program program;
  std::vector<std::uint32_t> parameters;  // by slot of its data
  std::vector<std::uint32_t> numbers;     // by slot of those of its scalars that are no constants
  std::vector<NodePtr> nodes;             // own what the program names
};

/// Immutable, and shared by nodes. The inputs of a node: layout.tensors() tensors, then its numbers, which
/// are scalar leaves. Its attributes are the hash, which stands for all of it.
struct ControlFlow {
  ControlLayout layout;
  std::vector<TensorType> inputs;   // the tensors
  std::vector<TensorType> results;  // as the node gives them: stacked ones whole
  std::vector<DType> numbers;       // as they are computed with
  std::vector<ControlPart> parts;
  std::shared_ptr<const HostExchange> exchange;  // of that kind
  Hash128 hash;
};

}  // namespace caldera
