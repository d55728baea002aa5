#include "engine/compile/fuse/labels.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/compile/rewrite/products.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

/// Looks for what the field has names for among the operations of a group. Views between operations do not
/// matter here: operands are roots.
class Reader {
 public:
  Reader(const Placement& placement, const Group& group) : placement_(placement), group_(group) {}

  std::string run() {
    const bool logsumexp = any(&Reader::is_logsumexp);
    if (logsumexp && any(&Reader::picks_a_class)) {
      add("cross_entropy");
    } else {
      if (any(&Reader::is_softmax)) add("softmax");
      if (any(&Reader::is_log_softmax))
        add("log_softmax");
      else if (logsumexp)
        add("logsumexp");
    }
    if (any(&Reader::is_centred_square_sum))
      add("layer_norm");
    else if (any(&Reader::is_square_sum) && any(&Reader::is_inverse_root))
      add("rms_norm");
    if (any(&Reader::is_swiglu))
      add("swiglu");
    else if (any(&Reader::is_silu))
      add("silu");
    if (any(&Reader::is_gelu)) add("gelu");
    if (any(&Reader::is_adam)) add("adamw");
    if (is_rotary()) add("rotary_embedding");
    return label_;
  }

 private:
  void add(std::string_view name) {
    if (!label_.empty()) label_ += '+';
    label_ += name;
  }
  bool any(bool (Reader::*matches)(Id) const) const {
    return std::any_of(group_.members.begin(), group_.members.end(),
                       [&](Id i) { return (this->*matches)(i); });
  }

  const Program::Node& node(Id i) const { return placement_.node(i); }
  bool is(Id i, ScalarOp op) const {
    return node(i).op->kind == OpClass::elementwise && node(i).op->scalar == op;
  }
  bool reduces(Id i, ScalarOp op) const {
    return node(i).op->kind == OpClass::reduce && node(i).op->scalar == op;
  }
  Id in(Id i, std::size_t k) const { return placement_.operand(i, k).root; }
  std::size_t count(Id i) const { return placement_.operand_count(i); }
  /// Whether some operand of i satisfies the condition; `other` is then the first of the others.
  template <class Condition>
  bool one_of(Id i, Condition condition, Id* other = nullptr) const {
    for (std::size_t k = 0; k < count(i); ++k) {
      if (!condition(in(i, k))) continue;
      if (other != nullptr) *other = count(i) == 2 ? in(i, 1 - k) : kNoRoot;
      return true;
    }
    return false;
  }
  bool is_sum_of(Id i, Id what) const { return reduces(i, ScalarOp::add) && in(i, 0) == what; }

  bool is_softmax(Id i) const {
    return is(i, ScalarOp::div) && is(in(i, 0), ScalarOp::exp) && is_sum_of(in(i, 1), in(i, 0));
  }
  /// The logarithm of a sum of exponentials.
  bool is_logsumexp(Id i) const {
    return is(i, ScalarOp::log) && reduces(in(i, 0), ScalarOp::add) && is(in(in(i, 0), 0), ScalarOp::exp);
  }
  /// x less that, with or without the maximum that was taken out of it.
  bool is_log_softmax(Id i) const {
    if (!is(i, ScalarOp::sub)) return false;
    const Id total = in(i, 1);
    return is_logsumexp(total) ||
           (is(total, ScalarOp::add) && one_of(total, [&](Id t) { return is_logsumexp(t); }));
  }
  bool picks_a_class(Id i) const {
    return is(i, ScalarOp::select) && is(in(i, 0), ScalarOp::equal) &&
           node(in(in(i, 0), 0)).dtype == DType::i32;
  }

  bool is_square(Id i) const { return is(i, ScalarOp::mul) && in(i, 0) == in(i, 1); }
  bool is_square_sum(Id i) const { return reduces(i, ScalarOp::add) && is_square(in(i, 0)); }
  bool is_centred_square_sum(Id i) const { return is_square_sum(i) && is(in(in(i, 0), 0), ScalarOp::sub); }
  bool is_inverse_root(Id i) const {
    return is(i, ScalarOp::rsqrt) || (is(i, ScalarOp::div) && is(in(i, 1), ScalarOp::sqrt));
  }

  /// x sigmoid(x), or x / (1 + exp(-x)).
  bool is_silu(Id i) const {
    Id x = kNoRoot;
    if (is(i, ScalarOp::mul)) {
      Id gate = kNoRoot;
      return one_of(
                 i,
                 [&](Id g) {
                   gate = g;
                   return is(g, ScalarOp::sigmoid);
                 },
                 &x) &&
             in(gate, 0) == x;
    }
    if (!is(i, ScalarOp::div) || !is(in(i, 1), ScalarOp::add)) return false;
    return one_of(in(i, 1), [&](Id e) {
      return is(e, ScalarOp::exp) && is(in(e, 0), ScalarOp::neg) && in(in(e, 0), 0) == in(i, 0);
    });
  }
  bool is_swiglu(Id i) const {
    return is(i, ScalarOp::mul) && one_of(i, [&](Id g) { return is_silu(g); });
  }
  /// x (1 + erf(x / sqrt 2)) / 2 in any order: an error function of a multiple of a factor of the product.
  bool is_gelu(Id i) const {
    return is(i, ScalarOp::add) && one_of(i, [&](Id e) { return is(e, ScalarOp::erf); });
  }
  /// m / (sqrt(v) ... + eps)
  bool is_adam(Id i) const {
    return is(i, ScalarOp::div) && is(in(i, 1), ScalarOp::add) && one_of(in(i, 1), [&](Id r) {
             return is(r, ScalarOp::sqrt) ||
                    (is(r, ScalarOp::mul) && one_of(r, [&](Id s) { return is(s, ScalarOp::sqrt); }));
           });
  }
  /// Two halves, each a sum or difference of two products, side by side in one tensor.
  bool is_rotary() const {
    if (group_.outputs.size() != 2) return false;
    std::vector<Id> wholes;
    for (Id i : group_.outputs) {
      const auto& part = placement_.part(i);
      const bool mixes = is(i, ScalarOp::add) || is(i, ScalarOp::sub);
      if (!part || !mixes || !is(in(i, 0), ScalarOp::mul) || !is(in(i, 1), ScalarOp::mul)) return false;
      wholes.push_back(part->whole);
    }
    return wholes[0] == wholes[1];
  }

  const Placement& placement_;
  const Group& group_;
  std::string label_;
};

/// A product whose later segments have a much smaller inner extent: a low-rank update beside it.
bool is_low_rank(const Placement& placement, Id product) {
  const SegmentList list = segments_of(placement.node(product));
  if (list.count < 2) return false;
  const auto inner = [&](int s) {
    return placement.node(placement.operand(product, 2 * static_cast<std::size_t>(s)).shape_of).shape.back();
  };
  return 2 * inner(list.count - 1) <= inner(0);
}

}  // namespace

std::string label_of(const Placement& placement, const Group& group) {
  std::string label;
  if (group.other != kNoRoot) {
    const OpClass kind = placement.node(group.other).op->kind;
    if (kind == OpClass::contract && is_low_rank(placement, group.other)) label = "lora";
    if (kind == OpClass::attention) label = "attention";
    if (kind == OpClass::linalg) label = placement.node(group.other).op->name;
  }
  if (group.members.empty()) return label;
  const std::string inner = Reader(placement, group).run();
  if (inner.empty()) return label;
  return label.empty() ? inner : label + "+" + inner;
}

}  // namespace caldera
