#include "engine/compile/rewrite/attention.h"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/compile/program/program_builder.h"
#include "engine/compile/rewrite/attention_patterns.h"
#include "engine/compile/rewrite/equal_values.h"
#include "engine/plan/steps/attention.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

const OpDef kAttention{.name = "attention", .kind = OpClass::attention};
const OpDef kGradQ{.name = "attention_grad_q", .kind = OpClass::attention_grad_q};
const OpDef kGradKV{.name = "attention_grad_kv", .kind = OpClass::attention_grad_kv};
const OpDef kOther{.name = "other_result", .kind = OpClass::other_result};

class AttentionFinder {
 public:
  AttentionFinder(const Program& program, const DeviceTraits& traits)
      : program_(program),
        traits_(traits),
        uses_(count_uses(program)),
        match_(program),
        build_(program),
        equal_(program) {
    // Each kind is found from those before it, wherever in the program they stand.
    for (auto note : {&AttentionFinder::note_softmax, &AttentionFinder::note_value,
                      &AttentionFinder::note_score_gradient, &AttentionFinder::note_key_gradient}) {
      for (Id i = 0; i < program.nodes.size(); ++i) {
        if (uses_[i] > 0) (this->*note)(i);
      }
      if (softmax_.empty()) return;
    }
    note_kept();
  }

  bool found() const { return !softmax_.empty(); }

  Program run() {
    for (Id i = 0; i < program_.nodes.size(); ++i) {
      if (uses_[i] > 0) build(i, 0);
    }
    return build_.finish();
  }

 private:
  /// v, as the forward product has it, and the type of that product.
  struct Value {
    Id v;
    DType type;
    Id product = kNoRoot;  // where it is that of the forward pass
  };

  /// The cotangent of a score, dS = P (dP - sum(P dP)), with dP = go v^T.
  struct ScoreGrad {
    Id softmax;  // key in softmax_
    Id go;
    Value value;
  };

  /// The cotangent of a raw product, and the type of the gradient of k that it makes.
  struct RawGrad {
    Id node;
    DType type;
  };

  /// Makes sure that an old node is in the new program: usually it is its turn. False where it would have to
  /// come before itself, or from too far.
  bool build(Id i, int depth) {
    constexpr int kDeepest = 200;
    if (build_.at(i) != kNoRoot) return true;
    if (depth > kDeepest || std::find(pending_.begin(), pending_.end(), i) != pending_.end()) return false;
    for (Id input : program_.inputs_of(i)) {
      if (!build(input, depth + 1)) return false;
    }
    pending_.push_back(i);
    const std::optional<Id> now = replaced(i, depth);
    pending_.pop_back();
    build_.set(i, now ? *now : build_.copy(i));
    return true;
  }

  void note_softmax(Id i) {
    if (!match_.is(i, ScalarOp::div)) return;
    auto s = match_.softmax(i);
    if (s && fits(*s)) softmax_.emplace(i, std::move(*s));
  }
  void note_value(Id i) {
    if (!match_.is_product(i)) return;
    const Id p = match_.behind_casts(match_.in(i, 0));
    if (softmax_.count(p) > 0) value_[p] = {match_.in(i, 1), match_.node(i).dtype, i};
  }
  void note_score_gradient(Id i) {
    if (!match_.is(i, ScalarOp::mul)) return;
    if (const auto grad = score_grad(i)) grads_.emplace(i, *grad);
  }

  /// Finds, for a softmax that is computed again behind a barrier, the one of the forward pass, where the
  /// product of that one is kept: what a gradient needs of each row is there, too.
  void note_kept() {
    std::vector<bool> is_kept(program_.nodes.size(), false);
    for (Id i = 0; i < program_.nodes.size(); ++i) {
      if (uses_[i] == 0 || !match_.is(i, OpClass::barrier)) continue;
      for (const Id input : program_.inputs_of(i)) is_kept[input] = true;
    }
    std::vector<Id> kept;  // softmaxes
    for (const auto& [p, value] : value_) {
      if (is_kept[value.product]) kept.push_back(p);
    }
    for (const auto& [ds, g] : grads_) {
      for (const Id p : kept) {
        if (p >= g.softmax || !equal_(g.softmax, p) || !equal_(g.value.v, value_.at(p).v)) continue;
        kept_[g.softmax] = value_.at(p).product;
      }
    }
  }

