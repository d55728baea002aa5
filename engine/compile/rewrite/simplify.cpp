#include "engine/compile/rewrite/simplify.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/compile/program/limits.h"
#include "engine/compile/program/program_builder.h"
#include "engine/compile/rewrite/pad_sums.h"
#include "engine/compile/rewrite/slice_readers.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

class Simplifier {
 public:
  Simplifier(const Program& program, bool rewrite)
      : program_(program), rewrite_(rewrite), uses_(count_uses(program)), build_(program) {
    if (!rewrite) return;
    in_slices_ = computed_in_slices(program, uses_);
    pads_ = find_pad_sums(program, uses_);
  }

  Program run() {
    for (Id i = 0; i < program_.nodes.size(); ++i) {
      if (uses_[i] == 0 || build_.is_leaf(i)) continue;
      if (!pads_.inside.empty() && pads_.inside[i]) continue;
      const Id now = simplified(i);
      build_.set(i, now);
      if (now >= new_uses_.size()) new_uses_.resize(now + std::size_t{1}, 0);
      // What takes the place of its own operand is no further reader of it.
      const auto inputs = program_.inputs_of(i);
      const bool passes = std::ranges::any_of(inputs, [&](Id of) { return build_.at(of) == now; });
      new_uses_[now] += uses_[i] - (passes ? 1 : 0);
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
        note_one(i);
        return input(i, 0);
      case OpClass::elementwise:
        return rewrite_ ? elementwise(i) : build_.copy(i);
      case OpClass::slice:
        if (rewrite_) {
          if (const auto inner = sliced_operands(i)) return *inner;
          return sliced(input(i, 0), old(i).shape, old(i).attributes, old(i).origin);
        }
        return build_.copy(i);
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
    if (const auto pads = pads_.of.find(i); pads != pads_.of.end()) return sum_of_pads(n, pads->second);
    if (const auto factor = factor_beside_ones(i)) return *factor;
    if (const auto moved = behind_parts(i)) return *moved;
    if (const auto sum = sum_of_permuted(i)) return *sum;
    return build_.copy(i);
  }

  /// The sum of two tensors with axes in another order: that of the tensors, whose axes are put in the other
  /// order then. So the gradient of a transposed weight that is used in several places is the sum of products
  /// as they are computed, and each addition may follow its product.
  std::optional<Id> sum_of_permuted(Id i) {
    const Program::Node& n = old(i);
    if (n.op->scalar != ScalarOp::add) return {};
    const Id a = input(i, 0), b = input(i, 1);
    const Program::Node first = build_.node(a), second = build_.node(b);
    if (first.op->kind != OpClass::permute || second.op->kind != OpClass::permute || !has_one_use(a) ||
        !has_one_use(b) || !std::ranges::equal(first.attributes, second.attributes))
      return {};
    const Id x = build_.inputs(a)[0], y = build_.inputs(b)[0];
    if (build_.node(x).dtype != n.dtype || build_.node(y).dtype != n.dtype) return {};
    const Shape shape = build_.node(x).shape;
    if (shape != build_.node(y).shape) return {};
    const Id sum = build_.make(*n.op, n.dtype, shape, n.attributes, std::vector<Id>{x, y}, n.origin);
    return build_.make(*first.op, n.dtype, n.shape, first.attributes, {{sum}}, first.origin);
  }

  // ---- ones ----

  /// Remembers a number that is always 1. Where it is a leaf that replays bind, the leaf stays.
  void note_one(Id i) {
    const Program::Node& n = old(i);
    if (n.op->scalar == ScalarOp::scalar && n.attributes[0] == 1) ones_.insert(input(i, 0));
  }
  bool is_ones(Id now) const {
    const auto number = number_behind(now);
    return number && ones_.count(*number) > 0;
  }
  /// x of x * 1, with the bits of x, and so with its sign of zero.
  std::optional<Id> factor_beside_ones(Id i) const {
    const Program::Node& n = old(i);
    if (n.op->scalar != ScalarOp::mul || ones_.empty()) return {};
    for (const std::size_t k : {0, 1}) {
      const Program::Node& x = build_.node(input(i, k));
      if (x.shape == n.shape && x.dtype == n.dtype && is_ones(input(i, 1 - k))) return input(i, k);
    }
    return {};
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

  Id sum_of_pads(const Program::Node& n, const PadSum& sum) {
    Id now = sum.rest == kNoRoot ? kNoRoot : build_.at(sum.rest);
    for (const auto& layer : sum.layers) {
      const Id one = layer_of_pads(n, sum.axis, layer);
      now = now == kNoRoot ? one : build_.make(*n.op, n.dtype, n.shape, n.attributes, {{now, one}}, n.origin);
    }
    return now;
  }
  /// The sum of paddings that do not overlap: their contents one after the other, with zeros between them.
  Id layer_of_pads(const Program::Node& n, int axis, const std::vector<PaddedPart>& parts) {
    if (parts.size() == 1) return build_.at(parts[0].pad);
    std::vector<Id> joined;
    joined.reserve(parts.size());
    std::int64_t at = parts.front().begin;
    bool touching = true;
    for (const PaddedPart& part : parts) touching = touching && std::exchange(at, part.end) == part.begin;
    at = touching ? parts.front().begin : 0;
    const std::int64_t begin = at, end = touching ? parts.back().end : n.shape[axis];
    for (const PaddedPart& part : parts) {
      if (part.begin > at) joined.push_back(zeros(n, axis, part.begin - at));
      joined.push_back(build_.inputs(build_.at(part.pad))[0]);
      at = part.end;
    }
    if (at < end) joined.push_back(zeros(n, axis, end - at));
    Shape shape = n.shape;
    shape[axis] = end - begin;
    const std::int64_t attributes[] = {axis};
    const Id whole = build_.make(compiled_ops::kConcatenate, n.dtype, shape, attributes, joined, n.origin);
    if (shape == n.shape) return whole;
    const auto rank = static_cast<std::size_t>(shape.rank());
    std::vector<std::int64_t> margins(3 * rank, 0);
    margins[static_cast<std::size_t>(axis)] = begin;
    margins[rank + static_cast<std::size_t>(axis)] = n.shape[axis] - end;
    const OpDef& pad = *build_.node(build_.at(parts[0].pad)).op;
    return build_.make(pad, n.dtype, n.shape, margins, {{whole}}, n.origin);
  }
  Id zeros(const Program::Node& like, int axis, std::int64_t extent) {
    if (zero_.count(like.dtype) == 0) zero_[like.dtype] = build_.constant(0, like.dtype, like.origin);
    Shape shape = like.shape;
    shape[axis] = extent;
    const Shape ones(Dims::filled(shape.rank(), 1).span());
    const Id zero = zero_[like.dtype];
    const Id one = build_.make(compiled_ops::kReshape, like.dtype, ones, {}, {&zero, 1}, like.origin);
    return build_.make(compiled_ops::kBroadcast, like.dtype, shape, {}, {&one, 1}, like.origin);
  }

  // ---- slices of element-wise operations ----

  /// A slice along one axis of an operation that is only read in slices: the operation on slices.
  std::optional<Id> sliced_operands(Id i) {
    const Program::Node& n = old(i);
    const Id of = program_.inputs_of(n)[0];
    if (in_slices_.count(of) == 0) return {};
    const int axis = sliced_axis(program_, i);
    const Id now = build_.at(of);
    const Program::Node whole = build_.node(now);
    if (whole.op->kind != OpClass::elementwise) return {};
    const std::int64_t start = n.attributes[static_cast<std::size_t>(axis)];
    const std::vector<Id> inputs(build_.inputs(now).begin(), build_.inputs(now).end());
    window_nodes_ = 0;
    std::vector<Id> operands(inputs.size());
    std::transform(inputs.begin(), inputs.end(), operands.begin(),
                   [&](Id input) { return window(input, axis, start, n.shape[axis], true); });
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
    window_nodes_ = 0;
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
        operands.push_back(now == *model ? part : window(now, axis, start, shape[axis], true));
      }
      start += shape[axis];
      results.push_back(build_.make(*n.op, n.dtype, shape, n.attributes, operands, n.origin));
    }
    const std::int64_t at[] = {axis};
    return build_.make(compiled_ops::kConcatenate, n.dtype, n.shape, at, results, n.origin);
  }

