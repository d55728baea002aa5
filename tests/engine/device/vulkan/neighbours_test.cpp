// Lanes that take neighbouring points together, as GPUs do it, on any device: every type, odd lengths and
// addresses, broadcasts; also where small elements are parts of words.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "engine/check/reference/kernel_builder.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/glsl/region_shader.h"
#include "engine/device/vulkan/glsl/space.h"
#include "engine/device/vulkan/steps/region_space.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/scoped_variable.h"

namespace caldera::testing {
namespace {

class VulkanNeighbours : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    const ScopedVariable wide("CALDERA_VULKAN_WIDE", "1");
    const ScopedVariable without("CALDERA_VULKAN_WITHOUT", GetParam());
    backend_ = make_vulkan_backend(0);
  }
  std::unique_ptr<Backend> backend_;
};
INSTANTIATE_TEST_SUITE_P(Storage, VulkanNeighbours,
                         ::testing::Values("", "8-bit-storage,16-bit-storage,int8,int16,float16"));

std::shared_ptr<const Kernel> sum_kernel(DType a, DType b, DType result) {
  reference::KernelBuilder k("neighbours");
  const DType type = compute_type(result);
  const auto x = k.cast(k.load(a), type);
  const auto y = k.cast(k.load(b), type);
  k.store(k.cast(k.op(ScalarOp::maximum, x, y), result), result);
  return k.finish();
}

TEST_P(VulkanNeighbours, EveryTypeLengthAndOffset) {
  for (const DType type : kAllDTypes) {
    if (!backend_->supports(type)) continue;
    for (const DType other : {type, type == DType::f32 ? DType::boolean : DType::f32}) {
      if (other != type && !is_floating(type)) continue;
      SCOPED_TRACE(std::string(name(type)) + " and " + std::string(name(other)));
      const auto kernel = sum_kernel(type, other, type);
      for (const std::int64_t n : {5, 1027}) {
        PlanCase c(Device::vulkan(0));
        const int x = c.input(type, n + 8), y = c.input(other, n + 8);
        const int z = c.output(type, n + 8), w = c.output(type, n + 8);
        c.region(kernel, {n}, {view(x, {1}), view(y, {1}), view(z, {1})});
        c.region(kernel, {n}, {view(x, {1}, 3), view(y, {1}), view(w, {1}, 1)});
        c.check_on(*backend_);
      }
      // Rows of whole groups and of others, with operands that are one along a row and one down a column.
      for (const std::int64_t columns : {16, 20}) {
        PlanCase c(Device::vulkan(0));
        const std::int64_t rows = 9, row = columns + 16;
        const int x = c.input(type, rows * row), y = c.input(other, rows + columns);
        const int z = c.output(type, 2 * rows * columns);
        c.region(kernel, {rows, columns}, {view(x, {row, 1}), view(y, {1, 0}), view(z, {columns, 1})});
        c.region(kernel, {rows, columns},
                 {view(x, {-row, 1}, (rows - 1) * row), view(y, {0, 1}, 1),
                  view(z, {columns, 1}, rows * columns)});
        c.check_on(*backend_);
      }
    }
  }
}

TEST_P(VulkanNeighbours, IndicesAndSeveralOutputs) {
  Kernel k;
  k.name = "indices";
  k.inputs = {DType::f32, DType::bf16};
  k.index_count = 2;
  k.code = {{ScalarOp::load, DType::f32, 0},        {ScalarOp::load, DType::f32, 1},
            {ScalarOp::index, DType::i32, 0},       {ScalarOp::index, DType::i32, 1},
            {ScalarOp::less, DType::boolean, 2, 3}, {ScalarOp::select, DType::f32, 4, 0, 1},
            {ScalarOp::add, DType::i32, 2, 3}};
  k.outputs = {{5, DType::f32}, {4, DType::boolean}, {6, DType::i32}};
  k.finish();
  const auto kernel = std::make_shared<const Kernel>(k);
  PlanCase c(Device::vulkan(0));
  const std::int64_t rows = 33, columns = 40;
  const int x = c.input(DType::f32, rows * columns), y = c.input(DType::bf16, columns);
  std::vector<Operand> operands{view(x, {columns, 1}), view(y, {0, 1}), view(-1, {1, 0}, 2),
                                view(-1, {0, 3}, -5)};
  for (const auto& o : kernel->outputs)
    operands.push_back(view(c.output(o.type, rows * columns), {columns, 1}));
  c.region(kernel, {rows, columns}, operands);
  c.check_on(*backend_);
}