  bool fits(const Softmax& s) const {
    const Program::Node& raw = match_.node(s.raw);
    const Shape& q = match_.node(match_.in(s.raw, 0)).shape;
    return raw.shape.rank() <= kMaxRank - 2 && raw.shape.numel() > 0 && q.back() > 0 &&
           q.back() <= kMaxHeadSize;
  }

  // ---- the cotangent of the score ----

  std::optional<ScoreGrad> score_grad(Id i) const {
    for (int swap = 0; swap < 2; ++swap) {
      const Id left = match_.in(i, static_cast<std::size_t>(swap));
      const Id right = match_.in(i, static_cast<std::size_t>(1 - swap));
      // dS = (dP / total + broadcast(sum(-(dP P / total)))) exponentials, as the chain rule gives it.
      if (match_.is(right, ScalarOp::exp) && match_.is(left, ScalarOp::add)) {
        for (int k = 0; k < 2; ++k) {
          const Id direct = match_.in(left, static_cast<std::size_t>(k));
          const Id spread = match_.in(left, static_cast<std::size_t>(1 - k));
          if (!match_.is(direct, ScalarOp::div)) continue;
          const Id sum = match_.behind_broadcast(spread);
          if (!match_.is_row_reduction(sum, ScalarOp::add)) continue;
          const Id dp = match_.in(direct, 0);
          const Id negated = match_.in(sum, 0);
          if (!match_.is(negated, ScalarOp::neg)) continue;
          const Id quotient = match_.in(negated, 0);
          if (!match_.is(quotient, ScalarOp::div) || match_.in(quotient, 1) != match_.in(direct, 1)) continue;
          if (auto g = of_softmax(match_.in(quotient, 0), dp)) {
            const Softmax& s = softmax_.at(g->softmax);
            if (s.exponentials == right && s.total == match_.in(direct, 1)) return g;
          }
        }
      }
      // dS = P (dP - broadcast(sum(P dP))).
      if (match_.is(right, ScalarOp::sub) && softmax_.count(left) > 0) {
        const Id dp = match_.in(right, 0);
        const Id sum = match_.behind_broadcast(match_.in(right, 1));
        if (!match_.is_row_reduction(sum, ScalarOp::add)) continue;
        if (auto g = of_softmax(match_.in(sum, 0), dp)) {
          if (g->softmax == left) return g;
        }
      }
    }
    return {};
  }

  /// `product` = P * dP, dP = go v^T.
  std::optional<ScoreGrad> of_softmax(Id product, Id dp) const {
    const Id from = match_.behind_casts(dp);
    if (!match_.is(product, ScalarOp::mul) || !match_.is_product(from)) return {};
    const Id other = match_.in(product, 0) == dp ? match_.in(product, 1) : match_.in(product, 0);
    if (match_.in(product, 0) != dp && match_.in(product, 1) != dp) return {};
    if (softmax_.count(other) == 0) return {};
    const auto v = value_of(other, match_.in(from, 1));
    if (!v || match_.node(v->v).shape.back() > kMaxHeadSize) return {};
    return ScoreGrad{other, match_.in(from, 0), *v};
  }

  /// The v whose transpose a product with `turned` has used, and the forward product too where there is one.
  std::optional<Value> value_of(Id softmax, Id turned) const {
    const auto known = value_.find(softmax);
    if (known != value_.end() && match_.transposes(turned, known->second.v)) return known->second;
    // The forward product may be gone: a loss that is linear in it does not need its value.
    if (match_.is(turned, OpClass::permute) && match_.is_transpose(turned, match_.in(turned, 0))) {
      return Value{match_.in(turned, 0), match_.node(turned).dtype};
    }
    return {};
  }

  // ---- replacement ----

  std::optional<Id> replaced(Id i, int depth) {
    if (!match_.is_product(i) || !match_.is_f32(i)) return {};
    const Id a = match_.in(i, 0), b = match_.in(i, 1);
    const DType type = match_.node(i).dtype;
    if (const auto s = softmax_.find(match_.behind_casts(a)); s != softmax_.end()) {
      if (match_.node(b).shape.back() <= kMaxHeadSize && match_.node(b).shape.back() > 0) {
        return forward(s->second, {b, type});
      }
      return {};
    }
    if (const auto dv = value_gradient(type, a, b, depth)) return dv;
    if (const auto dq = query_gradient(type, a, b, depth)) return dq;
    return key_gradient(type, a, b, depth);
  }

