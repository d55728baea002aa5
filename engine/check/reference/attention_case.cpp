#include "engine/check/reference/attention_case.h"

#include <cmath>
#include <iterator>
#include <utility>

namespace caldera::reference {
namespace {

constexpr DType kF = DType::f32;

bool is_causal(ScoreKind kind) { return kind == ScoreKind::causal || kind == ScoreKind::causal_bias; }
bool has_mask(ScoreKind kind) { return kind == ScoreKind::boolean_mask || kind == ScoreKind::full_mask; }
bool has_bias(ScoreKind kind) { return kind == ScoreKind::bias || kind == ScoreKind::causal_bias; }

}  // namespace

std::string AttentionSetting::text() const {
  constexpr const char* kNames[] = {"scaled", "boolean mask", "full mask", "bias",
                                    "causal", "causal, bias", "capped"};
  return std::string(kNames[static_cast<int>(score)]) + " " +
         Shape({batch, heads, group, m, n, d, e}).to_string() + " fill " + std::to_string(fill) + " offset " +
         std::to_string(offset) + "+" + std::to_string(offset_scalar) +
         (heads_inside ? " heads inside" : "") + (joined ? " joined" : "") +
         (memory == kF ? "" : " " + std::string(name(memory)));
}

AttentionCase::AttentionCase(PlanCase& plan, const AttentionSetting& setting)
    : s_(setting), case_(plan), kernels_(make_kernels()) {
  q_ = case_.input(s_.memory, query_count(s_.d), s_.values);
  k_ = case_.input(s_.memory, key_count(s_.d), s_.values);
  v_ = case_.input(s_.memory, key_count(s_.e), {-1, 1});
  if (has_mask(s_.score)) {
    mask_ = case_.input(DType::boolean, s_.score == ScoreKind::full_mask ? s_.m * s_.n : s_.batch * s_.n);
    // At least the first key is seen by every query.
    const std::int64_t rows = s_.score == ScoreKind::full_mask ? s_.m : s_.batch;
    for (std::int64_t row = 0; s_.n > 0 && row < rows; ++row) case_.set(mask_, row * s_.n, integer(1));
  }
  if (has_bias(s_.score)) bias_ = case_.input(kF, s_.heads * s_.group * s_.m * s_.n, {-2, 2});
  go_ = case_.input(s_.memory, query_count(s_.e), {-1, 1});
  delta_ = case_.input(kF, query_count(1), {-1, 1});
  highest_ = case_.input(kF, query_count(1));
  total_ = case_.input(kF, query_count(1));
  o_ = case_.input(kF, query_count(s_.e));
  zero_ = case_.scalar(kF, floating(0));
  fill_ = case_.scalar(kF, floating(s_.fill));
  shift_ = case_.scalar(DType::i32, integer(s_.offset_scalar));
  // Powers of two, so that whole scores stay whole.
  scale_ = case_.scalar(kF, floating(s_.values.whole ? 1 : std::exp2(-std::round(std::log2(s_.d) / 2))));
}

/// The kernel and its gradient: scalars are the scale, then what the kind of score needs.
AttentionCase::Kernels AttentionCase::make_kernels() const {
  KernelBuilder score("score");
  KernelBuilder gradient("d_score");
  const auto raw = score.load(kF);
  const auto ds = gradient.load(kF);
  const auto again = gradient.load(kF);
  auto s = score.op(ScalarOp::mul, raw, score.scalar(kF));
  const auto scale = gradient.scalar(kF);
  auto dr = gradient.op(ScalarOp::mul, ds, scale);
  if (s_.score == ScoreKind::capped) {
    s = score.op(ScalarOp::tanh, s);
    const auto t = gradient.op(ScalarOp::tanh, gradient.op(ScalarOp::mul, again, scale));
    dr = gradient.op(ScalarOp::sub, dr, gradient.op(ScalarOp::mul, dr, gradient.op(ScalarOp::mul, t, t)));
  }
  if (has_bias(s_.score)) s = score.op(ScalarOp::add, s, score.load(kF));
  const auto select = [this](KernelBuilder& b, KernelBuilder::Value x) {
    KernelBuilder::Value kept = 0;
    if (is_causal(s_.score)) {
      auto last = b.index();
      if (s_.offset_scalar != 0) last = b.op(ScalarOp::add, last, b.scalar(DType::i32));
      kept = b.op(ScalarOp::less_equal, b.index(), last);
    } else {
      kept = b.load(DType::boolean);
    }
    return b.op(ScalarOp::select, kept, x, b.scalar(kF));
  };
  if (is_causal(s_.score) || has_mask(s_.score)) {
    s = select(score, s);
    dr = select(gradient, dr);
  }
  return {score.store(s).finish(), gradient.store(dr).finish()};
}

std::int64_t AttentionCase::query_count(std::int64_t size) const {
  return s_.batch * s_.heads * s_.group * s_.m * size;
}
std::int64_t AttentionCase::key_count(std::int64_t size) const { return s_.batch * s_.heads * s_.n * size; }

Operand AttentionCase::query(int buffer, std::int64_t size, bool along_d) const {
  const std::int64_t heads = s_.heads * s_.group;
  const std::int64_t head = s_.heads_inside ? size : s_.m * size;
  const std::int64_t time = s_.heads_inside ? heads * size : size;
  return view(buffer,
              {heads * s_.m * size, s_.group * head, head, time, 0, along_d ? 1 : 0, along_d ? 0 : 1});
}

Operand AttentionCase::key(int buffer, std::int64_t size, bool along_d) const {
  const std::int64_t head = s_.heads_inside ? size : s_.n * size;
  const std::int64_t time = s_.heads_inside ? s_.heads * size : size;
  return view(buffer, {s_.heads * s_.n * size, head, 0, 0, time, along_d ? 1 : 0, along_d ? 0 : 1});
}

Operand AttentionCase::row(int buffer) const {
  return view(buffer, {s_.heads * s_.group * s_.m, s_.group * s_.m, s_.m, 1, 0, 0, 0});
}

/// Of the score's kernel without the index operands first, then those: the order that steps have.
std::vector<Operand> AttentionCase::score_operands() const {
  std::vector<Operand> operands;
  const std::int64_t area = s_.m * s_.n;
  if (has_bias(s_.score)) operands.push_back(view(bias_, {0, s_.group * area, area, s_.n, 1, 0, 0}));
  if (s_.score == ScoreKind::boolean_mask) operands.push_back(view(mask_, {s_.n, 0, 0, 0, 1, 0, 0}));
  if (s_.score == ScoreKind::full_mask) operands.push_back(view(mask_, {0, 0, 0, s_.n, 1, 0, 0}));
  if (is_causal(s_.score)) {
    operands.push_back(view(-1, {0, 0, 0, 1, 0, 0, 0}, s_.offset));
    operands.push_back(view(-1, {0, 0, 0, 0, 1, 0, 0}));
  }
  return operands;
}

Step& AttentionCase::add_step(AttentionPass pass, std::vector<Operand> operands) {
  const bool backward = pass != AttentionPass::forward;
  const Shape dims{s_.batch, s_.heads, s_.group, s_.m, s_.n, s_.d, s_.e};
  Step& step = case_.attention(pass, dims, std::move(operands), kernels_.score,
                               backward ? kernels_.gradient : nullptr);
  step.scalars.clear();
  for (const std::int32_t otherwise : {fill_, zero_}) {
    if (otherwise == zero_ && !backward) break;
    step.scalars.push_back(scale_);
    if (s_.offset_scalar != 0) step.scalars.push_back(shift_);
    if (is_causal(s_.score) || has_mask(s_.score)) step.scalars.push_back(otherwise);
  }
  if (is_causal(s_.score) && s_.hint)
    step.as<AttentionStep>().causal = {fill_, s_.offset, s_.offset_scalar != 0 ? shift_ : -1};
  return step;
}

std::int64_t AttentionCase::key_gradient_count(std::int64_t size) const {
  return s_.batch * s_.heads * s_.group * s_.n * size;
}

Operand AttentionCase::key_gradient(int buffer, std::int64_t size, bool along_d) const {
  const std::int64_t head = s_.n * size;
  return view(buffer,
              {s_.heads * s_.group * head, s_.group * head, head, 0, size, along_d ? 1 : 0, along_d ? 0 : 1});
}

void AttentionCase::add_forward_step(int o, int highest, int total) {
  std::vector<Operand> operands = {query(q_, s_.d, true), key(k_, s_.d, true), key(v_, s_.e, false)};
  const auto score = score_operands();
  operands.insert(operands.end(), score.begin(), score.end());
  for (const Operand& result : {query(o, s_.e, false), row(highest), row(total)}) operands.push_back(result);
  add_step(AttentionPass::forward, std::move(operands));
}

void AttentionCase::add_gradient_steps(int highest, int total, int dq, int dk, int dv) {
  const auto score = score_operands();
  std::vector<Operand> operands = {
      query(q_, s_.d, true), key(k_, s_.d, true), key(v_, s_.e, false), query(go_, s_.e, false),
      row(highest),          row(total),          row(delta_)};
  operands.insert(operands.end(), score.begin(), score.end());
  // The gradient's kernel selects as the score's does, but has no bias.
  const auto first = score.begin() + (has_bias(s_.score) ? 1 : 0);
  operands.insert(operands.end(), first, score.end());
  if (s_.joined) {
    for (const Operand& result :
         {key_gradient(dk, s_.d, true), key_gradient(dv, s_.e, false), query(dq, s_.d, true)})
      operands.push_back(result);
    add_step(AttentionPass::grad_qkv, std::move(operands));
    return;
  }
  std::vector<Operand> of_q = operands;
  of_q.push_back(query(dq, s_.d, true));
  std::vector<Operand> of_kv = std::move(operands);
  of_kv.push_back(key_gradient(dk, s_.d, true));
  of_kv.push_back(key_gradient(dv, s_.e, false));
  add_step(AttentionPass::grad_q, std::move(of_q));
  add_step(AttentionPass::grad_kv, std::move(of_kv));
}

void AttentionCase::add_forward() {
  const int o = case_.output(kF, query_count(s_.e));
  const int highest = case_.output(kF, query_count(1));
  add_forward_step(o, highest, case_.output(kF, query_count(1)));
}

void AttentionCase::add_forward_alone() {
  const int o = case_.output(kF, query_count(s_.e));
  const int highest = case_.arena(kF, query_count(1));
  add_forward_step(o, highest, case_.arena(kF, query_count(1)));
}

void AttentionCase::add_gradients() {
  add_forward_step(o_, highest_, total_);
  case_.run_last_step_ahead();
  const int dq = case_.output(kF, query_count(s_.d));
  const int dk = case_.output(kF, key_gradient_count(s_.d));
  add_gradient_steps(highest_, total_, dq, dk, case_.output(kF, key_gradient_count(s_.e)));
}

void AttentionCase::add_all() {
  const int o = case_.output(kF, query_count(s_.e));
  const int dq = case_.output(kF, query_count(s_.d));
  const int dk = case_.output(kF, key_gradient_count(s_.d));
  const int dv = case_.output(kF, key_gradient_count(s_.e));
  const int highest = case_.arena(kF, query_count(1));
  const int total = case_.arena(kF, query_count(1));
  add_forward_step(o, highest, total);
  add_gradient_steps(highest, total, dq, dk, dv);
}

}  // namespace caldera::reference
