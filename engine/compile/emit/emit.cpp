// Emission: the order of groups, and the memory of roots.
#include <fmt/core.h>

#include "engine/base/error.h"
#include "engine/compile/emit/emitter.h"
#include "engine/compile/fuse/labels.h"

namespace caldera {

Emitter::Emitter(const Placement& placement, const DeviceTraits& traits, PartCompiler compile_part)
    : placement_(placement),
      traits_(traits),
      compile_part_(std::move(compile_part)),
      buffer_(placement.program().nodes.size(), -1),
      in_place_(placement.program().nodes.size(), false) {
  const Program& program = placement.program();
  plan_.device = program.device;
  plan_.scalars = program.scalars;
  plan_.constants = program.constants;
  plan_.input_count = static_cast<std::int32_t>(program.data.size());
  plan_.output_count = static_cast<std::int32_t>(program.outputs.size());
  for (std::uint32_t leaf : program.data) {
    buffer_[leaf] = add_buffer(BufferRole::input, program.nodes[leaf]);
  }
  for (std::uint32_t output : program.outputs) add_buffer(BufferRole::output, program.nodes[output]);
  for (std::uint32_t i = 0; i < program.nodes.size(); ++i) {
    if (placement.is_live(i) && program.nodes[i].op->kind == OpClass::other_result) {
      other_[{placement.operand(i, 0).root, program.nodes[i].attributes[0]}] = i;
    }
  }
}

Plan Emitter::run(const std::vector<Group>& groups) {
  find_stored_keys();
  for (const Group& g : groups) {
    origins_.clear();
    for (std::uint32_t i : g.members) origins_.push_back(node(i).origin);
    if (g.other != kNoRoot) origins_.push_back(node(g.other).origin);
    label_ = label_of(placement_, g);
    if (g.other == kNoRoot) {
      region(g);
      continue;
    }
    const std::uint32_t i = g.other;
    if (absorbed_[i]) continue;
    switch (node(i).op->kind) {
      case OpClass::contract:
        product(g);
        break;
      case OpClass::attention:
      case OpClass::attention_grad_q:
      case OpClass::attention_grad_kv:
        attention(i);
        break;
      case OpClass::other_result:
        break;  // written together with the first
      case OpClass::gather:
        gather(i);
        break;
      case OpClass::scatter:
        scatter(i);
        break;
      case OpClass::sort:
        sort(i);
        break;
      case OpClass::linalg:
        linalg(i);
        break;
      case OpClass::quantized:
        quantized(i);
        break;
      case OpClass::convolution:
        convolution(i);
        break;
      case OpClass::control:
        control(i);
        break;
      case OpClass::dynamic_slice:
        dynamic_slice(i);
        break;
      case OpClass::dynamic_update:
        dynamic_update(i);
        break;
      case OpClass::pad:
        pad(i);
        break;
      case OpClass::concatenate:
        concatenate(i);
        break;
      default:
        copy_root(i);
    }
  }
  origins_.clear();
  label_.clear();
  const Program& program = placement_.program();
  for (std::size_t k = 0; k < program.outputs.size(); ++k) {
    const Source source = placement_.source(program.outputs[k]);
    if (placement_.output_of(source.root) == static_cast<std::int32_t>(k)) continue;
    const Shape& shape = node(source.shape_of).shape;
    origins_ = {node(program.outputs[k]).origin};
    copy(source, shape, plan_.input_count + static_cast<std::int32_t>(k), dense_view(shape));
  }
  find_stored_values();
  resolve_moved();
  return std::move(plan_);
}

/// Of each node of the graph whose value is the whole of an arena buffer. A part of a concatenation has no
/// buffer, and a slice that numbers move has that of what it is a part of.
void Emitter::find_stored_values() {
  const std::vector<std::uint32_t>& now = placement_.program().moved_to;
  for (std::uint32_t i = 0; i < now.size(); ++i) {
    if (now[i] == kNoRoot) continue;
    const Source s = placement_.source(now[i]);
    const Program::Node& root = node(s.root);
    const std::int32_t buffer = buffer_[s.root];
    if (buffer < plan_.input_count + plan_.output_count || root.op->kind == OpClass::dynamic_slice) continue;
    const Program::Node& n = node(s.shape_of);
    if (n.dtype != root.dtype || n.shape.numel() != root.shape.numel() || !is_dense(*s.view, n.shape))
      continue;
    plan_.stored_values.push_back({i, static_cast<std::uint32_t>(buffer)});
  }
  plan_.stored_values.shrink_to_fit();
}

std::int32_t Emitter::add_buffer(BufferRole role, DType dtype, std::int64_t elements) {
  const std::int64_t bytes = elements * static_cast<std::int64_t>(size_of(dtype));
  plan_.buffers.push_back({.role = role, .dtype = dtype, .bytes = bytes});
  return static_cast<std::int32_t>(plan_.buffers.size() - 1);
}

std::int32_t Emitter::destination(std::uint32_t root) {
  if (buffer_[root] >= 0) return buffer_[root];
  const std::int32_t output = placement_.output_of(root);
  buffer_[root] = output >= 0 ? plan_.input_count + output : add_buffer(BufferRole::arena, node(root));
  return buffer_[root];
}

std::int32_t Emitter::memory(std::uint32_t root) {
  if (buffer_[root] < 0) {
    throw PlanError(fmt::format("compile: '{}' of shape {} is read before it is computed",
                                node(root).op->name, node(root).shape.to_string()));
  }
  return buffer_[root];
}

Emitter::Placed Emitter::placed(const Source& source) {
  if (has_memory(source.root)) return {memory(source.root), *source.view};
  return written_out(source);
}

Emitter::Placed Emitter::written_out(const Source& source, DType type) {
  const Shape& shape = node(source.shape_of).shape;
  const std::int32_t buffer = add_buffer(BufferRole::arena, type, shape.numel());
  copy(source, shape, buffer, dense_view(shape));
  return {buffer, dense_view(shape)};
}

void Emitter::push(Step step) {
  step.nodes = origins_;
  step.label = label_;
  plan_.steps.push_back(std::move(step));
}

}  // namespace caldera
