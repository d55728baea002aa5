// The workgroups that GPUs get for rows and attention, on any device: several subgroups, values kept in
// registers.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "engine/check/reference/kernel_builder.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/replay/executable.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/attention_case.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/plans/row_kernels.h"

namespace caldera::testing {
namespace {

class VulkanWide : public ::testing::Test {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    ASSERT_EQ(::setenv("CALDERA_VULKAN_WIDE", "1", 1), 0);
    backend_ = make_vulkan_backend(0);
    ::unsetenv("CALDERA_VULKAN_WIDE");
  }

  /// Random data of `elements` f32.
  static std::vector<std::byte> data(std::int64_t elements, std::mt19937& random) {
    std::uniform_real_distribution<float> values(-4, 4);
    std::vector<float> list(static_cast<std::size_t>(elements));
    for (float& v : list) v = values(random);
    std::vector<std::byte> bytes(4 * list.size());
    std::memcpy(bytes.data(), list.data(), bytes.size());
    return bytes;
  }

  /// Runs the plan of f32 buffers on random inputs; its outputs against the reference.
  void check(const std::shared_ptr<Plan>& plan, std::vector<std::uint64_t> scalars, double tolerance) {
    std::mt19937 random(1);
    PlanMemory memory;
    memory.scalars = std::move(scalars);
    Bindings bindings;
    bindings.scalars = memory.scalars;
    std::vector<StoragePtr> storages;
    for (const PlanBuffer& b : plan->buffers) {
      memory.buffers.push_back(data(b.bytes / 4, random));
      storages.push_back(backend_->allocate(memory.buffers.back().size()));
      backend_->upload(*storages.back(), 0, memory.buffers.back().data(), memory.buffers.back().size());
      bindings.slots.push_back({storages.back().get(), 0});
    }
    backend_->wait(backend_->submit(*backend_->prepare(plan), bindings));
    run_reference(*plan, memory);
    for (std::size_t b = static_cast<std::size_t>(plan->input_count); b < plan->buffers.size(); ++b) {
      std::vector<float> got(memory.buffers[b].size() / 4), want(got.size());
      backend_->download(*storages[b], 0, got.data(), 4 * got.size());
      std::memcpy(want.data(), memory.buffers[b].data(), 4 * want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (std::abs(got[i] - want[i]) <= tolerance * std::abs(want[i]) + 1e-7) continue;
        ADD_FAILURE() << "buffer " << b << ", element " << i << ": got " << got[i] << ", want " << want[i];
        return;
      }
    }
  }

  std::unique_ptr<Backend> backend_;
};

constexpr std::int64_t kRows = 5;
constexpr std::int64_t kLengths[] = {17, 33, 64, 300, 1025, 4096, 6001, 8192};

Step row_step(const std::shared_ptr<const Kernel>& kernel, std::int64_t rows, std::int64_t length,
              std::vector<Operand> operands) {
  Step step;
  step.as<RegionStep>().kernel = kernel;
  step.dims = Shape{rows, length};
  step.as<RegionStep>().reduce_rank = 1;
  step.operands = std::move(operands);
  return step;
}

std::shared_ptr<Plan> plan_of(const std::vector<std::int64_t>& inputs,
                              const std::vector<std::int64_t>& outputs) {
  auto plan = std::make_shared<Plan>();
  plan->device = Device::vulkan(0);
  plan->input_count = static_cast<std::int32_t>(inputs.size());
  plan->output_count = static_cast<std::int32_t>(outputs.size());
  for (std::int64_t n : inputs) plan->buffers.push_back({BufferRole::input, DType::f32, 4 * n, 0});
  for (std::int64_t n : outputs) plan->buffers.push_back({BufferRole::output, DType::f32, 4 * n, 0});
  return plan;
}

std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST_F(VulkanWide, Softmax) {
  for (std::int64_t n : kLengths) {
    const auto plan = plan_of({kRows * n}, {kRows * n});
    plan->steps = {row_step(softmax_kernel(DType::f32), kRows, n, {view(0, {n, 1}), view(1, {n, 1})})};
    check(plan, {}, 2e-5);
  }
}

/// Rows too long to be kept, whose sum is added up while their maximum is looked for: the maximum comes late,
/// comes often, is infinite, is NaN, or there is none.
TEST_F(VulkanWide, LongRowsOfSpecialValues) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  // Softmax, and the loss of a class: log(sum(exp(x - max))) - (x[class] - max).
  reference::KernelBuilder b("loss");
  const auto x = b.load(DType::f32);
  const auto wanted = b.load_row(DType::i32);
  const auto place = b.index();
  const auto zero = b.scalar(DType::f32);
  const auto d = b.op(ScalarOp::sub, x, b.op(ScalarOp::row_maximum, x));
  const auto sum = b.op(ScalarOp::row_sum, b.op(ScalarOp::exp, d));
  const auto picked =
      b.op(ScalarOp::row_sum, b.op(ScalarOp::select, b.op(ScalarOp::equal, place, wanted), d, zero));
  b.store(b.op(ScalarOp::sub, b.op(ScalarOp::log, sum), picked));
  b.store(b.op(ScalarOp::div, b.op(ScalarOp::exp, d), sum));
  const auto kernel = b.finish();
  for (const std::int64_t n : {8192, 9001}) {
    const std::int64_t rows = 10;
    PlanCase c(Device::vulkan(0));
    const int in = c.input(DType::f32, rows * n), target = c.input(DType::i32, rows);
    const auto fill = [&](std::int64_t row, auto value) {
      for (std::int64_t i = 0; i < n; ++i) c.set(in, row * n + i, {value(i), 0});
    };
    fill(1, [](std::int64_t i) { return static_cast<double>(i) / 64; });
    fill(2, [](std::int64_t i) { return i < 5000 ? -kInf : 0.001 * static_cast<double>(i); });
    fill(3, [](std::int64_t) { return -kInf; });
    c.set(in, 4 * n + 4097, {kInf, 0});
    c.set(in, 5 * n + 77, {kNan, 0});
    fill(6, [](std::int64_t i) { return i == 11 ? -3e4 : 1e4 - static_cast<double>(i) * 0.01; });
    c.set(in, 7 * n + 8, {-kInf, 0});
    c.set(in, 8 * n + 8, {kInf, 0});
    for (std::int64_t r = 0; r < rows; ++r)
      c.set(target, r, integer(r == 6 ? 11 : r == 9 ? -1 : r == 1 ? n - 1 : 8));
    const int loss = c.output(DType::f32, rows), share = c.output(DType::f32, rows * n);
    c.scalar(DType::f32, {0, 0});
    c.region(
        kernel, {rows, n},
        {view(in, {n, 1}), view(target, {1, 0}), view(-1, {0, 1}), view(loss, {1, 0}), view(share, {n, 1})},
        1);
    c.check_on(*backend_, {2e-5, 1e-7});
  }
}

