// The structure of plans as numbers: steps, barriers, bytes of arena. They do not depend on the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/runtime.h"
#include "tests/support/engine_setup.h"
#include "tests/support/plans/named_programs.h"

namespace caldera::testing {
namespace {

struct Numbers {
  std::size_t steps = 0;
  int barriers = 0;
  std::int64_t arena_bytes = 0;
  friend bool operator==(const Numbers&, const Numbers&) = default;
};

void PrintTo(const Numbers& n, std::ostream* out) {
  *out << "{" << n.steps << ", " << n.barriers << ", " << n.arena_bytes << "}";
}

Numbers numbers_of(const Plan& plan) { return {plan.steps.size(), plan.barrier_count(), plan.arena_bytes}; }

std::shared_ptr<const Plan> plan_of(std::string_view name, bool fusion, Device device = Device::null()) {
  const ScopedSettings scope(fusion);
  return plan_for(named_program(name).build(device));
}

struct Golden {
  std::string_view program;
  Numbers fused;
  Numbers plain;
};

const Golden kGolden[] = {
    {"elementwise chain of 30", {1, 0, 0}, {30, 29, 1024}},
    {"elementwise chain of 200", {4, 3, 1024}, {200, 199, 1024}},
    {"sum of 40 tensors", {3, 2, 512}, {39, 38, 512}},
    {"softmax", {1, 0, 0}, {5, 4, 9728}},
    {"softmax along axis 0", {4, 3, 9984}, {5, 4, 9984}},
    {"log_softmax", {1, 0, 0}, {6, 5, 19200}},
    {"rms_norm", {1, 0, 0}, {7, 6, 9728}},
    {"layer_norm", {1, 0, 0}, {11, 10, 19200}},
    {"matmul", {1, 0, 0}, {1, 0, 0}},
    {"matmul of transposed operands", {1, 0, 0}, {1, 0, 0}},
    {"matmul of slices", {1, 0, 0}, {1, 0, 0}},
    {"batched matmul with a broadcast operand", {1, 0, 0}, {1, 0, 0}},
    {"slice, permute and broadcast into one sum", {1, 0, 0}, {2, 1, 512}},
    {"reshape after permute", {3, 1, 512}, {3, 1, 512}},
    {"reshape of a slice of whole rows", {1, 0, 0}, {1, 0, 0}},
    {"pad", {4, 1, 0}, {4, 1, 0}},
    {"concatenate", {5, 0, 0}, {8, 1, 512}},
    {"take", {5, 1, 512}, {5, 1, 512}},
    {"scatter_add", {4, 1, 0}, {4, 1, 0}},
    {"gradient of an embedding", {4, 2, 256}, {5, 3, 256}},
    {"causal attention", {1, 0, 512}, {10, 8, 768}},
    {"low-rank product", {2, 1, 256}, {5, 3, 1280}},
    {"training step", {8, 4, 1280}, {28, 14, 1792}},
    {"dropout", {1, 0, 0}, {4, 2, 1280}},
    {"reductions over several axes", {4, 0, 0}, {6, 1, 1792}},
    {"outputs that share memory", {4, 1, 0}, {5, 1, 0}},
    {"outputs without inputs", {4, 0, 0}, {4, 0, 0}},
    {"empty tensors", {2, 0, 0}, {2, 0, 0}},
    {"common sub-expressions", {1, 0, 0}, {4, 2, 256}},
    {"two independent branches", {1, 0, 0}, {5, 2, 3072}},
};

TEST(PlanStructure, IsAsExpected) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.program);
    EXPECT_EQ(numbers_of(*plan_of(golden.program, true)), golden.fused)
        << plan_of(golden.program, true)->to_string();
    EXPECT_EQ(numbers_of(*plan_of(golden.program, false)), golden.plain)
        << plan_of(golden.program, false)->to_string();
  }
}

