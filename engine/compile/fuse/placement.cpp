#include "engine/compile/fuse/placement.h"

#include <algorithm>

#include "engine/compile/program/limits.h"

namespace caldera {
namespace {

bool is_movement(OpClass kind) {
  return kind == OpClass::reshape || kind == OpClass::permute || kind == OpClass::slice ||
         kind == OpClass::broadcast || kind == OpClass::barrier;
}

/// Functions cheap enough to be computed again by every reader of coordinates.
bool is_cheap(ScalarOp op) {
  switch (op) {
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::cast:
    case ScalarOp::logical_not:
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::maximum:
    case ScalarOp::minimum:
    case ScalarOp::bit_not:
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor:
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::logical_xor:
    case ScalarOp::equal:
    case ScalarOp::not_equal:
    case ScalarOp::less:
    case ScalarOp::less_equal:
    case ScalarOp::greater:
    case ScalarOp::greater_equal:
    case ScalarOp::select:
      return true;
    default:
      return false;
  }
}

}  // namespace

Placement::Placement(const Program& program, bool fusion) : program_(&program) {
  const std::size_t count = program.nodes.size();
  root_.resize(count);
  view_.resize(count);
  live_.assign(count, false);
  is_output_.assign(count, false);
  generated_.assign(count, false);
  output_of_.assign(count, -1);
  part_.resize(count);
  find_kept();
  find_views();
  find_barriers();
  find_outputs_and_live();
  if (!fusion) return;
  find_generated();
  find_parts();
}

void Placement::find_kept() {
  const auto count = static_cast<std::uint32_t>(program_->nodes.size());
  kept_.assign(count, false);
  std::vector<std::uint32_t> moved(count);  // what a node is a view of
  for (std::uint32_t i = 0; i < count; ++i) {
    const Program::Node& n = node(i);
    moved[i] = is_movement(n.op->kind) ? moved[program_->inputs_of(n)[0]] : i;
    if (moved[i] != i || is_widening(i)) continue;
    for (std::uint32_t input : program_->inputs_of(n)) kept_[moved[input]] = true;
  }
  for (std::uint32_t i : program_->outputs) kept_[moved[i]] = true;
}

void Placement::find_views() {
  for (std::uint32_t i = 0; i < program_->nodes.size(); ++i) {
    const Program::Node& n = node(i);
    root_[i] = i;
    if (widens_stored(i)) {
      const std::uint32_t from = program_->inputs_of(n)[0];
      root_[i] = root_[from];
      view_[i] = view_[from];
      continue;
    }
    if (!is_movement(n.op->kind)) {
      // Coordinates have no memory: their "strides" give the value itself, and views of them compose like any
      // other.
      view_[i] = n.op->kind == OpClass::index           ? View{0, Dims(n.attributes)}
                 : n.op->kind == OpClass::dynamic_slice ? moved_view(i)
                                                        : dense_view(n.shape);
      continue;
    }
    const std::uint32_t from = program_->inputs_of(n)[0];
    const Shape& shape = node(from).shape;
    const View& view = view_[from];
    root_[i] = root_[from];
    switch (n.op->kind) {
      case OpClass::permute:
        view_[i] = permute_view(view, n.attributes);
        break;
      case OpClass::slice:
        view_[i] = slice_view(view, n.attributes);
        break;
      case OpClass::barrier:
        view_[i] = view;
        break;
      case OpClass::broadcast:
        view_[i] = broadcast_view(view, shape, n.shape);
        break;
      default: {
        const bool is_scalar = node(root_[from]).op->kind == OpClass::scalar;
        const std::optional<View> reshaped =
            is_scalar ? View{0, Dims::filled(n.shape.rank(), 0)} : reshape_view(view, shape, n.shape);
        if (reshaped) {
          view_[i] = *reshaped;
        } else {
          root_[i] = i;
          view_[i] = dense_view(n.shape);
        }
      }
    }
  }
}

/// Of a slice that numbers move, as if they were 0. Its memory is that of what it is a slice of, or a copy.
View Placement::moved_view(std::uint32_t i) const {
  const Program::Node& n = node(i);
  const std::uint32_t from = program_->inputs_of(n)[0];
  const View view = is_moved_in_place(i) ? view_[from] : dense_view(node(from).shape);
  return slice_view(view, n.attributes.subspan(static_cast<std::size_t>(n.shape.rank())));
}

bool Placement::is_moved_in_place(std::uint32_t i) const {
  const std::uint32_t root = root_[program_->inputs_of(i)[0]];
  return !is_free(root) && node(root).dtype == node(i).dtype;
}

/// A root that is a plan's input, or a moved part of one.
bool Placement::is_stored(std::uint32_t root) const {
  while (node(root).op->kind == OpClass::dynamic_slice && is_moved_in_place(root))
    root = root_[program_->inputs_of(root)[0]];
  return node(root).op->kind == OpClass::data;
}

void Placement::find_barriers() {
  for (std::uint32_t i = 0; i < program_->nodes.size(); ++i) {
    const bool is_barrier = node(i).op->kind == OpClass::barrier;
    if (is_barrier && last_barrier_.empty()) last_barrier_.assign(program_->nodes.size(), kNoRoot);
    if (last_barrier_.empty() || root_[i] == i) continue;
    last_barrier_[i] = is_barrier ? i : last_barrier_[program_->inputs_of(i)[0]];
  }
}

bool Placement::is_widening(std::uint32_t i) const {
  const Program::Node& n = node(i);
  return n.op->kind == OpClass::elementwise && n.op->scalar == ScalarOp::cast && n.dtype == DType::f32 &&
         is_half(node(program_->inputs_of(n)[0]).dtype);
}

bool Placement::widens_stored(std::uint32_t i) const {
  if (!is_widening(i)) return false;
  const std::uint32_t root = root_[program_->inputs_of(i)[0]];
  // A gather writes what it moves, whoever reads it.
  const bool kept = kept_[root] || node(root).op->kind == OpClass::gather;
  return (is_stored(root) || (kept && node(root).dtype == node(program_->inputs_of(i)[0]).dtype)) &&
         std::find(program_->outputs.begin(), program_->outputs.end(), i) == program_->outputs.end();
}

bool Placement::is_copy(std::uint32_t i) const { return root_[i] == i && is_movement(node(i).op->kind); }

bool Placement::is_expression(std::uint32_t i) const {
  const OpClass kind = node(i).op->kind;
  return kind == OpClass::elementwise || kind == OpClass::random || kind == OpClass::reduce;
}

void Placement::find_outputs_and_live() {
  for (std::size_t k = 0; k < program_->outputs.size(); ++k) {
    const Source s = source(program_->outputs[k]);
    live_[s.root] = is_output_[s.root] = true;
    const OpClass kind = node(s.root).op->kind;
    const bool has_kernel = kind != OpClass::data && kind != OpClass::dynamic_slice && !is_free(s.root);
    const Shape& shape = node(s.shape_of).shape;
    if (has_kernel && output_of_[s.root] < 0 && node(s.root).dtype == node(program_->outputs[k]).dtype &&
        is_dense(*s.view, shape) && shape.numel() == node(s.root).shape.numel()) {
      output_of_[s.root] = static_cast<std::int32_t>(k);
    }
  }
  for (std::uint32_t i = static_cast<std::uint32_t>(program_->nodes.size()); i-- > 0;) {
    if (!live_[i]) continue;
    for (std::uint32_t input : program_->inputs_of(i)) live_[source(input).root] = true;
  }
}

void Placement::find_generated() {
  const auto count = static_cast<std::uint32_t>(program_->nodes.size());
  std::vector<int> cost(count, 0);  // instructions; 0: no candidate
  std::vector<bool> uniform(count, false);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Program::Node& n = node(i);
    if (!live_[i] || n.op->kind != OpClass::elementwise || is_output_[i]) continue;
    int total = 1;
    bool is_candidate = true, is_uniform = true;
    for (std::uint32_t input : program_->inputs_of(n)) {
      const std::uint32_t root = root_[input];
      is_candidate = is_candidate && (is_free(root) || cost[root] > 0);
      is_uniform = is_uniform && (node(root).op->kind == OpClass::scalar || uniform[root]);
      total += cost[root];
    }
    if (!is_candidate || total > kMaxGenerated || (!is_uniform && !is_cheap(n.op->scalar))) continue;
    cost[i] = total;
    uniform[i] = is_uniform;
    generated_[i] = true;
  }
  // Readers first: what one of them cannot generate gets memory, and is a reader like any other then.
  for (std::uint32_t i = count; i-- > 0;) {
    if (!live_[i] || generated_[i] || is_free(i)) continue;
    for (std::size_t k = 0; k < operand_count(i); ++k) {
      const Source s = operand(i, k);
      if (!generated_[s.root]) continue;
      const bool attends = node(i).op->kind == OpClass::attention ||
                           node(i).op->kind == OpClass::attention_grad_q ||
                           node(i).op->kind == OpClass::attention_grad_kv;
      // Attention reads it in its score, or as an operand that is written out for it.
      if ((!is_expression(i) && !attends) || !can_generate(s.root, *s.view, node(s.shape_of).shape)) {
        generated_[s.root] = false;
      }
    }
  }
}