  std::vector<Id> mapped(const std::vector<Id>& old) const {
    std::vector<Id> out(old.size());
    std::transform(old.begin(), old.end(), out.begin(), [&](Id i) { return build_.at(i); });
    return out;
  }
  Id query(const Softmax& s) const { return build_.at(match_.in(s.raw, 0)); }
  Id key(const Softmax& s) const { return build_.at(match_.in(s.raw, 1)); }
  Shape like(const Softmax& s, std::int64_t rows, std::int64_t columns) const {
    Shape shape = match_.node(s.raw).shape;
    shape[shape.rank() - 2] = rows;
    shape[shape.rank() - 1] = columns;
    return shape;
  }
  std::int64_t extent(Id i, int axis) const {
    return build_.node(i).shape[build_.node(i).shape.rank() + axis];
  }

  /// `value`: of the old program.
  Id forward(const Softmax& s, Value value) {
    const Id v = value.v;
    std::vector<Id> inputs{query(s), key(s), build_.at(v)};
    for (Id read : mapped(s.expression.reads)) inputs.push_back(read);
    const std::int64_t attributes[] = {build_.at(s.raw), build_.at(s.score), build_.at(s.probabilities)};
    const Shape shape = like(s, extent(query(s), -2), extent(build_.at(v), -1));
    return build_.make(kAttention, value.type, shape, attributes, inputs,
                       match_.node(s.probabilities).origin);
  }

  /// The operands that both gradients have. `raw_grad`: the cotangent of the raw product, in the old program;
  /// kNoRoot where only that of v is wanted.
  std::optional<Id> gradient(const OpDef& op, DType type, const Shape& shape, const ScoreGrad& g,
                             Id score_grad, Id raw_grad, int depth) {
    const Softmax& s = softmax_.at(g.softmax);
    const auto e = match_.between(raw_grad, {score_grad, s.raw});
    if (!e || !build(raw_grad, depth + 1) || !build(g.value.v, depth + 1) || !build(g.go, depth + 1))
      return {};
    const std::uint32_t origin = match_.node(raw_grad).origin;
    const auto kept = kept_.find(g.softmax);
    const bool is_kept = kept != kept_.end() && build(kept->second, depth + 1) &&
                         build_.node(build_.at(kept->second)).op == &kAttention;
    const Id o = is_kept ? build_.at(kept->second) : forward(s, g.value);
    const Id go = build_.at(g.go);
    const Shape row = like(s, extent(o, -2), 1);
    const Id highest = build_.make(kOther, DType::f32, row, {1}, {o}, origin);
    const Id total = build_.make(kOther, DType::f32, row, {2}, {o}, origin);
    const Id weighted =
        build_.make(compiled_ops::kMultiply, DType::f32, build_.node(o).shape, {}, {go, o}, origin);
    const Id delta = build_.make(compiled_ops::kSum, DType::f32, row, {std::int64_t{1} << (row.rank() - 1)},
                                 {weighted}, origin);
    std::vector<Id> inputs{query(s), key(s), build_.at(g.value.v), go, highest, total, delta};
    for (const Expression* part : {&s.expression, &*e}) {
      for (Id read : mapped(part->reads)) {
        if (std::find(inputs.begin() + 7, inputs.end(), read) == inputs.end()) inputs.push_back(read);
      }
    }
    const std::int64_t attributes[] = {build_.at(s.raw), build_.at(s.score), build_.at(score_grad),
                                       build_.at(raw_grad)};
    return build_.make(op, type, shape, attributes, inputs, origin);
  }

  Shape key_shape(const Softmax& s) const { return like(s, extent(key(s), -1), extent(key(s), -2)); }

  /// The cotangent of a score that leads to `x` by element-wise operations.
  std::optional<Id> score_grad_behind(Id x) const {
    if (match_.node(x).op->kind != OpClass::elementwise) return {};
    const auto e = match_.between(x, {});
    if (!e) return {};
    for (Id i : e->operations) {
      if (grads_.count(i) > 0) return i;
    }
    return {};
  }

  std::optional<Id> query_gradient(DType type, Id a, Id b, int depth) {
    const auto ds = score_grad_behind(a);
    if (!ds) return {};
    const ScoreGrad& g = grads_.at(*ds);
    const Softmax& s = softmax_.at(g.softmax);
    if (match_.node(a).shape != match_.node(s.raw).shape || !match_.transposes(b, match_.in(s.raw, 1)))
      return {};
    const Shape shape = like(s, extent(query(s), -2), extent(query(s), -1));
    if (joins(*ds, a, type)) {
      const auto dk = gradient(kGradKV, type, key_shape(s), g, *ds, a, depth);
      return dk ? std::optional(build_.make(kOther, type, shape, {2}, {*dk}, match_.node(a).origin)) : dk;
    }
    return gradient(kGradQ, type, shape, g, *ds, a, depth);
  }