TEST(PlanStructure, EveryProgramHasItsNumbers) {
  for (const NamedProgram& program : named_programs()) {
    const bool found = std::any_of(std::begin(kGolden), std::end(kGolden),
                                   [&](const Golden& golden) { return golden.program == program.name; });
    EXPECT_TRUE(found) << program.name;
  }
}

/// Where barriers cost nothing, no memory is spent on fewer of them.
TEST(PlanStructure, DoesNotDependOnTheDeviceButForWhatBarriersCost) {
  for (const NamedProgram& program : named_programs()) {
    SCOPED_TRACE(program.name);
    for (bool fusion : {true, false}) {
      for (Device device : available_devices()) {
        const Numbers on_device = numbers_of(*plan_of(program.name, fusion, device));
        const Numbers expected = numbers_of(*plan_of(program.name, fusion));
        if (backend(device).traits().barriers_cost) {
          EXPECT_EQ(on_device, expected);
        } else {
          EXPECT_EQ(on_device.steps, expected.steps);
          EXPECT_LE(on_device.arena_bytes, expected.arena_bytes);
        }
      }
    }
  }
}

TEST(PlanStructure, IsTheSameEveryTime) {
  for (const NamedProgram& program : named_programs()) {
    EXPECT_EQ(plan_of(program.name, true)->to_string(), plan_of(program.name, true)->to_string());
  }
}

TEST(PlanStructure, FusionNeverCostsSteps) {
  for (const NamedProgram& program : named_programs()) {
    EXPECT_LE(plan_of(program.name, true)->steps.size(), plan_of(program.name, false)->steps.size())
        << program.name;
  }
}

TEST(PlanStructure, ArenaIsReused) {
  // Two buffers of 2 MiB take turns however long the chain is: a result takes the place of an operand that
  // dies. A third one would save barriers, at too high a price.
  const ScopedSettings scope(false);
  constexpr std::int64_t kBytes = 1024 * 512 * 4;
  const LazyTensor x = LazyTensor::zeros({1024, 512}, DType::f32, Device::null()).eval();
  LazyTensor y = x;
  for (int i = 0; i < 50; ++i) y = tanh(y) * sigmoid(y);
  EXPECT_EQ(plan_for({y})->arena_bytes, 2 * kBytes);
  EXPECT_EQ(plan_for({y})->peak_bytes, 3 * kBytes);
}

TEST(PlanStructure, GradientsOfASharedWeightDoNotKeepEveryLayer) {
  constexpr std::int64_t kBytes = 512 * 512 * 4;  // large: small plans spend memory on fewer barriers
  const Device null = Device::null();
  for (const bool fusion : {true, false}) {
    const ScopedSettings scope(fusion);
    for (const int root : {4, 8, 16}) {  // blocks, and layers in each
      const LazyTensor x = LazyTensor::zeros({512, 512}, DType::f32, null).eval();
      const LazyTensor w = LazyTensor::ones({512, 512}, DType::f32, null).eval();
      LazyTensor y = x;
      for (int block = 0; block < root; ++block) {
        y = checkpoint(UnaryFunction([&](const LazyTensor& a) {
          LazyTensor h = a;
          for (int layer = 0; layer < root; ++layer) h = tanh(matmul(h, w));
          return h;
        }))(y);
      }
      // The values between blocks, those of one block, and what up to four products together wait for.
      EXPECT_LE(plan_for(grad(sum(y * y), {x, w}))->arena_bytes, (2 * root + 8) * kBytes)
          << root << (fusion ? " fused" : " plain");
    }
  }
}

/// The layer reads its weight transposed: what an optimiser reads and writes are runs of memory all the same.
TEST(PlanStructure, GradientsOfTransposedWeightsComeInTheOrderOfTheWeights) {
  const ScopedSettings scope;
  const Device null = Device::null();
  const LazyTensor x = program_input({4, 8, 16}, null), w = program_input({24, 16}, null, 1);
  const LazyTensor y = matmul(x, transpose(w));
  const auto plan = plan_for({w - 0.1 * grad(sum(y * y), {w})[0]});
  const Step& last = plan->steps.back();
  ASSERT_TRUE(last.is<ContractStep>()) << plan->to_string();
  EXPECT_EQ(last.dims, (Shape{24, 16, 32})) << plan->to_string();
  EXPECT_EQ(last.operands.back().strides, (Dims{16, 1, 0})) << plan->to_string();
}

