#include "engine/runtime/capture.h"

namespace caldera {

const OpDef kDataOp{.name = "data", .kind = OpClass::data, .zero_gradient = true};

namespace {

bool is_data(const Node& node) { return node.has_value() && !node.is_scalar_leaf(); }

void mix_shape(Hash128& hash, const Node& node, std::uint64_t tag) {
  hash.mix(tag | static_cast<std::uint64_t>(node.dtype()) << 8 |
           static_cast<std::uint64_t>(node.shape().rank()) << 16);
  for (std::int64_t extent : node.shape()) hash.mix(static_cast<std::uint64_t>(extent));
}

}  // namespace

void Capture::fill() {
  enum : std::uint64_t { kDataTag = 1, kScalarTag = 2, kNodeTag = 3 };
  data.clear();
  scalars.clear();
  hash = {};
  topological_order(outputs, is_data, walk);
  hash.mix(static_cast<std::uint64_t>(device.kind) << 8 | device.index);
  for (Node* node : walk.order) {
    if (node->is_scalar_leaf()) {
      mix_shape(hash, *node, kScalarTag);
      scalars.push_back(node);
    } else if (node->has_value()) {
      mix_shape(hash, *node, kDataTag);
      data.push_back(node);
    } else {
      mix_shape(hash, *node, kNodeTag);
      hash.mix(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&node->op())));
      for (std::int64_t value : node->attributes().values()) hash.mix(static_cast<std::uint64_t>(value));
      for (const NodePtr& input : node->inputs()) hash.mix(input->walk_index);
    }
  }
  for (const Node* output : outputs) hash.mix(output->walk_index);
}

Program Capture::program() const {
  Program program;
  program.device = device;
  program.nodes.reserve(walk.order.size());
  for (const Node* node : walk.order) {
    Program::Node n{.op = is_data(*node) ? &kDataOp : &node->op(),
                    .dtype = node->dtype(),
                    .shape = node->shape(),
                    .attributes = node->attributes().values(),
                    .first_input = static_cast<std::uint32_t>(program.inputs.size()),
                    .origin = node->walk_index};
    if (is_data(*node)) {
      n.slot = static_cast<std::int32_t>(program.data.size());
      program.data.push_back(static_cast<std::uint32_t>(program.nodes.size()));
    } else if (node->is_scalar_leaf()) {
      n.slot = static_cast<std::int32_t>(program.scalars.size());
      program.scalars.push_back(node->dtype());
    } else {
      n.input_count = static_cast<std::uint32_t>(node->inputs().size());
      for (const NodePtr& input : node->inputs()) program.inputs.push_back(input->walk_index);
    }
    program.nodes.push_back(n);
  }
  for (const Node* output : outputs) program.outputs.push_back(output->walk_index);
  return program;
}

}  // namespace caldera
