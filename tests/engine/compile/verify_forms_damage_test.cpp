// The plan verifier against damaged plans with rows, segments, epilogues, attention and joined steps.
#include <gtest/gtest.h>

#include <utility>

#include "engine/compile/order/hazards.h"
#include "tests/engine/compile/damage.h"
#include "tests/support/plans/sound_forms_plan.h"

namespace caldera::testing::forms {
namespace {

Step& step(Plan& plan, StepName name) { return plan.steps[name]; }
Operand& operand(Plan& plan, StepName name, std::size_t k) { return plan.steps[name].operands[k]; }
Operand& result(Plan& plan, StepName name) { return plan.steps[name].operands.back(); }

/// Kernels are shared and constant: edits a copy.
std::shared_ptr<const Kernel> edited(const std::shared_ptr<const Kernel>& kernel, void (*edit)(Kernel&)) {
  auto copy = std::make_shared<Kernel>(*kernel);
  edit(*copy);
  copy->finish();
  return copy;
}
RegionStep& region(Plan& plan, StepName name) { return step(plan, name).as<RegionStep>(); }
std::vector<Segment>& segments(Plan& plan, StepName name) {
  return step(plan, name).as<ContractStep>().segments;
}
AttentionStep& attention(Plan& plan, StepName name) { return step(plan, name).as<AttentionStep>(); }

/// The kernel of a region, the epilogue of a contraction, the score of attention.
std::shared_ptr<const Kernel>& kernel_of(Step& step) {
  if (step.is<ContractStep>()) return step.as<ContractStep>().epilogue;
  return step.is<AttentionStep>() ? step.as<AttentionStep>().score : step.as<RegionStep>().kernel;
}
void edit_kernel(Plan& plan, StepName name, void (*edit)(Kernel&)) {
  auto& kernel = kernel_of(step(plan, name));
  kernel = edited(kernel, edit);
}
void edit_gradient(Plan& plan, StepName name, void (*edit)(Kernel&)) {
  attention(plan, name).gradient = edited(attention(plan, name).gradient, edit);
}

Instruction& row_sum(Kernel& kernel) {
  for (Instruction& i : kernel.code)
    if (is_row_reduction(i.op)) return i;
  return kernel.code.back();
}

const Damage kRowDamages[] = {
    {"a result of the row that varies along it", "step 3 (rows): the result of a row varies along it",
     [](Plan& p) { result(p, kRows).strides[1] = 1; }},
    {"an operand of the row that varies along it", "step 3 (rows): an operand of the row varies along it",
     [](Plan& p) { operand(p, kRows, 2).strides[1] = 1; }},
    {"a row and a reduction", "step 3 (rows): a kernel that reduces its rows and its result",
     [](Plan& p) { edit_kernel(p, kRows, [](Kernel& k) { k.reduce = Combine::sum; }); }},
    {"an operand of the row without rows", "step 3 (rows): row operands without rows",
     [](Plan& p) { edit_kernel(p, kRows, [](Kernel& k) { row_sum(k).op = ScalarOp::neg; }); }},
    {"row dimensions without rows", "step 1 (copy): reduced dimensions do not fit the kernel",
     [](Plan& p) { region(p, kCopy).reduce_rank = 1; }},
    {"a longer row than there are dimensions", "step 3 (rows): more reduced dimensions than there are",
     [](Plan& p) { region(p, kRows).reduce_rank = 3; }},
    {"a negative number of row dimensions", "step 3 (rows): more reduced dimensions than there are",
     [](Plan& p) { region(p, kRows).reduce_rank = -1; }},
    {"other dimensions are the row", "step 3 (rows): an operand of the row varies along it",
     [](Plan& p) { region(p, kRows).reduce_rank = 2; }},
    {"the sum of a row in another type", "step 3 (rows): an instruction on operands of the wrong type",
     [](Plan& p) { edit_kernel(p, kRows, [](Kernel& k) { row_sum(k).type = DType::i32; }); }},
    {"a load of another type", "step 3 (rows): an instruction reads an operand of another type",
     [](Plan& p) { edit_kernel(p, kRows, [](Kernel& k) { k.inputs[0] = DType::i32; }); }},
    {"a kernel without results", "step 3 (rows): a kernel without outputs",
     [](Plan& p) { edit_kernel(p, kRows, [](Kernel& k) { k.outputs.clear(); }); }},
    {"the hash of another kernel", "step 3 (rows): the hash of another kernel",
     [](Plan& p) {
       auto kernel = std::make_shared<Kernel>(*region(p, kRows).kernel);
       row_sum(*kernel).op = ScalarOp::row_product;
       region(p, kRows).kernel = kernel;
     }},
    {"no barrier before the rows", "step 3 (rows): operand 2 reads what no barrier separates from its writer",
     [](Plan& p) { step(p, kRows).barrier_before = false; }},
    {"a row's result over its operand, in another order",
     "step 3 (rows): operand 4 overwrites what the step itself reads",
     [](Plan& p) {
       operand(p, kRows, 2) = {kLargest, 3, {-1, 0}};
     }},
    {"a point's result over the row's operand",
     "step 3 (rows): operand 3 overwrites what the step itself reads",
     [](Plan& p) { p.buffers[kSoft].arena_offset = p.buffers[kLargest].arena_offset; }},
    {"a row's result over a point's operand",
     "step 3 (rows): operand 4 overwrites what the step itself reads",
     [](Plan& p) {
       p.buffers[kTotals].arena_offset = p.buffers[kResidual].arena_offset;
       operand(p, kRows, 0) = {kResidual, 0, {3, 1}};
       operand(p, kLora, 6) = {kBefore, 0, {6, 1, 0}};
     }},
    {"several points that write one element",
     "step 3 (rows): operand 3 has elements that several points write",
     [](Plan& p) { operand(p, kRows, 3).strides[1] = 0; }},
    {"rows that overlap", "step 3 (rows): operand 3 has elements that several points write",
     [](Plan& p) { operand(p, kRows, 3).strides[0] = 4; }},
    {"two results in one place", "step 3 (rows): operand 4 overwrites what no barrier separates",
     [](Plan& p) { result(p, kRows).buffer = kSoft; }},
};

const Damage kContractionDamages[] = {
    {"no segments", "segments do not fit the step", [](Plan& p) { segments(p, kLora).clear(); }},
    {"a contraction in the place of a region", "step 1 (matmul): too few dimensions",
     [](Plan& p) { step(p, kCopy).work = ContractStep{.segments = {{.k = 24}}, .epilogue = {}}; }},
    {"a first segment of another length", "the first segment is not the last extent",
     [](Plan& p) { segments(p, kLora)[0].k = 7; }},
    {"a segment of negative length", "a segment of negative length",
     [](Plan& p) { segments(p, kLora)[1].k = -1; }},
    {"a segment too long", "operand 2 touches bytes 0 to 36 of a buffer of 32",
     [](Plan& p) { segments(p, kLora)[1].k = 3; }},
    {"a segment too many", "the wrong number of operands",
     [](Plan& p) { segments(p, kLora).push_back({.k = 1}); }},
    {"a scale that does not exist", "a scalar argument that does not exist",
     [](Plan& p) { segments(p, kLora)[1].scale = 6; }},
    {"a negative scale", "a scalar argument that does not exist",
     [](Plan& p) { segments(p, kLora)[1].scale = -2; }},
    {"a scale of another type", "a scalar argument of the wrong type",
     [](Plan& p) { segments(p, kLora)[1].scale = kOffset; }},
    {"A varies along N", "operand 0 varies along dimension 1, which it lacks",
     [](Plan& p) { operand(p, kLora, 0).strides[1] = 1; }},
    {"B varies along M", "operand 3 varies along dimension 0, which it lacks",
     [](Plan& p) { operand(p, kLora, 3).strides[0] = 1; }},
    {"an epilogue's operand varies along K", "operand 4 varies along dimension 2, which it lacks",
     [](Plan& p) { operand(p, kLora, 4).strides[2] = 1; }},
    {"coordinates vary along K", "operand 7 varies along dimension 2, which it lacks",
     [](Plan& p) { operand(p, kLora, 7).strides[2] = 1; }},
    {"the result varies along K", "operand 8 varies along dimension 2, which it lacks",
     [](Plan& p) { result(p, kLora).strides[2] = 1; }},
    {"an epilogue that reduces", "a kernel that is not element-wise",
     [](Plan& p) { edit_kernel(p, kLora, [](Kernel& k) { k.reduce = Combine::sum; }); }},
    {"an epilogue with rows", "a kernel that is not element-wise",
     [](Plan& p) {
       edit_kernel(p, kLora, [](Kernel& k) { k.code.push_back({ScalarOp::row_sum, DType::f32, 0}); });
     }},
    {"an epilogue without the product", "a kernel without the input that the step gives it",
     [](Plan& p) {
       edit_kernel(p, kLora, [](Kernel& k) {
         k.inputs.clear();
         k.code = {{ScalarOp::index, DType::i32, 0}, {ScalarOp::cast, DType::f32, 0}};
         k.outputs = {{1, DType::f32}};
       });
     }},
    {"a product of another type", "a kernel whose given input has another type",
     [](Plan& p) {
       edit_kernel(p, kLora, [](Kernel& k) {
         k.inputs[0] = DType::i32;
         k.code = {{ScalarOp::load, DType::i32, 0}};
         k.outputs = {{0, DType::i32}};
       });
     }},
    {"a region in the place of a product", "the wrong number of operands",
     [](Plan& p) { step(p, kLora).work = RegionStep{.kernel = kernel_of(step(p, kLora))}; }},
    {"a scalar too many", "the wrong number of scalar arguments",
     [](Plan& p) { step(p, kLora).scalars = {kScale}; }},
    {"the result over A", "operand 8 overwrites what the step itself reads",
     [](Plan& p) { p.buffers[kSum].arena_offset = p.buffers[kSoft].arena_offset; }},
    {"the result over the residual, in another order", "operand 8 overwrites what the step itself reads",
     [](Plan& p) {
       operand(p, kLora, 6) = {kResidual, 0, {1, 4, 0}};
     }},
    {"the result over an operand of its rows", "operand 8 overwrites what the step itself reads",
     [](Plan& p) { p.buffers[kSum].arena_offset = p.buffers[kTotals].arena_offset; }},
    {"no barrier before the product", "operand 0 reads what no barrier separates from its writer",
     [](Plan& p) { step(p, kLora).barrier_before = false; }},
};

const Damage kAttentionDamages[] = {
    {"no score", "attention without a kernel", [](Plan& p) { attention(p, kAttention).score = nullptr; }},
    {"a gradient going forward", "the kernel of a gradient does not fit the step",
     [](Plan& p) { attention(p, kAttention).gradient = attention(p, kGradQ).gradient; }},
    {"no gradient going back", "the kernel of a gradient does not fit the step",
     [](Plan& p) { attention(p, kGradQ).gradient = nullptr; }},
    {"attention in the place of a region", "step 1 (attention_grad_q): too few dimensions",
     [](Plan& p) { step(p, kCopy).work = step(p, kGradQ).work; }},
    {"attention over three dimensions", "too few dimensions",
     [](Plan& p) {
       step(p, kAttention).dims.erase(0);
       step(p, kAttention).dims.erase(0);
     }},
    {"attention of another type", "attention of another type than float32",
     [](Plan& p) { step(p, kAttention).dtype = DType::f64; }},
    {"q varies along the keys", "operand 0 varies along dimension 2, which it lacks",
     [](Plan& p) { operand(p, kAttention, 0).strides[2] = 1; }},
    {"k varies along the queries", "operand 1 varies along dimension 1, which it lacks",
     [](Plan& p) { operand(p, kAttention, 1).strides[1] = 1; }},
    {"v varies along D", "operand 2 varies along dimension 3, which it lacks",
     [](Plan& p) { operand(p, kAttention, 2).strides[3] = 1; }},
    {"an operand of the score varies along D", "operand 3 varies along dimension 3, which it lacks",
     [](Plan& p) { operand(p, kAttention, 3).strides[3] = 1; }},
    {"the result varies along the keys", "operand 6 varies along dimension 2, which it lacks",
     [](Plan& p) { operand(p, kAttention, 6).strides[2] = 1; }},
    {"highest varies along E", "operand 7 varies along dimension 4, which it lacks",
     [](Plan& p) { operand(p, kAttention, 7).strides[4] = 1; }},
    {"total varies along D", "operand 8 varies along dimension 3, which it lacks",
     [](Plan& p) { result(p, kAttention).strides[3] = 1; }},
    {"no total", "the wrong number of operands", [](Plan& p) { step(p, kAttention).operands.pop_back(); }},
    {"a gradient without total", "the wrong number of operands",
     [](Plan& p) {
       auto& operands = step(p, kGradQ).operands;
       operands.erase(operands.begin() + 5);
     }},
    {"highest varies along D", "operand 4 varies along dimension 3, which it lacks",
     [](Plan& p) { operand(p, kGradQ, 4).strides[3] = 1; }},
    {"total varies along the keys", "operand 5 varies along dimension 2, which it lacks",
     [](Plan& p) { operand(p, kGradKv, 5).strides[2] = 1; }},
    {"delta varies along the keys", "operand 6 varies along dimension 2, which it lacks",
     [](Plan& p) { operand(p, kGradKv, 6).strides[2] = 1; }},
    {"dk varies along the queries", "operand 12 varies along dimension 1, which it lacks",
     [](Plan& p) { operand(p, kGradKv, 12).strides[1] = 1; }},
    {"dv varies along the queries", "operand 13 varies along dimension 1, which it lacks",
     [](Plan& p) { result(p, kGradKv).strides[1] = 1; }},
    {"more keys than there are", "touches bytes 0 to 132 of a buffer of 120",
     [](Plan& p) { step(p, kAttention).dims[2] = 6; }},
    {"the score is two numbers", "a score that is not one number of float32",
     [](Plan& p) { edit_kernel(p, kAttention, [](Kernel& k) { k.outputs.push_back(k.outputs[0]); }); }},
    {"the score of another type", "a score that is not one number of float32",
     [](Plan& p) { edit_kernel(p, kAttention, [](Kernel& k) { k.outputs[0].type = DType::f64; }); }},
    {"a score that reduces", "a kernel that is not element-wise",
     [](Plan& p) { edit_kernel(p, kAttention, [](Kernel& k) { k.reduce = Combine::sum; }); }},
    {"a gradient that is not given the raw score", "a kernel without the input that the step gives it",
     [](Plan& p) {
       edit_gradient(p, kGradQ, [](Kernel& k) {
         k.inputs.resize(1);
         k.code = {{ScalarOp::load, DType::f32, 0}};
         k.outputs = {{0, DType::f32}};
       });
     }},
    {"the gradient's scalars missing", "the wrong number of scalar arguments",
     [](Plan& p) { step(p, kGradQ).scalars.resize(3); }},
    {"the gradient's scalars in another order", "a scalar argument of the wrong type",
     [](Plan& p) { std::swap(step(p, kGradQ).scalars[3], step(p, kGradQ).scalars[4]); }},
    {"a fill that does not exist", "a scalar argument that does not exist",
     [](Plan& p) { attention(p, kAttention).causal.fill = 6; }},
    {"a fill of another type", "a scalar argument of the wrong type",
     [](Plan& p) { attention(p, kAttention).causal.fill = kOffset; }},
    {"an offset of another type", "a scalar argument of the wrong type",
     [](Plan& p) { attention(p, kGradKv).causal.offset_scalar = kFill; }},
    {"another pass", "the wrong number of operands",
     [](Plan& p) { attention(p, kGradQ).pass = AttentionPass::grad_kv; }},
    {"all gradients without one of q", "the wrong number of operands",
     [](Plan& p) { attention(p, kGradKv).pass = AttentionPass::grad_qkv; }},
    {"an offset that the score does not have", "a causal mask that the score does not have",
     [](Plan& p) { attention(p, kAttention).causal.offset = 0; }},
    {"coordinates that are not those of the mask", "a causal mask that the score does not have",
     [](Plan& p) { operand(p, kAttention, 4).strides[0] = 1; }},
    {"the fill of another score", "a causal mask that the score does not have",
     [](Plan& p) { attention(p, kAttention).causal.fill = kZero; }},
    {"the offset of another score", "a causal mask that the score does not have",
     [](Plan& p) { attention(p, kGradQ).causal.offset_scalar = -1; }},
    {"a score that keeps what lies ahead", "a causal mask that the score does not have",
     [](Plan& p) {
       edit_kernel(p, kAttention, [](Kernel& k) {
         for (Instruction& i : k.code)
           if (i.op == ScalarOp::less_equal) i.op = ScalarOp::greater;
       });
     }},
    {"the result over q", "operand 6 overwrites what the step itself reads",
     [](Plan& p) { p.buffers[kO].arena_offset = p.buffers[kQ].arena_offset; }},
    {"highest over q", "operand 7 overwrites what the step itself reads",
     [](Plan& p) { p.buffers[kHighest].arena_offset = p.buffers[kQ].arena_offset; }},
    {"total over q", "operand 8 overwrites what the step itself reads",
     [](Plan& p) { p.buffers[kTotal].arena_offset = p.buffers[kQ].arena_offset; }},
    {"the gradient over q", "step 7 (attention_grad_q): operand 12 overwrites what the step itself reads",
     [](Plan& p) { result(p, kGradQ).buffer = kQ; }},
    {"no barrier before the gradient", "operand 6 reads what no barrier separates from its writer",
     [](Plan& p) { step(p, kGradQ).barrier_before = false; }},
    {"highest lost", "operand 4 reads bytes that it never got, or lost",
     [](Plan& p) { p.buffers[kDelta].arena_offset = p.buffers[kHighest].arena_offset; }},
    {"total lost", "operand 5 reads bytes that it never got, or lost",
     [](Plan& p) { p.buffers[kDelta].arena_offset = p.buffers[kTotal].arena_offset; }},
};

const Damage kJoinedDamages[] = {
    {"the first step joined", "step 0 (reduce): joined to a step before the first",
     [](Plan& p) { step(p, kMax).joined = true; }},
    {"joined to a gradient", "step 9 (update): joined steps that are not both regions",
     [](Plan& p) { step(p, kFirst).joined = true; }},
    {"a gradient joined", "joined steps that are not both regions",
     [](Plan& p) { step(p, kGradKv).joined = true; }},
    {"joined to another kernel", "step 1 (copy): joined to a step with another kernel",
     [](Plan& p) { step(p, kCopy).joined = true; }},
    {"a barrier within a dispatch", "step 10 (update): a barrier within a dispatch",
     [](Plan& p) { step(p, kSecond).barrier_before = true; }},
    {"joined steps that write one element",
     "step 10 (update): operand 1 overwrites what no barrier separates from its writer",
     [](Plan& p) { result(p, kSecond).offset = 23; }},
    {"a joined step that reads what the dispatch writes",
     "step 11 (update): operand 0 reads what no barrier separates from its writer",
     [](Plan& p) {
       operand(p, kThird, 0) = {kUpdated, 2, {1}};
     }},
    {"a joined step that writes what the dispatch reads",
     "step 11 (update): operand 1 overwrites what no barrier separates from its reader",
     [](Plan& p) {
       result(p, kThird) = {kSum, 0, {1}};
     }},
    {"a joined step missing", "the end: output 3 is not written in full",
     [](Plan& p) { p.steps.erase(p.steps.begin() + kSecond); }},
};

const Damage kPlanDamages[] = {
    {"more constants than scalars", "more constants than scalar arguments",
     [](Plan& p) { p.constants.resize(7); }},
};

const Damage kHoles[] = {
    {"holes between the rows", "step 5 (matmul+epilogue): operand 6 reads bytes that it never got",
     [](Plan& p) {
       step(p, kCopy).dims = {4, 5};
       step(p, kCopy).operands = {{kBefore, 0, {6, 1}}, {kResidual, 0, {6, 1}}};
     }},
    {"every other element", "step 4 (attention): operand 0 reads bytes that it never got",
     [](Plan& p) {
       step(p, kCopyQ).dims = {12};
       step(p, kCopyQ).operands = {{kQueries, 0, {2}}, {kQ, 0, {2}}};
     }},
    {"elements between those of another buffer",
     "step 8 (attention_grad_kv): operand 0 reads bytes that it never got, or lost",
     [](Plan& p) {
       p.buffers[kDelta].arena_offset = p.buffers[kQ].arena_offset;
       p.buffers[kDelta].bytes = 4 * 16;
       result(p, kSumUp).strides[0] = 2;
       operand(p, kGradQ, 6).strides = {8, 2, 0, 0, 0};
       operand(p, kGradKv, 6).strides = {8, 2, 0, 0, 0};
       operand(p, kThird, 0).strides[0] = 2;
       operand(p, kGradQ, 0) = {kQueries, 0, {12, 3, 0, 1, 0}};
     }},
    {"a window short of the output", "the end: output 3 is not written in full",
     [](Plan& p) {
       step(p, kSecond).dims = {2, 4};
     }},
};

TEST(VerifyFormsDamage, TheSoundPlanPasses) { EXPECT_NO_THROW(verify_plan(sound_forms_plan())); }
TEST(VerifyFormsDamage, Rows) { expect_all_rejected(sound_forms_plan(), kRowDamages); }
TEST(VerifyFormsDamage, Contractions) { expect_all_rejected(sound_forms_plan(), kContractionDamages); }
TEST(VerifyFormsDamage, Attention) { expect_all_rejected(sound_forms_plan(), kAttentionDamages); }
TEST(VerifyFormsDamage, Joined) { expect_all_rejected(sound_forms_plan(), kJoinedDamages); }
TEST(VerifyFormsDamage, Constants) { expect_all_rejected(sound_forms_plan(), kPlanDamages); }
TEST(VerifyFormsDamage, Holes) { expect_all_rejected(sound_forms_plan(), kHoles); }

TEST(VerifyFormsDamage, ThePlannerSetsTheSameBarriers) {
  const Plan sound = sound_forms_plan();
  Plan plan = sound;
  for (Step& s : plan.steps) s.barrier_before = false;
  plan_barriers(plan);
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    EXPECT_EQ(plan.steps[i].barrier_before, sound.steps[i].barrier_before)
        << i << ": " << plan.steps[i].name();
}

TEST(VerifyFormsDamage, EveryBarrierIsNeeded) {
  const Plan sound = sound_forms_plan();
  for (std::size_t i = 0; i < sound.steps.size(); ++i) {
    if (!sound.steps[i].barrier_before) continue;
    Plan plan = sound;
    plan.steps[i].barrier_before = false;
    EXPECT_THROW(verify_plan(plan), PlanError) << i;
  }
}

TEST(VerifyFormsDamage, HolesThatNobodyReadsAreHarmless) {
  Plan plan = sound_forms_plan();
  // Every other element of a buffer twice as large, written and read.
  plan.buffers[kDelta].bytes = 4 * 16;
  result(plan, kSumUp).strides[0] = 2;
  for (StepName gradient : {kGradQ, kGradKv}) operand(plan, gradient, 6).strides = {8, 2, 0, 0, 0};
  operand(plan, kThird, 0).strides[0] = 2;
  EXPECT_NO_THROW(verify_plan(plan));
}

TEST(VerifyFormsDamage, ElementsInTurnNeedNoBarrier) {
  Plan plan = sound_forms_plan();
  // Two joined steps write the even and the odd elements of one span.
  step(plan, kFirst).dims = {10};
  result(plan, kFirst) = {kUpdated, 0, {2}};
  operand(plan, kSecond, 1) = {kUpdated, 1, {10, 2}};
  operand(plan, kThird, 0) = {kX, 0, {1}};
  step(plan, kThird).dims = {22};
  result(plan, kThird) = {kUpdated, 20, {1}};
  EXPECT_NO_THROW(verify_plan(plan));
}

TEST(VerifyFormsDamage, AnEmptySumStillWritesItsResult) {
  Plan plan = sound_forms_plan();
  step(plan, kLora).dims[2] = 0;
  segments(plan, kLora) = {{.k = 0}, {.k = 0}};
  // Nothing of A and B is read any more, though they keep their buffers.
  operand(plan, kLora, 5) = {kGain, 0, {1, 0, 0}};
  step(plan, kAttention).barrier_before = true;
  plan.steps.erase(plan.steps.begin() + kRows);
  EXPECT_NO_THROW(verify_plan(plan));
}

}  // namespace
}  // namespace caldera::testing::forms
