// What the CPU backend promises beside kernels: memory, counters, large products, refusals; and the null
// device.
#include "engine/device/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/cpu/host/allocator.h"
#include "engine/device/null/null_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/sanitizers.h"

namespace caldera::testing {
namespace {

TEST(CpuBackend, BlocksAreAlignedAndReused) {
  const auto backend = make_cpu_backend();
  for (std::size_t bytes : {0, 1, 63, 64, 65, 80, 81, 1000, 4096, 5000000}) {
    const void* first = nullptr;
    {
      const auto block = backend->allocate(bytes);
      first = block->host_data();
      EXPECT_EQ(block->bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
      if (bytes > 0) std::memset(block->host_data(), 1, bytes);
    }
    if (!kKeepsMemory) continue;
    const auto before = backend->counters().allocations;
    const auto again = backend->allocate(bytes);
    EXPECT_EQ(again->host_data(), first);
    EXPECT_EQ(backend->counters().allocations, before);
  }
  EXPECT_EQ(backend->counters().live_bytes, 0U);
  EXPECT_EQ(backend->counters().peak_bytes, 5000000U);
}

TEST(CpuBackend, EverySizeFitsItsClass) {
  const auto allocator = std::make_shared<cpu::Allocator>();
  for (std::size_t bytes = 1; bytes < 5000; ++bytes) {
    const auto block = allocator->allocate(bytes);
    std::memset(block->host_data(), 0xab, bytes);
  }
}

TEST(CpuBackend, ABlockOutlivesItsBackend) {
  auto backend = make_cpu_backend();
  const auto block = backend->allocate(100);
  backend.reset();
  std::memset(block->host_data(), 0, 100);
}

TEST(CpuBackend, RefusesWhatDoesNotFit) {
  const auto backend = make_cpu_backend();
  for (std::size_t bytes : {std::size_t{1} << 45, std::size_t{1} << 62}) {
    try {
      (void)backend->allocate(bytes);
      FAIL() << "allocated " << bytes;
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos);
    }
  }
}

TEST(CpuBackend, DescribesItself) {
  const DeviceInfo& info = shared_backend(Device::cpu()).info();
  EXPECT_EQ(info.type, "cpu");
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.driver.empty());
  EXPECT_GT(info.memory_bytes, 0U);
}

TEST(CpuBackend, AnUnknownFunctionIsRefusedWithItsName) {
  auto kernel = one_op_kernel(ScalarOp::exp, DType::f16, DType::f16);
  PlanCase c(Device::cpu());
  const auto plan = std::make_shared<Plan>();
  Step step;
  step.as<RegionStep>().kernel = kernel;
  step.dims = Shape{4};
  step.operands = {view(0, {1}), view(1, {1})};
  plan->steps.push_back(step);
  plan->buffers.resize(2);
  try {
    (void)shared_backend(Device::cpu()).prepare(plan);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("exp"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("float16"), std::string::npos) << error.what();
  }
}

TEST(CpuBackend, SteadyReplaysAllocateNothing) {
  const auto backend = make_cpu_backend();
  PlanCase c(Device::cpu());
  const int x = c.input(DType::f32, 5000);
  const int z = c.output(DType::f32, 5000);
  const int t = c.arena(DType::f32, 5000);
  const auto exp = one_op_kernel(ScalarOp::exp, DType::f32, DType::f32);
  c.region(exp, {5000}, {view(x, {1}), view(t, {1})});
  c.region(exp, {5000}, {view(t, {1}), view(z, {1})});
  const auto executable = backend->prepare(std::make_shared<Plan>(c.plan()));
  const auto in = backend->allocate(20000);
  std::memset(in->host_data(), 0, 20000);
  std::uint64_t after_first = 0;
  for (int i = 0; i < 10; ++i) {
    const auto out = backend->allocate(20000);
    backend->wait(backend->submit(*executable, {{{in.get(), 0}, {out.get(), 0}}, {}}));
    if (i == 0) after_first = backend->counters().allocations;
  }
  if (kKeepsMemory) {
    EXPECT_EQ(backend->counters().allocations, after_first);
  }
  EXPECT_EQ(backend->counters().submits, 10U);
  EXPECT_EQ(backend->counters().dispatches, 20U);
  EXPECT_EQ(backend->counters().barriers, 10U);
}

TEST(CpuBackend, LargeProductsAgreeWithTheReference) {
  PlanCase c(Device::cpu());
  const std::int64_t m = 200;
  const std::int64_t n = 150;
  const std::int64_t k = 300;
  const int a = c.input(DType::f32, m * k);
  const int b = c.input(DType::f32, k * n);
  const int z = c.output(DType::f32, m * n);  // NaN before: beta = 0 must not read it
  c.contract(DType::f32, {m, n, k}, {view(a, {k, 0, 1}), view(b, {0, 1, n}), view(z, {n, 1, 0})});
  c.check({1e-6, 1e-3});
}

TEST(NullBackend, CountsAndComputesNothing) {
  const auto backend = make_null_backend();
  PlanCase c(Device::null());
  const int x = c.input(DType::f32, 8);
  const int t = c.output(DType::f32, 8);
  const auto neg = one_op_kernel(ScalarOp::neg, DType::f32, DType::f32);
  c.region(neg, {8}, {view(x, {1}), view(t, {1})});
  c.region(neg, {8}, {view(t, {1}), view(t, {1})});
  const auto executable = backend->prepare(std::make_shared<Plan>(c.plan()));
  {
    const auto in = backend->allocate(32);
    EXPECT_EQ(in->host_data(), nullptr);
    backend->wait(backend->submit(*executable, {{{in.get(), 0}, {in.get(), 0}}, {}}));
    float out[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    backend->download(*in, 0, out, sizeof out);
    EXPECT_EQ(out[7], 0.0F);
    EXPECT_EQ(backend->counters().live_bytes, 32U);
  }
  EXPECT_EQ(backend->counters().dispatches, 2U);
  EXPECT_EQ(backend->counters().barriers, 1U);
  EXPECT_EQ(backend->counters().submits, 1U);
  EXPECT_EQ(backend->counters().kernels_compiled, 1U);
  EXPECT_EQ(backend->counters().live_bytes, 0U);
}

}  // namespace
}  // namespace caldera::testing
