#include "tests/support/plans/sound_forms_plan.h"

#include <utility>

#include "tests/support/reference.h"

namespace caldera::testing::forms {
namespace {

constexpr DType kF = DType::f32;
using KernelPtr = std::shared_ptr<const Kernel>;

Step make_step(Step::Work work, const Shape& dims, std::vector<Operand> operands,
               std::vector<std::int32_t> scalars, bool barrier) {
  Step step;
  step.work = std::move(work);
  step.dims = dims;
  step.operands = std::move(operands);
  step.scalars = std::move(scalars);
  step.barrier_before = barrier;
  return step;
}

KernelPtr copy_kernel() {
  KernelBuilder b("copy");
  return b.store(b.load(kF)).finish();
}

/// Inputs x, gain; the row operand largest. Outputs soft, totals.
KernelPtr rows_kernel() {
  KernelBuilder b("rows");
  const auto x = b.load(kF);
  const auto gain = b.load(kF);
  const auto raised = b.op(ScalarOp::exp, b.op(ScalarOp::sub, x, b.load_row(kF)));
  const auto total = b.op(ScalarOp::row_sum, raised);
  return b.store(b.op(ScalarOp::mul, b.op(ScalarOp::div, raised, total), gain)).store(total).finish();
}

/// Given P; inputs bias, totals, residual; one index operand.
KernelPtr epilogue_kernel() {
  KernelBuilder b("epilogue");
  const auto p = b.load(kF);
  const auto bias = b.load(kF);
  const auto scaled = b.op(ScalarOp::mul, bias, b.load(kF));
  const auto sum = b.op(ScalarOp::add, b.op(ScalarOp::add, p, scaled), b.load(kF));
  return b.store(b.op(ScalarOp::add, sum, b.cast(b.index(), kF))).finish();
}

/// Given the raw score; input shift; index operands m, n; scalars scale, offset, fill.
KernelPtr score_kernel() {
  KernelBuilder b("score");
  const auto s = b.op(ScalarOp::mul, b.load(kF), b.scalar(kF));
  const auto shifted = b.op(ScalarOp::add, s, b.load(kF));
  const auto last = b.op(ScalarOp::add, b.index(), b.scalar(DType::i32));
  const auto seen = b.op(ScalarOp::less_equal, b.index(), last);
  return b.store(b.op(ScalarOp::select, seen, shifted, b.scalar(kF))).finish();
}

/// Given dS and the raw score; index operands m, n; scalars scale, offset, zero.
KernelPtr gradient_kernel() {
  KernelBuilder b("gradient");
  const auto ds = b.load(kF);
  b.load(kF);
  const auto scaled = b.op(ScalarOp::mul, ds, b.scalar(kF));
  const auto last = b.op(ScalarOp::add, b.index(), b.scalar(DType::i32));
  const auto seen = b.op(ScalarOp::less_equal, b.index(), last);
  return b.store(b.op(ScalarOp::select, seen, scaled, b.scalar(kF))).finish();
}

KernelPtr product_sum_kernel() {
  KernelBuilder b("product_sum");
  const auto go = b.load(kF);
  return b.store(b.op(ScalarOp::mul, go, b.load(kF))).reduce(Combine::sum).finish();
}

KernelPtr update_kernel() {
  KernelBuilder b("update");
  const auto x = b.load(kF);
  return b.store(b.op(ScalarOp::mul, x, b.scalar(kF))).finish();
}

void add_buffers(Plan& plan) {
  const auto add = [&](BufferRole role, std::int64_t elements, std::int64_t arena_offset = 0) {
    plan.buffers.push_back({role, kF, 4 * elements, arena_offset});
    plan.input_count += role == BufferRole::input;
    plan.output_count += role == BufferRole::output;
  };
  for (std::int64_t elements : {32, 8, 48, 8, 12, 6, 24, 24, 30, 20, 20, 16})
    add(BufferRole::input, elements);
  for (std::int64_t elements : {24, 30, 20, 42}) add(BufferRole::output, elements);
  add(BufferRole::arena, 4, 0);      // largest
  add(BufferRole::arena, 32, 256);   // soft
  add(BufferRole::arena, 4, 0);      // totals
  add(BufferRole::arena, 24, 512);   // residual
  add(BufferRole::arena, 24, 512);   // sum
  add(BufferRole::arena, 24, 768);   // q
  add(BufferRole::arena, 16, 1024);  // o
  add(BufferRole::arena, 8, 1280);   // highest
  add(BufferRole::arena, 8, 1536);   // total
  add(BufferRole::arena, 8, 1792);   // delta
  plan.arena_bytes = 2048;
}

/// dims: batch, M, N, D, E.
void add_attention(Plan& plan) {
  const Shape dims{2, 4, 5, 3, 2};
  const Operand q{kQ, 0, {12, 3, 0, 1, 0}};
  const Operand k{kKeys, 0, {15, 0, 3, 1, 0}};
  const Operand v{kValues, 0, {10, 0, 2, 0, 1}};
  const Operand go{kGo, 0, {8, 2, 0, 0, 1}};
  const Operand highest{kHighest, 0, {4, 1, 0, 0, 0}};
  const Operand total{kTotal, 0, {4, 1, 0, 0, 0}};
  const Operand delta{kDelta, 0, {4, 1, 0, 0, 0}};
  const Operand shift{kShift, 0, {0, 5, 1, 0, 0}};
  const Operand dq{kDq, 0, {12, 3, 0, 1, 0}};
  const Operand dk{kDk, 0, {15, 0, 3, 1, 0}};
  const Operand dv{kDv, 0, {10, 0, 2, 0, 1}};
  const Operand m{-1, 1, {0, 1, 0, 0, 0}};
  const Operand n{-1, 0, {0, 0, 1, 0, 0}};
  const CausalMask causal{kFill, 1, kOffset};
  const std::vector<std::int32_t> scalars{kScale, kOffset, kFill, kScale, kOffset, kZero};

  const auto attention = [&](AttentionPass pass) {
    return AttentionStep{.pass = pass,
                         .score = score_kernel(),
                         .gradient = pass == AttentionPass::forward ? nullptr : gradient_kernel(),
                         .causal = causal};
  };
  Step forward = make_step(attention(AttentionPass::forward), dims,
                           {q, k, v, shift, m, n, {kO, 0, {8, 2, 0, 0, 1}}, highest, total},
                           {kScale, kOffset, kFill}, false);
  Step of_q = make_step(attention(AttentionPass::grad_q), dims,
                        {q, k, v, go, highest, total, delta, shift, m, n, m, n, dq}, scalars, true);
  Step of_kv = make_step(attention(AttentionPass::grad_kv), dims,
                         {q, k, v, go, highest, total, delta, shift, m, n, m, n, dk, dv}, scalars, false);
  plan.steps.push_back(std::move(forward));

  Step lora = make_step(
      ContractStep{.segments = {{.k = 8}, {.k = 2, .scale = kScale}}, .epilogue = epilogue_kernel()},
      {4, 6, 8},
      {{kSoft, 0, {8, 0, 1}},
       {kW, 0, {0, 1, 6}},
       {kLow, 0, {2, 0, 1}},
       {kHigh, 0, {0, 1, 6}},
       {kBias, 0, {0, 1, 0}},
       {kTotals, 0, {1, 0, 0}},
       {kResidual, 0, {6, 1, 0}},
       {-1, 0, {1, 0, 0}},
       {kSum, 0, {6, 1, 0}}},
      {}, true);
  plan.steps.push_back(std::move(lora));

  Step sum_up = make_step(RegionStep{product_sum_kernel(), 1}, {8, 2},
                          {{kGo, 0, {2, 1}}, {kO, 0, {2, 1}}, {kDelta, 0, {1, 0}}}, {}, false);
  plan.steps.push_back(std::move(sum_up));
  plan.steps.push_back(std::move(of_q));
  plan.steps.push_back(std::move(of_kv));
}

}  // namespace

Plan sound_forms_plan() {
  Plan plan;
  plan.device = Device::null();
  plan.scalars = {kF, kF, DType::i32, kF, kF, kF};
  add_buffers(plan);
  Step largest = make_step(RegionStep{reduce_kernel(Combine::maximum, kF), 1}, {4, 8},
                           {{kX, 0, {8, 1}}, {kLargest, 0, {1, 0}}}, {}, false);
  plan.steps.push_back(std::move(largest));
  plan.steps.push_back(
      make_step(RegionStep{copy_kernel()}, {24}, {{kBefore, 0, {1}}, {kResidual, 0, {1}}}, {}, false));
  plan.steps.push_back(
      make_step(RegionStep{copy_kernel()}, {24}, {{kQueries, 0, {1}}, {kQ, 0, {1}}}, {}, false));
  Step rows = make_step(
      RegionStep{rows_kernel(), 1}, {4, 8},
      {{kX, 0, {8, 1}}, {kGain, 0, {0, 1}}, {kLargest, 0, {1, 0}}, {kSoft, 0, {8, 1}}, {kTotals, 0, {1, 0}}},
      {}, true);
  plan.steps.push_back(std::move(rows));
  add_attention(plan);
  Step first =
      make_step(RegionStep{update_kernel()}, {24}, {{kSum, 0, {1}}, {kUpdated, 0, {1}}}, {kRate}, false);
  Step second = make_step(RegionStep{update_kernel()}, {2, 5}, {{kGain, 0, {0, 1}}, {kUpdated, 24, {5, 1}}},
                          {kRate}, false);
  Step third =
      make_step(RegionStep{update_kernel()}, {8}, {{kDelta, 0, {1}}, {kUpdated, 34, {1}}}, {kOther}, false);
  second.joined = third.joined = true;
  for (Step* step : {&first, &second, &third}) plan.steps.push_back(std::move(*step));
  return plan;
}

}  // namespace caldera::testing::forms
