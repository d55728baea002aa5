// Replays in several submits, and dispatches in several parts: the same results, whatever the cut; what fails
// half-way ends there.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/open/device.h"
#include "engine/device/vulkan/open/physical_device.h"
#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/products/product_variants.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/attention_case.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/plans/row_kernels.h"
#include "tests/support/scoped_variable.h"

namespace caldera::testing {
namespace {

const Device kDevice = Device::vulkan(0);

/// Everything is cut as finely as can be.
class VulkanSubmits : public ::testing::Test {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(kDevice); }

  /// The plan's results on a device that slices, beside the reference; some dispatches have to be sliced.
  static void check(const PlanCase& c, Tolerance tolerance, Backend& backend) {
    const std::uint64_t before = backend.counters().queue_submits;
    c.check_on(backend, tolerance);
    EXPECT_GT(backend.counters().queue_submits - before, 2 * c.shared_plan()->steps.size()) << "not sliced";
  }
  static std::unique_ptr<Backend> open() {
    const ScopedVariable finest("CALDERA_VULKAN_SUBMIT_MS", "0");
    return make_vulkan_backend(0);
  }
};

TEST_F(VulkanSubmits, SlicedElementwiseStepsAndReductions) {
  const auto backend = open();
  const std::int64_t m = 300, n = 70;
  PlanCase c(kDevice);
  const int x = c.input(DType::f32, m * n, {-4, 4, true}), y = c.input(DType::f32, n, {-4, 4, true});
  const int sums = c.output(DType::f32, m * n), columns = c.output(DType::f32, n);
  const int rows = c.output(DType::f32, m);
  c.region(one_op_kernel(ScalarOp::add, DType::f32, DType::f32), {m, n},
           {view(x, {n, 1}), view(y, {0, 1}), view(sums, {n, 1})});
  const auto sum = reduce_kernel(Combine::sum, DType::f32);
  c.region(sum, {m, n}, {view(x, {n, 1}), view(rows, {1, 0})}, 1);
  c.region(sum, {n, m}, {view(x, {1, n}), view(columns, {1, 0})}, 1);
  check(c, {}, *backend);
}

TEST_F(VulkanSubmits, SlicedRows) {
  const auto backend = open();
  for (const std::int64_t n : {5, 600}) {
    const std::int64_t m = 200;
    PlanCase c(kDevice);
    const int x = c.input(DType::f32, m * n), y = c.output(DType::f32, m * n);
    c.region(softmax_kernel(DType::f32), {m, n}, {view(x, {n, 1}), view(y, {n, 1})}, 1);
    check(c, {1e-5, 1e-7}, *backend);
  }
}

/// Joined steps lie along y, where there are more of them than workgroups along x.
TEST_F(VulkanSubmits, SlicedJoinedSteps) {
  const auto backend = open();
  const std::int64_t n = 40, count = 25;
  PlanCase c(kDevice);
  const int x = c.input(DType::f32, n * count), y = c.output(DType::f32, n * count);
  const auto kernel = one_op_kernel(ScalarOp::neg, DType::f32, DType::f32);
  for (std::int64_t i = 0; i < count; ++i) {
    c.region(kernel, {n}, {view(x, {1}, i * n), view(y, {1}, i * n)});
    if (i > 0) c.join();
  }
  const std::uint64_t before = backend->counters().queue_submits;
  c.check_on(*backend);
  EXPECT_GE(backend->counters().queue_submits - before, 25U);
}

TEST_F(VulkanSubmits, SlicedProductsOfEveryVariant) {
  for (const vulkan::ProductVariant& variant : vulkan::product_variants()) {
    if (!why_not(variant, typical_product(variant), vulkan::physical_devices().at(0).capabilities).empty())
      continue;
    SCOPED_TRACE(variant.name);
    const ScopedVariable pin("CALDERA_TUNE", variant.name);
    const auto backend = open();
    const std::int64_t m = 150, n = 330, k = 37;
    const DType type = typical_product(variant).a;
    PlanCase c(kDevice);
    const int a = c.input(type, m * k, {-3, 3, true}), b = c.input(type, n * k, {-3, 3, true});
    const int z = c.output(DType::f32, m * n);
    c.contract(DType::f32, {m, n, k}, {view(a, {k, 0, 1}), view(b, {0, k, 1}), view(z, {n, 1, 0})});
    check(c, {}, *backend);
  }
}

TEST_F(VulkanSubmits, SlicedGathersAndScatters) {
  const auto backend = open();
  const std::int64_t outer = 3, extent = 11, count = 17, inner = 100;
  PlanCase c(kDevice);
  const int x = c.input(DType::f32, outer * extent * inner, {-9, 9, true});
  const int index = c.input(DType::i32, count);
  for (std::int64_t i = 0; i < count; ++i) c.set(index, i, integer(5 * i % (extent + 1)));
  const int picked = c.output(DType::f32, outer * count * inner);
  const int spread = c.output_with_data(DType::f32, outer * extent * inner);
  c.indexed(
      GatherStep{.axis = {extent, inner}}, DType::f32, {outer, count, inner},
      {view(x, {extent * inner, 0, 1}), view(index, {0, 1, 0}), view(picked, {count * inner, inner, 1})});
  c.indexed(ScatterStep{.axis = {extent, inner}}, DType::f32, {outer, count, inner},
            {view(picked, {count * inner, inner, 1}), view(index, {0, 1, 0}),
             view(spread, {extent * inner, 0, 1})});
  check(c, {1e-6, 1e-5}, *backend);
}

TEST_F(VulkanSubmits, SlicedAttention) {
  const auto backend = open();
  AttentionCase c(kDevice,
                  {.heads = 2, .group = 2, .m = 70, .n = 66, .d = 16, .e = 8, .score = ScoreKind::causal});
  c.add_all();
  check(c.plan(), {1e-4, 2e-4}, *backend);
}

TEST_F(VulkanSubmits, SlicedTransposes) {
  const ScopedVariable wide("CALDERA_VULKAN_WIDE", "1");
  const auto backend = open();
  const std::int64_t m = 129, n = 70;
  KernelBuilder copy("copy");
  copy.store(copy.load(DType::f32), DType::f32);
  PlanCase c(kDevice);
  const int x = c.input(DType::f32, m * n), y = c.output(DType::f32, m * n);
  c.region(copy.finish(), {m, n}, {view(x, {n, 1}), view(y, {1, m})});
  check(c, {}, *backend);
}

/// gl_NumWorkGroups is the count of one slice: no kernel may use it.
TEST(VulkanShaders, ShareOutTheirWorkAmongAllSlices) {
  for (const char* name :
       {"matmul_tile", "matmul_shared", "matmul_vector", "matmul_subgroup", "matmul_cooperative",
        "attention_forward", "attention_grad_q", "attention_grad_kv", "gather", "scatter", "transpose"}) {
    const std::string text = vulkan::whole_shader_text(name, {"attention_family", "attention_direct"});
    EXPECT_EQ(text.find(std::string("gl_Num") + "WorkGroups.x"), std::string::npos) << name;
    EXPECT_NE(text.find("all_groups"), std::string::npos) << name;
  }
}

// ---- Replays in many submits -----------------------------------------------------------------------------

/// y = (x + 1) + y in two steps, of which the second waits for the first.
std::shared_ptr<Plan> accumulate(std::int64_t n) {
  KernelBuilder b("add_one");
  const auto sum = b.op(ScalarOp::add, b.load(DType::f32), b.scalar(DType::f32));
  const auto add_one = b.store(sum, DType::f32).finish();
  PlanCase c(kDevice);
  const int x = c.input(DType::f32, n), old = c.input(DType::f32, n), y = c.output(DType::f32, n);
  const int t = c.arena(DType::f32, n);
  c.scalar(DType::f32, floating(1));
  c.region(add_one, {n}, {view(x, {1}), view(t, {1})});
  c.region(one_op_kernel(ScalarOp::add, DType::f32, DType::f32), {n},
           {view(t, {1}), view(old, {1}), view(y, {1})});
  return std::make_shared<Plan>(c.plan());
}

/// Submits that succeed before one fails, once; -1: none fails.
int submits_left = -1;
PFN_vkQueueSubmit real_submit = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL failing_submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos,
                                              VkFence fence) {
  if (submits_left >= 0 && submits_left-- == 0) return VK_ERROR_OUT_OF_HOST_MEMORY;
  return real_submit(queue, count, infos, fence);
}

