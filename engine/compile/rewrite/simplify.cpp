#include "engine/compile/rewrite/simplify.h"

#include <algorithm>
#include <optional>

#include "engine/compile/program/limits.h"
#include "engine/compile/program/program_builder.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

class Simplifier {
 public:
  Simplifier(const Program& program, bool rewrite)
      : program_(program),
        rewrite_(rewrite),
        uses_(count_uses(program)),
        only_sliced_(program.nodes.size(), true),
        build_(program) {}

  Program run() {
    for (Id i = 0; i < program_.nodes.size(); ++i) {
      if (uses_[i] == 0 || old(i).op->kind == OpClass::slice) continue;
      for (Id input : program_.inputs_of(i)) only_sliced_[input] = false;
    }
    for (Id output : program_.outputs) only_sliced_[output] = false;
    for (Id i = 0; i < program_.nodes.size(); ++i) {
      if (uses_[i] == 0 || build_.is_leaf(i)) continue;
      const Id now = simplified(i);
      build_.set(i, now);
      if (now >= new_uses_.size()) new_uses_.resize(now + std::size_t{1}, 0);
      new_uses_[now] = std::max(new_uses_[now], uses_[i]);
    }
    return build_.finish();
  }

 private:
  const Program::Node& old(Id i) const { return program_.nodes[i]; }
  Id input(Id old_node, std::size_t k) const { return build_.at(program_.inputs_of(old_node)[k]); }
  bool is_elementwise(Id now, ScalarOp op) const {
    const OpDef& def = *build_.node(now).op;
    return def.kind == OpClass::elementwise && def.scalar == op;
  }
  /// Whether nothing needs the new node but what is being built.
  bool has_one_use(Id now) const { return now >= new_uses_.size() || new_uses_[now] <= 1; }

  Id simplified(Id i) {
    const Program::Node& n = old(i);
    switch (n.op->kind) {
      case OpClass::identity:
        return input(i, 0);
      case OpClass::elementwise:
        return rewrite_ ? elementwise(i) : build_.copy(i);
      case OpClass::slice:
        if (rewrite_) {
          if (const auto inner = sliced_operands(i)) return *inner;
        }
        return build_.copy(i);
      case OpClass::contract:
        return rewrite_ ? contract(i) : build_.copy(i);
      case OpClass::reduce:
        if (rewrite_) {
          if (const auto product = sum_of_number(i)) return *product;
        }
        return build_.copy(i);
      case OpClass::gather:
        if (rewrite_) {
          if (const auto widened = gathered_then_widened(i)) return *widened;
        }
        return build_.copy(i);
      default:
        return build_.copy(i);
    }
  }

  /// Elements of 16-bit data that are converted to f32: only those that are gathered need be.
  std::optional<Id> gathered_then_widened(Id i) {
    const Program::Node& n = old(i);
    const Id wide = input(i, 0);
    if (!is_elementwise(wide, ScalarOp::cast) || n.dtype != DType::f32) return {};
    const OpDef& cast = *build_.node(wide).op;
    const Id from = build_.inputs(wide)[0];
    const DType type = build_.node(from).dtype;
    if (!is_half(type)) return {};
    const Id taken =
        build_.make(*n.op, type, n.shape, n.attributes, std::vector<Id>{from, input(i, 1)}, n.origin);
    return build_.make(cast, n.dtype, n.shape, {}, {taken}, n.origin);
  }

  Id elementwise(Id i) {
    const Program::Node& n = old(i);
    if (n.op->scalar == ScalarOp::neg && is_elementwise(input(i, 0), ScalarOp::neg)) {
      return build_.inputs(input(i, 0))[0];
    }
    if (n.op->scalar == ScalarOp::cast && build_.node(input(i, 0)).dtype == n.dtype) return input(i, 0);
    if (n.op->scalar == ScalarOp::add) {
      if (const auto joined = sum_of_pads(n, input(i, 0), input(i, 1))) return *joined;
    }
    if (const auto moved = behind_parts(i)) return *moved;
    return build_.copy(i);
  }

  // ---- scales of the operands of products ----

  /// (s A) B is s (A B): nothing is left to be done to A before the product.
  Id contract(Id i) {
    const Program::Node& n = old(i);
    if (!is_floating(n.dtype)) return build_.copy(i);
    std::vector<Id> operands, scales;
    for (std::size_t k = 0; k < n.input_count; ++k) operands.push_back(unscaled(input(i, k), scales, 0));
    Id now = build_.make(*n.op, n.dtype, n.shape, n.attributes, operands, n.origin);
    for (Id scale : scales) {
      now = build_.make(compiled_ops::kMultiply, n.dtype, n.shape, {}, {now, scale}, n.origin);
    }
    return now;
  }
  /// What a tensor is a multiple of, through views that nobody else needs; adds the factor to `scales`.
  Id unscaled(Id now, std::vector<Id>& scales, int depth) {
    constexpr int kDeepest = 8;
    const Program::Node n = build_.node(now);
    if (depth > kDeepest || !has_one_use(now)) return now;
    const std::vector<Id> inputs(build_.inputs(now).begin(), build_.inputs(now).end());
    switch (n.op->kind) {
      case OpClass::elementwise:
        if (n.op->scalar != ScalarOp::mul) return now;
        for (std::size_t k : {0U, 1U}) {
          const Program::Node& factor = build_.node(inputs[k]);
          if (factor.op->kind != OpClass::scalar || build_.node(inputs[1 - k]).shape != n.shape) continue;
          scales.push_back(inputs[k]);
          return inputs[1 - k];
        }
        return now;
      case OpClass::reshape:
      case OpClass::permute:
      case OpClass::broadcast: {
        const std::size_t before = scales.size();
        const Id inner = unscaled(inputs[0], scales, depth + 1);
        if (scales.size() == before) return now;
        return build_.make(*n.op, n.dtype, n.shape, n.attributes, std::vector<Id>{inner}, n.origin);
      }
      default:
        return now;
    }
  }