TEST(PlanStructure, NothingLeftToComputeIsNoPlan) {
  const ScopedSettings scope;
  const LazyTensor x = program_input({4}, Device::null());
  EXPECT_EQ(plan_for({x}), nullptr);
  const LazyTensor y = exp(x).eval();
  EXPECT_EQ(plan_for({y, x}), nullptr);
  EXPECT_EQ(plan_for({y + x, y})->output_count, 1);
}

TEST(PlanStructure, IndependentStepsHaveNoBarrierBetweenThem) {
  const ScopedSettings scope(false);
  const Device d = Device::null();
  std::vector<LazyTensor> outputs;
  for (int i = 0; i < 10; ++i) outputs.push_back(exp(program_input({100}, d)));
  EXPECT_EQ(numbers_of(*plan_for(outputs)), (Numbers{10, 0, 0}));
}

TEST(PlanStructure, ScalarsAreArgumentsNotBuffers) {
  const ScopedSettings scope;
  const LazyTensor x = program_input({4}, Device::null());
  const auto plan = plan_for({x * 2.0 + 3.0 - 1.0});
  EXPECT_EQ(plan->input_count, 1);
  EXPECT_EQ(plan->scalars.size(), 3U);
  EXPECT_EQ(plan->steps.size(), 1U);
  EXPECT_EQ(plan->steps[0].scalars.size(), 3U);
}

TEST(PlanStructure, RowsJoinThoseThatTheyReadHoweverFarAway) {
  const ScopedSettings scope;
  const Device n = Device::null();
  const LazyTensor x = program_input({32, 200}, n), other = program_input({32, 1}, n, 1);
  const LazyTensor e = exp(x - max(x, -1, true)), total = sum(e, -1, true);
  const auto far = [](LazyTensor y) {  // more groups than are considered together
    for (int i = 0; i < 2600; ++i) y = tanh(y);
    return y;
  };
  const auto steps = [](const std::vector<LazyTensor>& outputs) { return plan_for(outputs)->steps.size(); };
  const LazyTensor loss = log(total) - sum(e * 0.5, -1, true);
  ASSERT_EQ(steps({e / total, loss}), 1U);
  const LazyTensor between = far(other);
  EXPECT_EQ(steps({e / total, between, loss}), 1 + steps({between}));
  // Not where what is between depends on the first and feeds the second.
  const LazyTensor m = program_input({32, 32}, n, 2);
  const auto through = [&](const LazyTensor& y) { return matmul(m, far(matmul(m, y))); };
  EXPECT_EQ(steps({e / total, sum(e * through(total), -1, true)}), 2 + steps({through(other)}));
}

TEST(PlanStructure, WhatIsStoredInSixteenBitsIsRoundedByTheStore) {
  const auto roundings = [](const std::vector<LazyTensor>& outputs) {
    const ScopedSettings scope;
    const auto plan = plan_for(outputs);
    EXPECT_EQ(plan->steps.size(), 1U);
    return std::ranges::count_if(plan->steps[0].as<RegionStep>().kernel->code, [](const Instruction& i) {
      return i.op == ScalarOp::round_f16 || i.op == ScalarOp::round_bf16;
    });
  };
  const LazyTensor x = program_input({33, 64}, Device::null());
  for (const DType half : {DType::f16, DType::bf16}) {
    const LazyTensor y = astype(x * 3.0, half);
    EXPECT_EQ(roundings({y}), 0);
    // What goes on computing has to be rounded first.
    EXPECT_EQ(roundings({y, astype(y, DType::f32) + 1.0}), 1);
    EXPECT_EQ(roundings({astype(astype(astype(x, half), DType::f32) * 3.0, half)}), 1);
    EXPECT_EQ(roundings({astype(y, half == DType::f16 ? DType::bf16 : DType::f16)}), 1);
  }
}

