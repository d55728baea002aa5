#include "engine/compile/program/rebuild.h"

#include <algorithm>
#include <array>
#include <bit>

namespace caldera {

namespace compiled_ops {
const OpDef kReshape{.name = "reshape", .kind = OpClass::reshape};
const OpDef kSlice{.name = "slice", .kind = OpClass::slice};
const OpDef kBroadcast{.name = "broadcast_to", .kind = OpClass::broadcast};
const OpDef kConcatenate{.name = "concatenate", .kind = OpClass::concatenate};
const OpDef kMultiply{.name = "multiply", .kind = OpClass::elementwise, .scalar = ScalarOp::mul};
const OpDef kSum{.name = "sum", .kind = OpClass::reduce, .scalar = ScalarOp::add};
const OpDef kScalar{.name = "constant", .kind = OpClass::scalar};
}  // namespace compiled_ops

namespace {

bool is_leaf_class(OpClass kind) { return kind == OpClass::data || kind == OpClass::scalar; }

}  // namespace

std::vector<std::uint32_t> count_uses(const Program& program) {
  std::vector<std::uint32_t> uses(program.nodes.size(), 0);
  for (std::uint32_t output : program.outputs) ++uses[output];
  for (std::size_t i = program.nodes.size(); i-- > 0;) {
    if (uses[i] == 0) continue;
    for (std::uint32_t input : program.inputs_of(program.nodes[i])) ++uses[input];
  }
  return uses;
}

Rebuild::Rebuild(const Program& from) : from_(from), map_(from.nodes.size(), kNoRoot) {
  to_.device = from.device;
  to_.scalars = from.scalars;
  to_.constants = from.constants;
  to_.data.assign(from.data.size(), kNoRoot);
  to_.nodes.reserve(from.nodes.size());
  to_.inputs.reserve(from.inputs.size());
  seen_.reserve(from.nodes.size());
  for (std::uint32_t i = 0; i < from.nodes.size(); ++i) {
    const Program::Node& node = from.nodes[i];
    if (!is_leaf_class(node.op->kind)) continue;
    map_[i] = static_cast<std::uint32_t>(to_.nodes.size());
    if (node.op->kind == OpClass::data) to_.data[static_cast<std::size_t>(node.slot)] = map_[i];
    to_.nodes.push_back(node);
    to_.nodes.back().first_input = to_.nodes.back().input_count = 0;
  }
}

bool Rebuild::is_leaf(std::uint32_t old) const { return is_leaf_class(from_.nodes[old].op->kind); }

std::uint32_t Rebuild::copy(std::uint32_t old) {
  const Program::Node& node = from_.nodes[old];
  std::array<std::uint32_t, 8> few{};
  std::vector<std::uint32_t> many;
  std::span<std::uint32_t> inputs(few.data(), node.input_count);
  if (node.input_count > few.size()) {
    many.resize(node.input_count);
    inputs = many;
  }
  const auto old_inputs = from_.inputs_of(node);
  for (std::size_t k = 0; k < old_inputs.size(); ++k) inputs[k] = map_[old_inputs[k]];
  return make(*node.op, node.dtype, node.shape, node.attributes, inputs, node.origin);
}

std::uint32_t Rebuild::make(const OpDef& op, DType dtype, const Shape& shape,
                            std::span<const std::int64_t> attributes, std::span<const std::uint32_t> inputs,
                            std::uint32_t origin) {
  Hash128 key;
  // By meaning, not by address: what a pass makes coincides with what the graph had.
  key.mix(static_cast<std::uint64_t>(op.kind) | static_cast<std::uint64_t>(op.scalar) << 8 |
          static_cast<std::uint64_t>(dtype) << 16 | static_cast<std::uint64_t>(shape.rank()) << 24 |
          static_cast<std::uint64_t>(attributes.size()) << 32 |
          static_cast<std::uint64_t>(inputs.size()) << 48);
  for (std::int64_t extent : shape) key.mix(static_cast<std::uint64_t>(extent));
  for (std::int64_t value : attributes) key.mix(static_cast<std::uint64_t>(value));
  for (std::uint32_t input : inputs) key.mix(static_cast<std::uint64_t>(input));
  const auto [found, is_new] = seen_.try_emplace(key, static_cast<std::uint32_t>(to_.nodes.size()));
  if (!is_new) return found->second;
  Program::Node node{.op = &op,
                     .dtype = dtype,
                     .shape = shape,
                     .first_input = static_cast<std::uint32_t>(to_.inputs.size()),
                     .input_count = static_cast<std::uint32_t>(inputs.size()),
                     .origin = origin};
  if (!attributes.empty()) {
    node.attributes = to_.owned_attributes.emplace_back(attributes.begin(), attributes.end());
  }
  to_.inputs.insert(to_.inputs.end(), inputs.begin(), inputs.end());
  to_.nodes.push_back(node);
  return found->second;
}

std::uint32_t Rebuild::make(const OpDef& op, DType dtype, const Shape& shape,
                            std::initializer_list<std::int64_t> attributes,
                            std::initializer_list<std::uint32_t> inputs, std::uint32_t origin) {
  return make(op, dtype, shape, std::span(attributes.begin(), attributes.size()),
              std::span(inputs.begin(), inputs.size()), origin);
}

std::uint32_t Rebuild::constant(double value, DType dtype, std::uint32_t origin) {
  const std::uint64_t bits = dtype == DType::f64 ? std::bit_cast<std::uint64_t>(value)
                                                 : std::bit_cast<std::uint32_t>(static_cast<float>(value));
  to_.nodes.push_back({.op = &compiled_ops::kScalar,
                       .dtype = dtype,
                       .slot = static_cast<std::int32_t>(to_.scalars.size()),
                       .origin = origin});
  to_.scalars.push_back(compute_type(dtype));
  to_.constants.push_back(bits);
  return static_cast<std::uint32_t>(to_.nodes.size() - 1);
}

Program Rebuild::finish() {
  for (std::uint32_t output : from_.outputs) to_.outputs.push_back(map_[output]);
  return std::move(to_);
}

}  // namespace caldera
