#include "engine/compile/program/program_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <memory>
#include <utility>

namespace caldera {

namespace compiled_ops {
const OpDef kReshape{.name = "reshape", .kind = OpClass::reshape};
const OpDef kPermute{.name = "permute_dims", .kind = OpClass::permute};
const OpDef kSlice{.name = "slice", .kind = OpClass::slice};
const OpDef kBroadcast{.name = "broadcast_to", .kind = OpClass::broadcast};
const OpDef kConcatenate{.name = "concatenate", .kind = OpClass::concatenate};
const OpDef kMultiply{.name = "multiply", .kind = OpClass::elementwise, .scalar = ScalarOp::mul};
const OpDef kSum{.name = "sum", .kind = OpClass::reduce, .scalar = ScalarOp::add};
const OpDef kProduct{.name = "matmul", .kind = OpClass::contract};
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

ProgramBuilder::ProgramBuilder(const Program& from) : from_(from), map_(from.nodes.size(), kNoRoot) {
  to_.device = from.device;
  to_.scalars = from.scalars;
  to_.constants = from.constants;
  to_.data.assign(from.data.size(), kNoRoot);
  to_.nodes.reserve(from.nodes.size());
  to_.inputs.reserve(from.inputs.size());
  to_.owned_attributes = from.owned_attributes;
  if (!to_.owned_attributes) to_.owned_attributes = std::make_shared<std::deque<std::vector<std::int64_t>>>();
  table_.resize(std::bit_ceil(2 * from.nodes.size() + 16));
  for (std::uint32_t i = 0; i < from.nodes.size(); ++i) {
    const Program::Node& node = from.nodes[i];
    if (!is_leaf_class(node.op->kind)) continue;
    map_[i] = static_cast<std::uint32_t>(to_.nodes.size());
    if (node.op->kind == OpClass::data) to_.data[static_cast<std::size_t>(node.slot)] = map_[i];
    to_.nodes.push_back(node);
    to_.nodes.back().first_input = to_.nodes.back().input_count = 0;
  }
}

bool ProgramBuilder::is_leaf(std::uint32_t old) const { return is_leaf_class(from_.nodes[old].op->kind); }

std::uint32_t ProgramBuilder::copy(std::uint32_t old) {
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
  const std::uint32_t made =
      make({*node.op, node.dtype, node.shape, node.attributes, inputs}, node.origin, true);
  to_.nodes[made].control = node.control;  // nodes of equal attributes have equal programs
  return made;
}

std::uint32_t ProgramBuilder::make(const OpDef& op, DType dtype, const Shape& shape,
                                   std::span<const std::int64_t> attributes,
                                   std::span<const std::uint32_t> inputs, std::uint32_t origin) {
  return make({op, dtype, shape, attributes, inputs}, origin, false);
}

// By meaning, not by address: what a pass makes coincides with what the graph had.
std::uint64_t ProgramBuilder::hash_of(const Wanted& wanted) {
  std::uint64_t hash = static_cast<std::uint64_t>(wanted.op.kind) |
                       static_cast<std::uint64_t>(wanted.op.scalar) << 8 |
                       static_cast<std::uint64_t>(wanted.dtype) << 16;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  };
  for (std::uint32_t input : wanted.inputs) mix(input);
  for (std::int64_t extent : wanted.shape) mix(static_cast<std::uint64_t>(extent));
  for (std::int64_t value : wanted.attributes) mix(static_cast<std::uint64_t>(value));
  mix(wanted.attributes.size());
  return hash;
}

bool ProgramBuilder::is(std::uint32_t i, const Wanted& wanted) const {
  const Program::Node& n = to_.nodes[i];
  const auto own = to_.inputs_of(n);
  return n.op->kind == wanted.op.kind && n.op->scalar == wanted.op.scalar && n.dtype == wanted.dtype &&
         std::equal(own.begin(), own.end(), wanted.inputs.begin(), wanted.inputs.end()) &&
         n.shape == wanted.shape &&
         std::equal(n.attributes.begin(), n.attributes.end(), wanted.attributes.begin(),
                    wanted.attributes.end());
}

void ProgramBuilder::grow() {
  std::vector<Slot> larger(2 * table_.size());
  const std::size_t mask = larger.size() - 1;
  for (const Slot& slot : table_) {
    if (slot.node == kNoRoot) continue;
    const Program::Node& n = to_.nodes[slot.node];
    std::size_t at = hash_of({*n.op, n.dtype, n.shape, n.attributes, to_.inputs_of(n)}) & mask;
    while (larger[at].node != kNoRoot) at = (at + 1) & mask;
    larger[at] = slot;
  }
  table_ = std::move(larger);
}

std::uint32_t ProgramBuilder::make(const Wanted& wanted, std::uint32_t origin, bool lasting) {
  const std::uint64_t hash = hash_of(wanted);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  const std::size_t mask = table_.size() - 1;
  std::size_t at = hash & mask;
  for (; table_[at].node != kNoRoot; at = (at + 1) & mask) {
    if (table_[at].tag == tag && is(table_[at].node, wanted)) return table_[at].node;
  }
  const auto made = static_cast<std::uint32_t>(to_.nodes.size());
  table_[at] = {tag, made};
  Program::Node node{.op = &wanted.op,
                     .dtype = wanted.dtype,
                     .shape = wanted.shape,
                     .attributes = wanted.attributes,
                     .first_input = static_cast<std::uint32_t>(to_.inputs.size()),
                     .input_count = static_cast<std::uint32_t>(wanted.inputs.size()),
                     .origin = origin};
  if (!lasting && !wanted.attributes.empty()) {
    node.attributes = to_.owned_attributes->emplace_back(wanted.attributes.begin(), wanted.attributes.end());
  }
  to_.inputs.insert(to_.inputs.end(), wanted.inputs.begin(), wanted.inputs.end());
  to_.nodes.push_back(node);
  if (2 * ++made_ > table_.size()) grow();
  return made;
}

std::uint32_t ProgramBuilder::make(const OpDef& op, DType dtype, const Shape& shape,
                                   std::initializer_list<std::int64_t> attributes,
                                   std::initializer_list<std::uint32_t> inputs, std::uint32_t origin) {
  return make(op, dtype, shape, std::span(attributes.begin(), attributes.size()),
              std::span(inputs.begin(), inputs.size()), origin);
}

std::uint32_t ProgramBuilder::transpose(std::uint32_t now, std::uint32_t origin) {
  const DType dtype = node(now).dtype;
  Shape shape = node(now).shape;
  std::vector<std::int64_t> axes(static_cast<std::size_t>(shape.rank()));
  for (std::size_t d = 0; d < axes.size(); ++d) axes[d] = static_cast<std::int64_t>(d);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  std::swap(shape[shape.rank() - 1], shape[shape.rank() - 2]);
  return make(compiled_ops::kPermute, dtype, shape, axes, {&now, 1}, origin);
}

std::uint32_t ProgramBuilder::constant(double value, DType dtype, std::uint32_t origin) {
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

Program ProgramBuilder::finish() {
  for (std::uint32_t output : from_.outputs) to_.outputs.push_back(map_[output]);
  to_.moved_to = from_.moved_to;
  for (std::uint32_t& node : to_.moved_to) {
    if (node != kNoRoot) node = map_[node];
  }
  if (from_.moved_to.empty()) to_.moved_to = std::move(map_);
  return std::move(to_);
}

}  // namespace caldera