TEST(PlanStructure, WhatIsInMemoryInSixteenBitsIsNotStoredInFloatToo) {
  const ScopedSettings scope;
  const auto input = [](const Shape& shape) {
    return astype(program_input(shape, Device::null()), DType::f16).eval();
  };
  const LazyTensor a = input({32, 64}), b = input({32, 64}), w = input({64, 64}), v = input({64, 64});
  // How many tensors of f32 the steps write whose size is that of `sum`.
  const auto written = [](const std::vector<LazyTensor>& outputs) {
    const auto plan = plan_for(outputs);
    std::ptrdiff_t count = 0;
    for (const Step& step : plan->steps)
      count += std::ranges::count_if(step.operands, [&](const Operand& o) {
        return o.buffer >= plan->input_count &&
               plan->buffers[static_cast<std::size_t>(o.buffer)].dtype == DType::f32;
      });
    return count;
  };
  const LazyTensor total = a + b, wide = astype(total, DType::f32);
  const LazyTensor product = matmul(tanh(total), w), behind = matmul(product, v);
  const auto times_wide = [&](const LazyTensor& y) {
    return astype(astype(y, DType::f32) * wide, DType::f16);
  };
  // The last sum reads 16 bits, so those that multiply with the wide one may as well.
  EXPECT_EQ(written({times_wide(product), times_wide(behind), product + total}), 0);
  // Nothing else reads these: they are as exact as they were computed.
  EXPECT_GT(written({astype(behind, DType::f32) * astype(matmul(a, w), DType::f32)}), 1);
}

TEST(PlanStructure, NeighbouringDimensionsMerge) {
  const ScopedSettings scope;
  const LazyTensor x = program_input({2, 3, 4, 5}, Device::null());
  EXPECT_EQ(plan_for({exp(x)})->steps[0].dims, (Shape{120}));
  EXPECT_EQ(plan_for({sum(x, {2, 3})})->steps[0].dims, (Shape{6, 20}));
  EXPECT_EQ(plan_for({exp(permute_dims(x, {2, 3, 0, 1}))})->steps[0].dims, (Shape{20, 6}));
}

/// Labels of all steps, in order.
std::vector<std::string> labels(const std::vector<LazyTensor>& outputs) {
  const ScopedSettings scope;
  std::vector<std::string> out;
  const auto plan = plan_for(outputs);
  out.reserve(plan->steps.size());
  for (const Step& step : plan->steps) out.push_back(step.label);
  return out;
}

TEST(PlanStructure, WhatIsWrittenByHandIsTheNamedOperation) {
  const LazyTensor x = program_input({33, 70}, Device::null());
  const LazyTensor w = program_input({70}, Device::null(), 1);
  const LazyTensor e = exp(x - max(x, -1, true));
  const LazyTensor by_hand = e / sum(e, -1, true);
  const ScopedSettings scope;
  const Step named = plan_for({softmax(x)})->steps.at(0);
  EXPECT_EQ(plan_for({by_hand})->steps.at(0).as<RegionStep>().kernel->hash,
            named.as<RegionStep>().kernel->hash);
  EXPECT_EQ(named.label, "softmax");

  const LazyTensor d = x - max(x, -1, true);
  EXPECT_EQ(plan_for({d - log(sum(exp(d), -1, true))})->steps.at(0).as<RegionStep>().kernel->hash,
            plan_for({log_softmax(x)})->steps.at(0).as<RegionStep>().kernel->hash);
  EXPECT_EQ(
      plan_for({x * rsqrt(mean(x * x, -1, true) + 1e-5) * w})->steps.at(0).as<RegionStep>().kernel->hash,
      plan_for({rms_norm(x, 1e-5, w)})->steps.at(0).as<RegionStep>().kernel->hash);
}