  // ---- sums of numbers ----

  /// The scalar leaf that a tensor repeats.
  std::optional<Id> number_behind(Id now) const {
    while (true) {
      const Program::Node& n = build_.node(now);
      switch (n.op->kind) {
        case OpClass::scalar:
          return now;
        case OpClass::reshape:
        case OpClass::permute:
        case OpClass::slice:
        case OpClass::broadcast:
          now = build_.inputs(now)[0];
          break;
        default:
          return std::nullopt;
      }
    }
  }

  /// n equal numbers add up to n times the number: one rounding, as in the wide sums of reductions.
  std::optional<Id> sum_of_number(Id i) {
    constexpr std::int64_t kExact = std::int64_t{1} << 24;  // counts that f32 holds
    const Program::Node& n = old(i);
    if (n.op->scalar != ScalarOp::add || (n.dtype != DType::f32 && n.dtype != DType::f64)) return {};
    const auto number = number_behind(input(i, 0));
    const std::int64_t kept = std::max<std::int64_t>(1, n.shape.numel());
    const std::int64_t count = build_.node(input(i, 0)).shape.numel() / kept;
    if (!number || n.shape.numel() == 0 || count < 1 || count > kExact) return {};
    const Id times = build_.constant(static_cast<double>(count), n.dtype, n.origin);
    return build_.make(compiled_ops::kMultiply, n.dtype, n.shape, {}, {*number, times}, n.origin);
  }

  // ---- sums of pads ----