bool Placement::can_generate(std::uint32_t root, const View& view, const Shape& space) const {
  return generates(root, view, space, 0);
}

bool Placement::generates(std::uint32_t root, const View& view, const Shape& space, int depth) const {
  const OpClass kind = node(root).op->kind;
  if (kind == OpClass::scalar || kind == OpClass::index) return true;
  if (!generated_[root] || depth > kMaxGenerated) return false;
  for (std::size_t k = 0; k < operand_count(root); ++k) {
    const Source s = operand(root, k);
    if (node(s.root).op->kind == OpClass::scalar) continue;
    const auto composed = compose_views(*s.view, node(root).shape, view, space);
    // Functions of numbers alone are the same everywhere.
    if (!composed || !generates(s.root, *composed, space, depth + 1)) return false;
  }
  return true;
}

void Placement::find_parts() {
  const auto count = static_cast<std::uint32_t>(program_->nodes.size());
  std::vector<std::uint32_t> readers(count, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!live_[i]) continue;
    for (std::uint32_t input : program_->inputs_of(i)) ++readers[root_[input]];
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!live_[i] || node(i).op->kind != OpClass::concatenate) continue;
    const auto axis = static_cast<int>(node(i).attributes[0]);
    View window = dense_view(node(i).shape);
    for (std::size_t k = 0; k < operand_count(i); ++k) {
      const Source s = operand(i, k);
      const Shape& part = node(s.shape_of).shape;
      const Shape& own = node(s.root).shape;
      const bool alone = node(s.root).dtype == node(i).dtype && readers[s.root] == 1 && !is_output_[s.root] &&
                         !generated_[s.root];
      const bool writes_by_strides = is_expression(s.root);
      if (alone && writes_by_strides && is_dense(*s.view, part) && part.numel() == own.numel()) {
        if (const auto view = reshape_view(window, part, own)) part_[s.root] = {i, *view};
      }
      window.offset += part[axis] * window.strides[axis];
    }
  }
}

const Shape& iteration_shape(const Placement& placement, std::uint32_t root) {
  const Program::Node& n = placement.node(root);
  if (n.op->kind != OpClass::reduce && !placement.is_copy(root)) return n.shape;
  return placement.node(placement.operand(root, 0).shape_of).shape;
}

}  // namespace caldera