  /// q^T dR is the gradient of k^T.
  void note_key_gradient(Id i) {
    if (!match_.is_product(i)) return;
    const auto ds = score_grad_behind(match_.in(i, 1));
    if (ds && is_key_gradient(match_.in(i, 0), match_.in(i, 1), *ds))
      raw_grad_.emplace(*ds, RawGrad{match_.in(i, 1), match_.node(i).dtype});
  }
  /// Whether the gradient of q comes from the step that makes those of k and v.
  bool joins(Id ds, Id raw_grad, DType type) const {
    const auto of_key = raw_grad_.find(ds);
    return traits_.joins_attention_gradients && of_key != raw_grad_.end() &&
           of_key->second.node == raw_grad && of_key->second.type == type;
  }
  bool is_key_gradient(Id a, Id b, Id ds) const {
    const Softmax& s = softmax_.at(grads_.at(ds).softmax);
    return match_.node(b).shape == match_.node(s.raw).shape && match_.transposes(a, match_.in(s.raw, 0));
  }
  std::optional<Id> key_gradient(DType type, Id a, Id b, int depth) {
    const auto ds = score_grad_behind(b);
    if (!ds || !is_key_gradient(a, b, *ds)) return {};
    const ScoreGrad& g = grads_.at(*ds);
    const auto dk = gradient(kGradKV, type, key_shape(softmax_.at(g.softmax)), g, *ds, b, depth);
    if (!dk) return {};
    return build_.transpose(*dk, match_.node(b).origin);
  }

  /// P^T go is the gradient of v. The gradient of the keys comes with it, so it is computed as well as can be
  /// found: they are one step.
  std::optional<Id> value_gradient(DType type, Id a, Id b, int depth) {
    if (!match_.is(a, OpClass::permute) || !match_.is_transpose(a, match_.in(a, 0))) return {};
    const auto s = softmax_.find(match_.behind_casts(match_.in(a, 0)));
    if (s == softmax_.end()) return {};
    for (const auto& [ds, g] : grads_) {
      if (g.softmax != s->first || g.go != b) continue;
      const auto known = raw_grad_.find(ds);
      const Id raw_grad = known != raw_grad_.end() ? known->second.node : ds;
      const auto dk = gradient(kGradKV, type, key_shape(s->second), g, ds, raw_grad, depth);
      if (!dk) continue;
      const Id v = build_.at(g.value.v);
      const Shape shape = like(s->second, extent(v, -2), extent(v, -1));
      return build_.make(kOther, type, shape, {1}, {*dk}, match_.node(a).origin);
    }
    // Nobody asks for more than the gradient of v: any cotangent of the score will do, that of the
    // probabilities itself for one.
    const auto value = value_.find(s->first);
    if (value == value_.end() || match_.node(value->second.v).shape.back() > kMaxHeadSize) return {};
    // A cotangent of the output has its columns.
    if (match_.node(b).shape.back() != match_.node(value->second.v).shape.back()) return {};
    const ScoreGrad alone{s->first, b, value->second};
    const auto dk = gradient(kGradKV, type, key_shape(s->second), alone, s->first, s->first, depth);
    if (!dk) return {};
    const Id v = build_.at(alone.value.v);
    const Shape shape = like(s->second, extent(v, -2), extent(v, -1));
    return build_.make(kOther, type, shape, {1}, {*dk}, match_.node(a).origin);
  }

  const Program& program_;
  const DeviceTraits& traits_;
  std::vector<std::uint32_t> uses_;
  Patterns match_;
  ProgramBuilder build_;
  std::map<Id, Softmax> softmax_;
  std::map<Id, Value> value_;  // of a softmax
  std::map<Id, ScoreGrad> grads_;
  std::map<Id, RawGrad> raw_grad_;  // of the cotangent of a score, for the keys
  std::map<Id, Id> kept_;           // of a softmax that is computed again: the product of the forward pass
  std::vector<Id> pending_;
  EqualValues equal_;
};

}  // namespace

Program find_attention(Program program, const DeviceTraits& traits) {
  AttentionFinder finder(program, traits);
  if (!finder.found()) return program;
  return finder.run();
}

}  // namespace caldera