TEST(PlanStructure, StepsAreCalledWhatTheyAre) {
  using Names = std::vector<std::string>;
  const Device n = Device::null();
  const LazyTensor x = program_input({33, 64}, n), w = program_input({64}, n, 1), b = program_input({64}, n);
  EXPECT_EQ(labels({exp(x) / sum(exp(x), -1, true)}), Names{"softmax"});
  EXPECT_EQ(labels({log_softmax(x)}), Names{"log_softmax"});
  EXPECT_EQ(labels({x / sqrt(mean(square(x), -1, true) + 1e-6) * w}), Names{"rms_norm"});
  EXPECT_EQ(labels({layer_norm(x, 1e-5, w, b)}), Names{"layer_norm"});
  EXPECT_EQ(labels({x / (1.0 + exp(-x))}), Names{"silu"});
  EXPECT_EQ(labels({silu(x) * program_input({33, 64}, n)}), Names{"swiglu"});
  EXPECT_EQ(labels({0.5 * x * (1.0 + erf(x / 1.4142135623730951))}), Names{"gelu"});
  EXPECT_EQ(labels({x + w}), Names{""});
  const LazyTensor big = program_input({64, 64}, n), down = program_input({64, 4}, n),
                   up = program_input({4, 64}, n);
  EXPECT_EQ(labels({matmul(x, big) + matmul(matmul(x, down), up) * 0.5}), (Names{"", "lora"}));
  EXPECT_EQ(labels(named_program("causal attention").build(n)), Names{"attention"});
}

/// Multiplications of a plan's regions.
std::ptrdiff_t multiplications(const Plan& plan) {
  std::ptrdiff_t count = 0;
  for (const Step& step : plan.steps)
    for (const StepKernel& kernel : step.kernels())
      count += std::ranges::count(kernel.kernel->code, ScalarOp::mul, &Instruction::op);
  return count;
}

TEST(PlanStructure, OnesMultiplyNothing) {
  const LazyTensor x = random_normal({4, 8}, 1), g = random_normal({4, 8}, 2), s = random_normal({}, 3);
  eval({x, g, s});
  const LazyTensor slope = grad(sum(x * g), {x})[0];  // of ones, times g
  EXPECT_EQ(multiplications(*plan_for({slope})), 0);
  EXPECT_EQ(slope.to_vector<float>(), g.to_vector<float>());
  EXPECT_EQ(multiplications(*plan_for({exp(x) * ones_like(x)})), 0);
  EXPECT_EQ(multiplications(*plan_for({exp(transpose(ones({8, 4})) * x)})), 0);
  // A number is ones by chance, and other ones have another shape.
  const auto scaled = [&](float by) { return exp(x) * full(x.shape(), by); };
  EXPECT_EQ(multiplications(*plan_for({scaled(1)})), 1);
  const std::vector<float> once = scaled(1).to_vector<float>(), twice = scaled(2).to_vector<float>();
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]);
  const LazyTensor spread = s * ones({4, 8});
  EXPECT_EQ(spread.shape(), Shape({4, 8}));
  EXPECT_EQ(spread.to_vector<float>(), std::vector<float>(32, s.item<float>()));
}

TEST(PlanStructure, OnesKeepTheBitsOfTheOtherFactor) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  const LazyTensor x = LazyTensor::from_vector<float>({-0.0F, nan, infinity, 1e-45F}, {4});
  const std::vector<float> got = (x * ones({4})).to_vector<float>();
  EXPECT_TRUE(std::signbit(got[0]) && got[0] == 0);
  EXPECT_TRUE(std::isnan(got[1]));
  EXPECT_EQ(got[2], infinity);
  EXPECT_EQ(got[3], 1e-45F);
}

}  // namespace
}  // namespace caldera::testing