TEST_P(VulkanNeighbours, InputsThatLieOtherwise) {
  for (const DType type : {DType::f16, DType::f32, DType::u8}) {
    const auto kernel = sum_kernel(type, type, type);
    for (const std::int64_t n : {5, 1027}) {  // every third of one, and one from its end
      PlanCase c(Device::vulkan(0));
      const int x = c.input(type, 3 * n - 2), y = c.input(type, n), z = c.output(type, n);
      c.region(kernel, {n}, {view(x, {3}), view(y, {-1}, n - 1), view(z, {1})});
      c.check_on(*backend_);
    }
    // Two steps of a dispatch, of which the first reads a transposed matrix and the second another number.
    PlanCase c(Device::vulkan(0));
    const std::int64_t rows = 9, columns = 16;
    const int x = c.input(type, rows * columns), y = c.input(type, rows * columns);
    const int z = c.output(type, rows * columns), w = c.output(type, rows * columns);
    c.region(kernel, {rows, columns}, {view(x, {1, rows}), view(y, {columns, 1}), view(z, {columns, 1})});
    c.region(kernel, {rows, columns}, {view(x, {columns, 1}), view(y, {1, rows}), view(w, {columns, 1})});
    c.check_on(*backend_);
  }
}

TEST(VulkanNeighbourChoice, SixteenBytesWhereOperandsLieTogether) {
  const auto width = [](DType type, const Shape& dims, std::initializer_list<std::int64_t> strides) {
    Step step;
    step.as<RegionStep>().kernel = one_op_kernel(ScalarOp::cast, type, type);
    step.dims = dims;
    step.operands = {view(0, strides), view(1, strides)};
    const vulkan::RegionSpace space = vulkan::make_space(step);
    const auto& kernel = *step.as<RegionStep>().kernel;
    return vulkan::common_neighbours(kernel, {&space, 1}, vulkan::common_access(kernel, {&space, 1})).width;
  };
  EXPECT_EQ(width(DType::f32, {1000}, {1}), 4);
  EXPECT_EQ(width(DType::bf16, {1000}, {1}), 8);
  EXPECT_EQ(width(DType::u8, {1000}, {1}), 16);
  EXPECT_EQ(width(DType::i64, {1000}, {1}), 2);
  EXPECT_EQ(width(DType::bf16, {10, 16}, {24, 1}), 8);
  EXPECT_EQ(width(DType::bf16, {10, 16}, {20, 1}), 4);  // every other row begins within 16 bytes
  EXPECT_EQ(width(DType::f32, {10, 7}, {8, 1}), 1);
  EXPECT_EQ(width(DType::f32, {10, 16}, {1, 10}), 1);

  // What is read may lie otherwise, what is written may not.
  Step step;
  step.as<RegionStep>().kernel = one_op_kernel(ScalarOp::cast, DType::bf16, DType::bf16);
  step.dims = {10, 16};
  const auto& kernel = *step.as<RegionStep>().kernel;
  const auto turned = [&](const Operand& from, const Operand& to) {
    step.operands = {from, to};
    const vulkan::RegionSpace space = vulkan::make_space(step);
    return vulkan::common_neighbours(kernel, {&space, 1}, vulkan::common_access(kernel, {&space, 1}));
  };
  const vulkan::Together read = turned(view(0, {1, 10}), view(1, {16, 1}));
  EXPECT_EQ(read.width, 8);
  EXPECT_EQ(read.neighbours, (std::vector{Neighbours::each, Neighbours::together}));
  EXPECT_EQ(turned(view(0, {16, 1}), view(1, {1, 10})).width, 1);
}

TEST(VulkanNeighbourChoice, DivisionByMultiplication) {
  for (const std::int64_t d : {1, 2, 3, 7, 10, 641, 65536, 65537, 1000003, 2147483647}) {
    const std::uint64_t by = magic_divisor(d);
    int shift = 0;
    while ((std::int64_t{1} << shift) < d) ++shift;
    for (const std::uint64_t n : {0U, 1U, 640U, 65535U, 65536U, 123456789U, 2147483646U, 2147483647U}) {
      const std::uint64_t high = n * by >> 32;
      ASSERT_LT(high + n, std::uint64_t{1} << 32);
      ASSERT_EQ((high + n) >> shift, n / static_cast<std::uint64_t>(d)) << n << " / " << d;
    }
  }
}

}  // namespace
}  // namespace caldera::testing
