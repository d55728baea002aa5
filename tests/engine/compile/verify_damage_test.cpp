// The plan verifier against plans that were damaged on purpose: each kind of damage is named.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "engine/compile/order/hazards.h"
#include "tests/engine/compile/damage.h"
#include "tests/engine/compile/sound_plan.h"

namespace caldera::testing {
namespace {

Operand& operand(Plan& plan, SoundStep step, std::size_t k) { return plan.steps[step].operands[k]; }
Operand& result(Plan& plan, SoundStep step) { return plan.steps[step].operands.back(); }

void remove_step(Plan& plan, SoundStep step) {
  plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(step));
}

/// Kernels are shared and constant: edits a copy.
void edit_kernel(Plan& plan, SoundStep step, void (*edit)(Kernel&)) {
  Kernel kernel = *plan.steps[step].as<RegionStep>().kernel;
  edit(kernel);
  plan.steps[step].as<RegionStep>().kernel = make_kernel(std::move(kernel));
}

const Damage kHazards[] = {
    {"no barrier between writer and reader",
     "step 1 (ramp): operand 0 reads what no barrier separates from its writer",
     [](Plan& p) { p.steps[kRamp].barrier_before = false; }},
    {"no barrier before a product",
     "step 2 (matmul): operand 1 reads what no barrier separates from its writer",
     [](Plan& p) { p.steps[kProduct].barrier_before = false; }},
    {"no barrier between reader and writer",
     "step 3 (square): operand 1 overwrites what no barrier separates from its reader",
     [](Plan& p) { p.steps[kSquare].barrier_before = false; }},
    {"no barrier between writer and writer",
     "step 5 (copy): operand 1 overwrites what no barrier separates from its writer",
     [](Plan& p) { p.steps[kWindow].barrier_before = false; }},
    {"no barrier before an accumulation",
     "step 7 (scatter_add): operand 2 reads what no barrier separates from its writer",
     [](Plan& p) { p.steps[kScatter].barrier_before = false; }},
    {"two lifetimes overlap", "step 2 (matmul): operand 0 reads bytes that it never got, or lost",
     [](Plan& p) { p.buffers[kB].arena_offset = p.buffers[kA].arena_offset; }},
    {"memory reused too early", "step 6 (gather): operand 0 reads bytes that it never got, or lost",
     [](Plan& p) { p.buffers[kD].arena_offset = p.buffers[kC].arena_offset; }},
    {"a result over its own operands", "step 2 (matmul): operand 2 overwrites what the step itself reads",
     [](Plan& p) { p.buffers[kC].arena_offset = p.buffers[kB].arena_offset; }},
    {"a result over its operand, in another order",
     "step 1 (ramp): operand 2 overwrites what the step itself reads",
     [](Plan& p) {
       p.buffers[kB].arena_offset = p.buffers[kA].arena_offset;
       operand(p, kRamp, 0) = {kA, 63, {-1}};
     }},
    {"steps swapped", "step 0 (ramp): operand 0 reads bytes that it never got",
     [](Plan& p) { std::swap(p.steps[kScale], p.steps[kRamp]); }},
    {"a step missing", "step 0 (ramp): operand 0 reads bytes that it never got",
     [](Plan& p) { remove_step(p, kScale); }},
    {"a product missing", "operand 0 reads bytes that it never got",
     [](Plan& p) { remove_step(p, kProduct); }},
    {"the base of an accumulation missing", "(scatter_add): operand 2 reads bytes that it never got",
     [](Plan& p) { remove_step(p, kFill); }},
    {"an output not written", "the end: output 0 is not written in full",
     [](Plan& p) { remove_step(p, kSum); }},
    {"an output not written in full", "the end: output 1 is not written in full",
     [](Plan& p) { p.steps[kGather].dims[1] = 7; }},
    {"an output written with holes", "the end: output 1 is not written in full",
     [](Plan& p) {
       p.steps[kGather].dims[2] = 2;
       result(p, kGather).strides[2] = 7;
     }},
    {"a step that does nothing", "step 1 (ramp): operand 0 reads bytes that it never got",
     [](Plan& p) { p.steps[kScale].dims[0] = 0; }},
    {"a negative extent", "step 0 (scale): a negative extent",
     [](Plan& p) { p.steps[kScale].dims[0] = -64; }},
    {"reading another buffer",
     "step 1 (ramp): operand 0 reads bytes that it never got, or lost to another buffer",
     [](Plan& p) { operand(p, kRamp, 0).buffer = kD; }},
    {"writing another buffer", "step 2 (matmul): operand 1 reads bytes that it never got",
     [](Plan& p) { result(p, kRamp).buffer = kC; }},
    {"writing an input", "step 0 (scale): an input of the plan is written",
     [](Plan& p) { result(p, kScale).buffer = kX; }},
};

const Damage kBounds[] = {
    {"an offset beyond", "step 1 (ramp): operand 0 touches bytes 4 to 260 of a buffer of 256",
     [](Plan& p) { operand(p, kRamp, 0).offset = 1; }},
    {"a negative offset", "step 1 (ramp): operand 0 touches bytes -4 to 252 of a buffer of 256",
     [](Plan& p) { operand(p, kRamp, 0).offset = -1; }},
    {"a stride too large", "step 1 (ramp): operand 0 touches bytes",
     [](Plan& p) { operand(p, kRamp, 0).strides[0] = 2; }},
    {"a stride turned round", "step 1 (ramp): operand 2 touches bytes -252 to 4",
     [](Plan& p) { result(p, kRamp).strides[0] = -1; }},
    {"a stride too small", "step 1 (ramp): operand 2 has elements that several points write",
     [](Plan& p) { result(p, kRamp).strides[0] = 0; }},
    {"an extent too large", "step 0 (scale): operand 0 touches bytes 0 to 260",
     [](Plan& p) { p.steps[kScale].dims[0] = 65; }},
    {"a gathered axis too long", "step 6 (gather): operand 0 touches bytes",
     [](Plan& p) { p.steps[kGather].as<GatherStep>().axis.extent = 9; }},
    {"a scattered axis too wide", "step 7 (scatter_add): operand 2 touches bytes",
     [](Plan& p) { p.steps[kScatter].as<ScatterStep>().axis.stride = 9; }},
    {"a buffer too small", "step 0 (scale): operand 1 touches bytes 0 to 256 of a buffer of 252",
     [](Plan& p) { p.buffers[kA].bytes = 252; }},
    {"a buffer of negative size", "buffer 5 has a negative size",
     [](Plan& p) { p.buffers[kA].bytes = -256; }},
    {"an arena too small", "buffer 7 leaves the arena", [](Plan& p) { p.arena_bytes -= 256; }},
    {"a buffer before the arena", "buffer 5 leaves the arena",
     [](Plan& p) { p.buffers[kA].arena_offset = -256; }},
    {"a buffer that is not aligned", "buffer 6 is not aligned",
     [](Plan& p) { p.buffers[kB].arena_offset = 260; }},
};

const Damage kForm[] = {
    {"the role of a buffer", "buffer 5 has the wrong role",
     [](Plan& p) { p.buffers[kA].role = BufferRole::output; }},
    {"the role of an output", "buffer 2 has the wrong role",
     [](Plan& p) { p.buffers[kTotal].role = BufferRole::arena; }},
    {"more inputs than buffers", "fewer buffers than inputs and outputs", [](Plan& p) { p.input_count = 9; }},
    {"a negative number of outputs", "fewer buffers than inputs and outputs",
     [](Plan& p) { p.output_count = -1; }},
    {"a buffer that does not exist", "step 1 (ramp): operand 2 names a buffer that does not exist",
     [](Plan& p) { result(p, kRamp).buffer = 9; }},
    {"an operand without a buffer", "step 1 (ramp): operand 0 names a buffer that does not exist",
     [](Plan& p) { operand(p, kRamp, 0).buffer = -1; }},
    {"coordinates from a buffer", "step 1 (ramp): index operand 1 names a buffer",
     [](Plan& p) { operand(p, kRamp, 1).buffer = kX; }},
    {"the type of a buffer", "step 0 (scale): operand 0 has the wrong type",
     [](Plan& p) { p.buffers[kX].dtype = DType::i32; }},
    {"the type of a product", "step 2 (matmul): operand 0 has the wrong type",
     [](Plan& p) { p.steps[kProduct].dtype = DType::i32; }},
    {"indices that are no integers", "step 6 (gather): operand 1 has the wrong type",
     [](Plan& p) { p.buffers[kIndices].dtype = DType::f32; }},
    {"an operand missing", "step 0 (scale): the wrong number of operands",
     [](Plan& p) { p.steps[kScale].operands.pop_back(); }},
    {"no operands at all", "step 2 (matmul): the wrong number of operands",
     [](Plan& p) { p.steps[kProduct].operands.clear(); }},
    {"an operand too many", "step 2 (matmul): the wrong number of operands",
     [](Plan& p) {
       p.steps[kProduct].operands.push_back({kX, 0, {0, 0, 0}});
     }},
    {"strides of another rank", "step 2 (matmul): operand 1 has the wrong rank",
     [](Plan& p) { operand(p, kProduct, 1).strides.push_back(1); }},
    {"a product of two dimensions", "step 2 (matmul): too few dimensions",
     [](Plan& p) { p.steps[kProduct].dims.erase(0); }},
    {"no kernel", "step 3 (region): a region without a kernel",
     [](Plan& p) { p.steps[kSquare].as<RegionStep>().kernel = nullptr; }},
    {"a scalar that does not exist", "step 0 (scale): a scalar argument that does not exist",
     [](Plan& p) { p.steps[kScale].scalars[0] = 1; }},
    {"a negative scalar", "step 4 (fill): a scalar argument that does not exist",
     [](Plan& p) { p.steps[kFill].scalars[0] = -1; }},
    {"a scalar of another type", "step 0 (scale): a scalar argument of the wrong type",
     [](Plan& p) { p.scalars[0] = DType::i32; }},
    {"a scalar missing", "step 0 (scale): the wrong number of scalar arguments",
     [](Plan& p) { p.steps[kScale].scalars.clear(); }},
    {"a value used before it is computed",
     "step 0 (scale): an instruction uses a value before it is computed",
     [](Plan& p) { edit_kernel(p, kScale, [](Kernel& k) { k.code[2].b = 2; }); }},
    {"a value that does not exist", "step 3 (square): an instruction uses a value before it is computed",
     [](Plan& p) { edit_kernel(p, kSquare, [](Kernel& k) { k.code[1].a = 40; }); }},
    {"a load of no input", "step 0 (scale): an instruction reads an operand that does not exist",
     [](Plan& p) { edit_kernel(p, kScale, [](Kernel& k) { k.code[0].a = 1; }); }},
    {"a scalar argument beyond the last",
     "step 0 (scale): an instruction reads an operand that does not exist",
     [](Plan& p) { edit_kernel(p, kScale, [](Kernel& k) { k.code[1].a = 1; }); }},
    {"coordinates beyond the last", "step 1 (ramp): an instruction reads an operand that does not exist",
     [](Plan& p) { edit_kernel(p, kRamp, [](Kernel& k) { k.code[1].a = 1; }); }},
    {"a result that is not computed", "step 3 (square): an output that is not computed",
     [](Plan& p) { edit_kernel(p, kSquare, [](Kernel& k) { k.outputs[0].value = 2; }); }},
    {"a result of another type", "step 3 (square): operand 1 has the wrong type",
     [](Plan& p) { edit_kernel(p, kSquare, [](Kernel& k) { k.outputs[0].type = DType::i32; }); }},
    {"more reduced dimensions than there are", "step 8 (total): more reduced dimensions than there are",
     [](Plan& p) { p.steps[kSum].as<RegionStep>().reduce_rank = 2; }},
    {"reduced dimensions without a reduction", "step 3 (square): reduced dimensions do not fit the kernel",
     [](Plan& p) { p.steps[kSquare].as<RegionStep>().reduce_rank = 1; }},
    {"a reduction that varies", "step 8 (total): the result of a reduction varies along a reduced dimension",
     [](Plan& p) { result(p, kSum).strides[0] = 1; }},
};

TEST(VerifyDamage, TheSoundPlanPasses) { EXPECT_NO_THROW(verify_plan(sound_plan())); }
TEST(VerifyDamage, HazardsAndLifetimes) { expect_all_rejected(sound_plan(), kHazards); }
TEST(VerifyDamage, Bounds) { expect_all_rejected(sound_plan(), kBounds); }
TEST(VerifyDamage, Form) { expect_all_rejected(sound_plan(), kForm); }

TEST(VerifyDamage, ThePlannerSetsTheSameBarriers) {
  Plan plan = sound_plan();
  for (Step& step : plan.steps) step.barrier_before = false;
  plan_barriers(plan);
  const Plan sound = sound_plan();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    EXPECT_EQ(plan.steps[i].barrier_before, sound.steps[i].barrier_before) << plan.steps[i].name();
  }
}

TEST(VerifyDamage, InPlaceIsAllowedWhereEachPointReadsWhatItWrites) {
  Plan plan = sound_plan();
  // Nobody reads a again, so that b may take its place.
  plan.steps[kProduct].operands[0].buffer = kB;
  plan.buffers[kB].arena_offset = plan.buffers[kA].arena_offset;
  plan_barriers(plan);
  EXPECT_NO_THROW(verify_plan(plan));
}

TEST(VerifyDamage, AMovedDeadBufferIsHarmless) {
  Plan plan = sound_plan();
  plan.buffers[kD].arena_offset = plan.buffers[kB].arena_offset;  // b is dead by then
  EXPECT_NO_THROW(verify_plan(plan));
}

}  // namespace
}  // namespace caldera::testing