TEST_F(VulkanWide, NormsWithValuesOfRows) {
  for (std::int64_t n : kLengths) {
    const auto plan = plan_of({kRows * n, n}, {kRows * n, kRows});
    plan->scalars = {DType::f32, DType::f32};
    plan->steps = {row_step(rms_norm_kernel(DType::f32), kRows, n,
                            {view(0, {n, 1}), view(1, {0, 1}), view(2, {n, 1}), view(3, {1, 0})})};
    plan->steps[0].scalars = {0, 1};
    check(plan, {bits(1.0F / static_cast<float>(n)), bits(1e-5F)}, 2e-5);
  }
}

TEST_F(VulkanWide, JoinedRowsOfManyLengths) {
  std::int64_t elements = 0;
  std::vector<Step> steps;
  for (std::int64_t n : kLengths) {
    steps.push_back(row_step(softmax_kernel(DType::f32), kRows, n,
                             {view(0, {n, 1}, elements), view(1, {1, kRows}, elements)}));
    steps.back().joined = steps.size() > 1;
    elements += kRows * n;
  }
  for (std::size_t first : {std::size_t{0}, std::size_t{2}}) {  // with long rows, without
    const auto plan = plan_of({elements}, {elements});
    plan->steps.assign(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(first));
    // What no step writes is as it was.
    check(plan, {}, 2e-5);
  }
  EXPECT_EQ(backend_->counters().dispatches, 2U);
}

/// Few and small: a software device takes seconds to compile such a kernel. One row of queries, fewer rows
/// than a tile has, more than a tile, heads that fill no vector, every way to mask by coordinates.
TEST_F(VulkanWide, AttentionAndItsGradients) {
  for (const AttentionSetting& s : {
           AttentionSetting{.heads = 2, .m = 1, .n = 33, .d = 16, .e = 16},
           AttentionSetting{.m = 7, .n = 5, .d = 4, .e = 9},
           AttentionSetting{.m = 70, .n = 66, .d = 16, .e = 8},
           AttentionSetting{.group = 2, .m = 33, .n = 33, .d = 33, .e = 16, .score = ScoreKind::causal},
       }) {
    SCOPED_TRACE(s.text());
    AttentionCase c(Device::vulkan(0), s);
    c.add_all();
    c.plan().check_on(*backend_, {1e-4, 2e-4});
  }
}

/// Few columns and many indices: invocations share a column, each with a part of the axis. What comes to one
/// element is combined in order, so the results are exactly the reference's.
TEST_F(VulkanWide, ScattersOfFewColumns) {
  const std::int64_t count = 403, extent = 37;
  for (const std::int64_t inner : {1, 3}) {
    for (const Scatter how : {Scatter::add, Scatter::set, Scatter::maximum, Scatter::minimum}) {
      SCOPED_TRACE(std::to_string(inner) + " columns, how " + std::to_string(static_cast<int>(how)));
      PlanCase c(Device::vulkan(0));
      const int in = c.input(DType::f32, count * inner), index = c.input(DType::i32, count);
      std::uniform_int_distribution<std::int64_t> pick(-2, extent + 1);
      for (std::int64_t i = 0; i < count; ++i) c.set(index, i, integer(pick(c.random())));
      const int out = c.output_with_data(DType::f32, extent * inner);
      c.indexed(ScatterStep{.axis = {extent, inner}, .combine = how}, DType::f32, {1, count, inner},
                {view(in, {0, inner, 1}), view(index, {0, 1, 0}), view(out, {0, 0, 1})});
      const auto executable = backend_->prepare(c.shared_plan());
      const auto& recording = dynamic_cast<const vulkan::VulkanExecutable&>(*executable).recording();
      EXPECT_EQ(recording.dispatches.at(0).groups, (inner * extent + 63) / 64);
      c.check_on(*backend_);
    }
  }
}

}  // namespace
}  // namespace caldera::testing
