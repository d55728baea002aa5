// A plan written by hand that has every kind of step, operand and hazard: what the verifier's tests damage.
#pragma once

#include <memory>

#include "engine/plan/verify.h"

namespace caldera::testing {

/// Buffers of the sound plan, by name. d is stored where a was.
enum SoundBuffer : std::int32_t { kX, kIndices, kTotal, kPicked, kOut, kA, kB, kC, kD };

enum SoundStep : std::size_t {
  kScale,    // a = x * s
  kRamp,     // b = a + index            needs a: read after write
  kProduct,  // c = a @ b                needs b: read after write
  kSquare,   // d = x * x                d is stored over a, which kProduct reads: write after read
  kFill,     // out = s                  independent
  kWindow,   // out[1:7, 1:7] = x[...]   over kFill's elements: write after write
  kGather,   // picked = c[indices]      independent
  kScatter,  // out[indices] += d        accumulates on kWindow's elements: read after write
  kSum,      // total = sum(d)           independent
};

inline std::shared_ptr<const Kernel> make_kernel(Kernel kernel) {
  kernel.finish();
  return std::make_shared<const Kernel>(std::move(kernel));
}

inline Step region_step(std::shared_ptr<const Kernel> kernel, const Shape& dims,
                        std::vector<Operand> operands, std::vector<std::int32_t> scalars = {}) {
  Step step;
  step.as<RegionStep>().kernel = std::move(kernel);
  step.dims = dims;
  step.operands = std::move(operands);
  step.scalars = std::move(scalars);
  return step;
}

inline Plan sound_plan() {
  constexpr DType f = DType::f32;
  constexpr std::int64_t kBytes = 64 * 4;
  Plan plan;
  plan.device = Device::null();
  plan.input_count = 2;
  plan.output_count = 3;
  plan.scalars = {f};
  plan.buffers = {
      {BufferRole::input, f, kBytes, 0},   {BufferRole::input, DType::i32, 8 * 4, 0},
      {BufferRole::output, f, 4, 0},       {BufferRole::output, f, kBytes, 0},
      {BufferRole::output, f, kBytes, 0},  {BufferRole::arena, f, kBytes, 0},
      {BufferRole::arena, f, kBytes, 256}, {BufferRole::arena, f, kBytes, 512},
      {BufferRole::arena, f, kBytes, 0},
  };
  plan.arena_bytes = 768;

  const auto load = [](std::uint16_t n) { return Instruction{ScalarOp::load, DType::f32, n}; };
  const auto scale = make_kernel({.name = "scale",
                                  .inputs = {f},
                                  .scalars = {f},
                                  .code = {load(0), {ScalarOp::scalar, f, 0}, {ScalarOp::mul, f, 0, 1}},
                                  .outputs = {{2, f}}});
  const auto ramp = make_kernel(
      {.name = "ramp",
       .inputs = {f},
       .index_count = 1,
       .code = {load(0), {ScalarOp::index, DType::i32, 0}, {ScalarOp::cast, f, 1}, {ScalarOp::add, f, 0, 2}},
       .outputs = {{3, f}}});
  const auto square = make_kernel(
      {.name = "square", .inputs = {f}, .code = {load(0), {ScalarOp::mul, f, 0, 0}}, .outputs = {{1, f}}});
  const auto fill =
      make_kernel({.name = "fill", .scalars = {f}, .code = {{ScalarOp::scalar, f, 0}}, .outputs = {{0, f}}});
  const auto copy = make_kernel({.name = "copy", .inputs = {f}, .code = {load(0)}, .outputs = {{0, f}}});
  const auto total = make_kernel(
      {.name = "total", .inputs = {f}, .code = {load(0)}, .outputs = {{0, f}}, .reduce = Combine::sum});

  plan.steps.push_back(region_step(scale, {64}, {{kX, 0, {1}}, {kA, 0, {1}}}, {0}));
  plan.steps.push_back(region_step(ramp, {64}, {{kA, 0, {1}}, {-1, 0, {1}}, {kB, 0, {1}}}));
  Step product;
  product.dims = {8, 8, 8};
  product.work = ContractStep{.segments = {{.k = 8}}, .epilogue = {}};
  product.operands = {{kA, 0, {8, 0, 1}}, {kB, 0, {0, 1, 8}}, {kC, 0, {8, 1, 0}}};
  plan.steps.push_back(product);
  plan.steps.push_back(region_step(square, {64}, {{kX, 0, {1}}, {kD, 0, {1}}}));
  plan.steps.push_back(region_step(fill, {64}, {{kOut, 0, {1}}}, {0}));
  plan.steps.push_back(region_step(copy, {6, 6}, {{kX, 9, {8, 1}}, {kOut, 9, {8, 1}}}));
  Step gather;
  gather.dims = {1, 8, 8};
  gather.work = GatherStep{.axis = {8, 8}};
  gather.operands = {{kC, 0, {64, 0, 1}}, {kIndices, 0, {0, 1, 0}}, {kPicked, 0, {64, 8, 1}}};
  plan.steps.push_back(gather);
  Step scatter = gather;
  scatter.work = ScatterStep{.axis = {8, 8}};
  scatter.operands = {{kD, 0, {64, 8, 1}}, {kIndices, 0, {0, 1, 0}}, {kOut, 0, {64, 0, 1}}};
  plan.steps.push_back(scatter);
  Step sum = region_step(total, {64}, {{kD, 0, {1}}, {kTotal, 0, {0}}});
  sum.as<RegionStep>().reduce_rank = 1;
  plan.steps.push_back(sum);
  for (SoundStep step : {kRamp, kProduct, kSquare, kWindow, kScatter}) plan.steps[step].barrier_before = true;
  return plan;
}

}  // namespace caldera::testing