  /// [start, start + count) of a tensor along an axis. Goes through operations that nobody else needs in
  /// full, if `alone` (what leads here is not needed by anybody else either), and through those that cost
  /// nothing.
  Id window(Id now, int axis, std::int64_t start, std::int64_t count, bool alone) {
    constexpr int kMostNodes = 64;
    const Program::Node n = build_.node(now);
    if (n.op->kind == OpClass::scalar || n.shape[axis] == count) return now;
    Shape shape = n.shape;
    shape[axis] = count;
    const std::vector<Id> inputs(build_.inputs(now).begin(), build_.inputs(now).end());
    alone = alone && has_one_use(now);
    if (n.op->kind == OpClass::elementwise && alone && ++window_nodes_ <= kMostNodes) {
      std::vector<Id> operands(inputs.size());
      std::transform(inputs.begin(), inputs.end(), operands.begin(),
                     [&](Id input) { return window(input, axis, start, count, true); });
      return build_.make(*n.op, n.dtype, shape, n.attributes, operands, n.origin);
    }
    if (n.op->kind == OpClass::broadcast && ++window_nodes_ <= kMostNodes) {
      const Id inner =
          build_.node(inputs[0]).shape[axis] == 1 ? inputs[0] : window(inputs[0], axis, start, count, alone);
      if (build_.node(inner).shape == shape) return inner;
      return build_.make(*n.op, n.dtype, shape, {}, std::vector<Id>{inner}, n.origin);
    }
    if (n.op->kind == OpClass::concatenate && n.attributes[0] == axis && n.input_count <= kMaxConcatParts) {
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
    return sliced(now, shape, attributes, n.origin);
  }

  /// A slice; of a slice, one of what that is taken from, so that equal windows are one node however they
  /// came about.
  Id sliced(Id now, const Shape& shape, std::span<const std::int64_t> attributes, std::uint32_t origin) {
    std::vector<std::int64_t> all(attributes.begin(), attributes.end());
    const auto rank = static_cast<std::size_t>(shape.rank());
    while (build_.node(now).op->kind == OpClass::slice) {
      const auto inner = build_.node(now).attributes;
      for (std::size_t d = 0; d < rank; ++d) {
        all[d] = inner[d] + all[d] * inner[rank + d];
        all[rank + d] *= inner[rank + d];
      }
      now = build_.inputs(now)[0];
    }
    return build_.make(compiled_ops::kSlice, build_.node(now).dtype, shape, all, {{now}}, origin);
  }

  const Program& program_;
  bool rewrite_;
  std::vector<std::uint32_t> uses_;
  std::unordered_set<Id> in_slices_;  // see computed_in_slices()
  PadSums pads_;
  std::unordered_map<DType, Id> zero_;
  std::unordered_set<Id> ones_;  // scalar leaves that are always 1
  int window_nodes_ = 0;         // that the rewrite at hand has gone through
  ProgramBuilder build_;
  std::vector<std::uint32_t> new_uses_;  // of new nodes: the uses of the old nodes that each stands for
};

}  // namespace

Program simplify(const Program& program, bool rewrite) { return Simplifier(program, rewrite).run(); }

}  // namespace caldera
