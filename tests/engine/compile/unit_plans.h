// Plans by hand for tests of scheduling and memory planning: buffers that count in blocks of the arena, and
// steps over whole buffers.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/compile/order/in_place.h"
#include "engine/compile/order/order_and_place.h"
#include "engine/compile/order/schedule.h"
#include "tests/engine/compile/sound_plan.h"

namespace caldera::testing {

inline constexpr std::int64_t kUnit = 64;  // floats to a block of the arena
static_assert(kUnit * 4 == kArenaAlignment);

inline std::shared_ptr<const Kernel> sum_of(std::size_t inputs, std::size_t outputs) {
  Kernel kernel;
  kernel.name = "sum of inputs";
  for (std::size_t i = 0; i < inputs; ++i) {
    kernel.inputs.push_back(DType::f32);
    kernel.code.push_back({ScalarOp::load, DType::f32, static_cast<std::uint16_t>(i)});
  }
  std::uint16_t sum = 0;
  for (std::size_t i = 1; i < inputs; ++i) {
    kernel.code.push_back({ScalarOp::add, DType::f32, sum, static_cast<std::uint16_t>(i)});
    sum = static_cast<std::uint16_t>(kernel.code.size() - 1);
  }
  for (std::size_t i = 0; i < outputs; ++i) kernel.outputs.push_back({sum, DType::f32});
  return make_kernel(std::move(kernel));
}

inline std::shared_ptr<const Kernel> row_total() {
  return make_kernel({.name = "total",
                      .inputs = {DType::f32},
                      .code = {{ScalarOp::load, DType::f32, 0}},
                      .outputs = {{0, DType::f32}},
                      .reduce = Combine::sum});
}

/// Memory, barriers and donations for the order that the plan has.
inline void place_in_order(Plan& plan) {
  place_in_order(plan, StepGraph(plan));
  find_donations(plan);
}

inline void plan_whole(Plan& plan) {
  schedule(plan);
  place_in_order(plan);
}

/// A plan of one unit a buffer: input 0, output 1, then arena buffers.
inline Plan empty_plan(int arena_buffers, std::int64_t units = 1) {
  Plan plan;
  plan.device = Device::null();
  plan.input_count = 1;
  plan.output_count = 1;
  for (int b = 0; b < 2 + arena_buffers; ++b) {
    const BufferRole role = b == 0 ? BufferRole::input : b == 1 ? BufferRole::output : BufferRole::arena;
    plan.buffers.push_back({role, DType::f32, units * kUnit * 4, 0});
  }
  return plan;
}

/// to = sum of from..., over whole buffers.
inline Step pointwise_step(std::vector<int> from, std::vector<int> to, std::int64_t units = 1) {
  Step step = region_step(sum_of(from.size(), to.size()), {units * kUnit}, {});
  for (int b : from) step.operands.push_back({b, 0, {1}});
  for (int b : to) step.operands.push_back({b, 0, {1}});
  return step;
}

}  // namespace caldera::testing