  /// Where the contents of a zero padding lie along the one axis that it pads.
  struct Window {
    int axis = -1;
    std::int64_t begin = 0, end = 0;
  };
  std::optional<Window> window_of(Id pad) const {
    const Program::Node& n = build_.node(pad);
    if (n.op->kind != OpClass::pad || n.input_count != 1) return {};
    Window w;
    const auto rank = static_cast<std::size_t>(n.shape.rank());
    if (n.attributes.size() > 3 * rank) return {};  // where it lies is an argument
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t low = n.attributes[d], high = n.attributes[rank + d];
      if (n.attributes[2 * rank + d] != 0) return {};
      if (low == 0 && high == 0) continue;
      if (w.axis >= 0) return {};
      w.axis = static_cast<int>(d);
      w.begin = low;
      w.end = n.shape[w.axis] - high;
    }
    if (w.axis < 0) return {};
    return w;
  }

  std::optional<Id> sum_of_pads(const Program::Node& n, Id a, Id b) {
    auto wa = window_of(a), wb = window_of(b);
    if (!wa || !wb || wa->axis != wb->axis) return {};
    if (wa->begin > wb->begin) {
      std::swap(a, b);
      std::swap(wa, wb);
    }
    if (wa->end != wb->begin) return {};
    const int axis = wa->axis;
    Shape shape = n.shape;
    shape[axis] = wb->end - wa->begin;
    std::vector<Id> parts;
    for (Id pad : {a, b}) {
      const Id part = build_.inputs(pad)[0];
      if (build_.node(part).op->kind == OpClass::concatenate && build_.node(part).attributes[0] == axis &&
          has_one_use(part)) {
        const auto inner = build_.inputs(part);
        parts.insert(parts.end(), inner.begin(), inner.end());
      } else {
        parts.push_back(part);
      }
    }
    const std::int64_t at[] = {axis};
    const Id joined = build_.make(compiled_ops::kConcatenate, n.dtype, shape, at, parts, n.origin);
    if (shape == n.shape) return joined;
    const auto rank = static_cast<std::size_t>(shape.rank());
    const auto padded = static_cast<std::size_t>(axis);
    std::vector<std::int64_t> margins(3 * rank, 0);
    margins[padded] = wa->begin;
    margins[rank + padded] = n.shape[axis] - wb->end;
    return build_.make(*build_.node(a).op, n.dtype, n.shape, margins, std::vector<Id>{joined}, n.origin);
  }

  // ---- slices of element-wise operations ----

  /// A slice along one axis of an operation that is only read in slices: the operation on slices.
  std::optional<Id> sliced_operands(Id i) {
    const Program::Node& n = old(i);
    const Id of = program_.inputs_of(n)[0];
    if (!only_sliced_[of] || old(of).op->kind != OpClass::elementwise) return {};
    const auto rank = static_cast<std::size_t>(n.shape.rank());
    int axis = -1;
    for (std::size_t d = 0; d < rank; ++d) {
      const auto at = static_cast<int>(d);
      if (n.attributes[rank + d] != 1) return {};
      if (n.shape[at] == old(of).shape[at]) continue;
      if (axis >= 0) return {};
      axis = at;
    }
    if (axis < 0) return {};
    const Id now = build_.at(of);
    const Program::Node whole = build_.node(now);
    if (whole.op->kind != OpClass::elementwise) return {};
    const std::int64_t start = n.attributes[static_cast<std::size_t>(axis)];
    const std::vector<Id> inputs(build_.inputs(now).begin(), build_.inputs(now).end());
    std::vector<Id> operands(inputs.size());
    std::transform(inputs.begin(), inputs.end(), operands.begin(),
                   [&](Id input) { return window(input, axis, start, n.shape[axis], 0); });
    return build_.make(*whole.op, n.dtype, n.shape, whole.attributes, operands, whole.origin);
  }

  // ---- concatenations behind element-wise operations ----

  std::optional<Id> behind_parts(Id i) {
    const Program::Node& n = old(i);
    const auto inputs = program_.inputs_of(n);
    std::optional<Id> model;  // the concatenation whose parts decide
    for (Id old_input : inputs) {
      const Id now = build_.at(old_input);
      const Program::Node& candidate = build_.node(now);
      if (candidate.op->kind != OpClass::concatenate || !has_one_use(now) ||
          candidate.input_count > kMaxConcatParts) {
        continue;
      }
      if (!model || candidate.input_count < build_.node(*model).input_count) model = now;
    }
    if (!model) return {};
    const auto axis = static_cast<int>(build_.node(*model).attributes[0]);
    const std::vector<Id> parts(build_.inputs(*model).begin(), build_.inputs(*model).end());
    std::vector<Id> results;
    results.reserve(parts.size());
    std::int64_t start = 0;
    for (Id part : parts) {
      const Shape shape = build_.node(part).shape;
      std::vector<Id> operands;
      operands.reserve(inputs.size());
      for (Id old_input : inputs) {
        const Id now = build_.at(old_input);
        operands.push_back(now == *model ? part : window(now, axis, start, shape[axis], 0));
      }
      start += shape[axis];
      results.push_back(build_.make(*n.op, n.dtype, shape, n.attributes, operands, n.origin));
    }
    const std::int64_t at[] = {axis};
    return build_.make(compiled_ops::kConcatenate, n.dtype, n.shape, at, results, n.origin);
  }

  /// [start, start + count) of a tensor along an axis. Goes through operations that nobody else needs in
  /// full, and through those that cost nothing.
  Id window(Id now, int axis, std::int64_t start, std::int64_t count, int depth) {
    constexpr int kDeepest = 16;
    const Program::Node n = build_.node(now);
    if (n.op->kind == OpClass::scalar || n.shape[axis] == count) return now;
    Shape shape = n.shape;
    shape[axis] = count;
    const std::vector<Id> inputs(build_.inputs(now).begin(), build_.inputs(now).end());
    if (n.op->kind == OpClass::elementwise && has_one_use(now) && depth < kDeepest) {
      std::vector<Id> operands(inputs.size());
      std::transform(inputs.begin(), inputs.end(), operands.begin(),
                     [&](Id input) { return window(input, axis, start, count, depth + 1); });
      return build_.make(*n.op, n.dtype, shape, n.attributes, operands, n.origin);
    }
    if (n.op->kind == OpClass::broadcast && depth < kDeepest) {
      const Id inner = build_.node(inputs[0]).shape[axis] == 1
                           ? inputs[0]
                           : window(inputs[0], axis, start, count, depth + 1);
      if (build_.node(inner).shape == shape) return inner;
      return build_.make(*n.op, n.dtype, shape, {}, std::vector<Id>{inner}, n.origin);
    }
    if (n.op->kind == OpClass::concatenate && n.attributes[0] == axis) {
      std::int64_t at = 0;
      for (Id input : inputs) {
        const std::int64_t extent = build_.node(input).shape[axis];
        if (at == start && extent == count) return input;
        at += extent;
      }
    }
    std::vector<std::int64_t> attributes(2 * static_cast<std::size_t>(shape.rank()), 0);
    std::fill(attributes.begin() + shape.rank(), attributes.end(), 1);
    attributes[static_cast<std::size_t>(axis)] = start;
    return build_.make(compiled_ops::kSlice, n.dtype, shape, attributes, std::vector<Id>{now}, n.origin);
  }

  const Program& program_;
  bool rewrite_;
  std::vector<std::uint32_t> uses_;
  std::vector<bool> only_sliced_;  // nothing but slices reads it
  ProgramBuilder build_;
  std::vector<std::uint32_t> new_uses_;  // of new nodes: the uses of the old node that each stands for
};

}  // namespace

Program simplify(const Program& program, bool rewrite) { return Simplifier(program, rewrite).run(); }

}  // namespace caldera