void plant_failing_submit(VolkDeviceTable& table) {
  real_submit = table.vkQueueSubmit;
  table.vkQueueSubmit = failing_submit;
}

class VulkanReplayInParts : public VulkanSubmits {
 protected:
  static constexpr std::int64_t kSize = 5000;

  void SetUp() override {
    VulkanSubmits::SetUp();
    if (IsSkipped()) return;
    vulkan::set_table_hook(plant_failing_submit);
    backend_ = open();
    vulkan::set_table_hook(nullptr);
    executable_ = backend_->prepare(accumulate(kSize));
    x_ = filled(1);
  }
  void TearDown() override { submits_left = -1; }

  StoragePtr filled(float value) const {
    const std::vector<float> values(kSize, value);
    StoragePtr storage = backend_->allocate(4 * kSize);
    backend_->upload(*storage, 0, values.data(), 4 * kSize);
    return storage;
  }
  Ticket replay(const StoragePtr& old, const StoragePtr& y) const {
    return backend_->submit(
        *executable_, {{{x_.get(), 0}, {old.get(), 0}, {y.get(), 0}}, {std::bit_cast<std::uint32_t>(1.0F)}});
  }
  std::vector<float> values(const StoragePtr& storage) const {
    std::vector<float> list(kSize);
    backend_->download(*storage, 0, list.data(), 4 * kSize);
    return list;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Executable> executable_;
  StoragePtr x_;
};

TEST_F(VulkanReplayInParts, ManyInFlightReadWhatTheLastWrote) {
  std::vector<StoragePtr> chain{filled(0)};
  const std::uint64_t before = backend_->counters().queue_submits;
  Ticket last = 0;
  for (int i = 0; i < 12; ++i) {
    chain.push_back(filled(-1));
    last = replay(chain[chain.size() - 2], chain.back());
  }
  backend_->wait(last);
  EXPECT_EQ(values(chain.back()), std::vector<float>(kSize, 24));
  EXPECT_GT(backend_->counters().queue_submits - before, 12U * 4);
  EXPECT_EQ(backend_->counters().submits, 12U);
}

TEST_F(VulkanReplayInParts, TimesOfStepsAreThoseOfAllTheirSlices) {
  std::vector<StepTime> times;
  const StoragePtr old = filled(0), y = filled(0);
  Bindings bindings{{{x_.get(), 0}, {old.get(), 0}, {y.get(), 0}}, {std::bit_cast<std::uint32_t>(1.0F)}};
  bindings.step_times = &times;
  backend_->wait(backend_->submit(*executable_, bindings));
  EXPECT_EQ(values(y), std::vector<float>(kSize, 2));
  if (vulkan::physical_devices()[0].timestamp_bits == 0)
    GTEST_SKIP() << "timestampValidBits of the queue is 0";
  ASSERT_EQ(times.size(), 2U);
  EXPECT_LE(times[0].begin, times[0].end);
  EXPECT_LE(times[0].end, times[1].begin + std::chrono::microseconds(1));
}

/// One submit after the other fails, in a first replay and in later ones. What has been queued has run to its
/// end when the error comes, and the next replay is as if nothing had been.
TEST_F(VulkanReplayInParts, AFailedSubmitEndsTheReplayThere) {
  for (const bool is_first : {true, false}) {
    int fails = 0;
    for (;; ++fails) {
      if (is_first) executable_ = backend_->prepare(accumulate(kSize));
      const StoragePtr old = filled(3), y = filled(-1);
      if (!is_first) backend_->wait(replay(old, y));
      submits_left = fails;
      bool failed = false;
      Ticket ticket = 0;
      try {
        ticket = replay(old, y);
      } catch (const DeviceError& error) {
        failed = true;
        EXPECT_NE(std::string(error.what()).find("vkQueueSubmit"), std::string::npos) << error.what();
      }
      submits_left = -1;
      if (!failed) {
        backend_->wait(ticket);
        EXPECT_EQ(values(y), std::vector<float>(kSize, 5));
        break;
      }
      backend_->wait(replay(old, y));
      EXPECT_EQ(values(y), std::vector<float>(kSize, 5)) << "after submit " << fails << " had failed";
    }
    EXPECT_GT(fails, 4);
  }
}

}  // namespace
}  // namespace caldera::testing
