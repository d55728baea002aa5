// Copies that swap which dimension is contiguous go through shared memory where the device is like a GPU.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/device/backend.h"
#include "engine/device/vulkan/steps/context.h"
#include "engine/device/vulkan/steps/encode.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/scoped_variable.h"

namespace caldera::testing {
namespace {

class VulkanTranspose : public ::testing::Test {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(Device::vulkan(0)); }

  static std::shared_ptr<const Kernel> copy(DType type) {
    KernelBuilder builder("copy");
    builder.store(builder.load(type), type);
    return builder.finish();
  }
  const ScopedVariable wide_{"CALDERA_VULKAN_WIDE", "1"};
};

/// Whether the plan's only dispatch runs the shader for transposes of that element size.
bool takes_tiles(const PlanCase& c, std::size_t element) {
  vulkan::Context context(vulkan::physical_devices().at(0));
  const vulkan::Recording recording = encode(*c.shared_plan(), context);
  return recording.dispatches.size() == 1 &&
         recording.dispatches[0].pipeline ==
             context.pipelines.embedded("transpose_" + std::to_string(8 * element));
}

TEST_F(VulkanTranspose, EveryElementSizeAndAwkwardShapes) {
  const auto backend = make_vulkan_backend(0);
  for (DType type : {DType::u8, DType::boolean, DType::i8, DType::i16, DType::u32, DType::i32, DType::f32,
                     DType::i64, DType::f64}) {
    if (!backend->supports(type)) continue;
    for (const auto& [m, n] :
         {std::pair<std::int64_t, std::int64_t>{32, 32}, {33, 65}, {129, 17}, {16, 1025}}) {
      SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(m) + "x" + std::to_string(n));
      PlanCase c(Device::vulkan(0));
      const int x = c.input(type, m * n);
      const int y = c.output(type, m * n);
      c.region(copy(type), {m, n}, {view(x, {n, 1}), view(y, {1, m})});
      EXPECT_TRUE(takes_tiles(c, size_of(type)));
      c.check_on(*backend);
    }
  }
}

TEST_F(VulkanTranspose, BatchesOffsetsAndPaddedRows) {
  const auto backend = make_vulkan_backend(0);
  const std::int64_t b = 3, h = 2, m = 40, n = 33;
  PlanCase c(Device::vulkan(0));
  const int x = c.input(DType::f32, b * m * (h * n + 5) + 7);
  const int y = c.output(DType::f32, b * h * n * (m + 3));
  // Heads out of the middle, transposed: (b, m, h, n) to (b, h, n, m) with rows of m + 3.
  c.region(
      copy(DType::f32), {b, h, n, m},
      {view(x, {m * (h * n + 5), n, 1, h * n + 5}, 7), view(y, {h * n * (m + 3), n * (m + 3), m + 3, 1})});
  EXPECT_TRUE(takes_tiles(c, 4));
  c.check_on(*backend);
}

TEST_F(VulkanTranspose, OtherCopiesStayAsTheyAre) {
  const auto backend = make_vulkan_backend(0);
  const std::int64_t n = 40;
  const auto check = [&](const char* what, const Operand& from, const Operand& to) {
    SCOPED_TRACE(what);
    PlanCase c(Device::vulkan(0));
    c.input(DType::f32, 4 * n * n);
    c.output(DType::f32, 4 * n * n);
    c.region(copy(DType::f32), {n, n}, {from, to});
    EXPECT_FALSE(takes_tiles(c, 4));
    c.check_on(*backend);
  };
  check("straight", view(0, {n, 1}), view(1, {n, 1}));
  check("backwards", view(0, {-n, 1}, n * (n - 1)), view(1, {1, n}));
  check("every other", view(0, {2 * n, 2}), view(1, {1, n}));
  check("one row for all", view(0, {0, 1}), view(1, {n, 1}));
}

}  // namespace
}  // namespace caldera::testing
