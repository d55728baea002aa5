// What happens when the driver says no: every call that can fail is made to, one after the other.
//
// Each time the work ends with an Error that says what happened, or gets by with the right results. Then, the
// fault gone, the same work in the same process gives the same bits as ever, and no more memory is in use.
// That nothing leaks on the device, the validation layers say when it is closed.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "tests/support/devices.h"
#include "tests/support/fault_workload.h"
#include "tests/support/vulkan/faults.h"

namespace caldera::testing {
namespace {

const Device kDevice = Device::vulkan(0);

class Injected : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!is_available(kDevice)) return;
    VulkanFaults::install();
    // Copies through staging memory, as on a GPU whose memory the host cannot reach.
    ::setenv("CALDERA_VULKAN_STAGING", "1", 1);
    // Which variant of a kernel is the fastest may change, and with it the bits.
    ::setenv("CALDERA_TUNE", "0", 1);
    cold_run();
    expected_ = new WorkloadResults(run_fault_workload(kDevice));
    live_bytes_ = backend(kDevice).counters().live_bytes;
  }
  static void TearDownTestSuite() {
    delete expected_;
    expected_ = nullptr;
    ::unsetenv("CALDERA_VULKAN_STAGING");
    ::unsetenv("CALDERA_TUNE");
    if (is_available(kDevice)) reopen_device(kDevice);
  }
  void SetUp() override { CALDERA_REQUIRE_DEVICE(kDevice); }
  void TearDown() override { VulkanFaults::reset(); }

  /// On a device that was just opened.
  static void cold_run() {
    VulkanFaults::reset();
    reopen_device(kDevice);
    run_fault_workload(kDevice);
  }
  /// On a device that has been in use, with no plan made yet.
  static void warm_run() {
    clear_plan_cache();
    VulkanFaults::reset();
    run_fault_workload(kDevice);
  }

  /// Runs the work, on request on a new device. Empty if it gets by, otherwise what it failed with.
  static std::string run(bool reopen = false) {
    try {
      if (reopen) reopen_device(kDevice);
      EXPECT_EQ(run_fault_workload(kDevice), *expected_);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }

  /// `message` says where it happened and what the driver said.
  static void expect_message(const std::string& message, VkResult result) {
    EXPECT_NE(message.find("vulkan:0"), std::string::npos) << message;
    EXPECT_NE(message.find(vulkan::result_name(result)), std::string::npos) << message;
  }

  /// The fault gone, all is as if it had never been.
  static void expect_recovery() {
    VulkanFaults::reset();
    synchronize();
    EXPECT_EQ(run(), "");
    EXPECT_EQ(backend(kDevice).counters().live_bytes, live_bytes_);
  }

  static WorkloadResults* expected_;
  static std::uint64_t live_bytes_;
};
WorkloadResults* Injected::expected_ = nullptr;
std::uint64_t Injected::live_bytes_ = 0;

/// The message of an Error that `work` must end with.
template <class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

std::string site_name(const ::testing::TestParamInfo<FaultSite>& info) { return info.param.entry; }

/// Passed once a kernel: the tests of FailedKernel see to these.
bool is_per_kernel(const FaultSite& site) {
  const std::string_view entry = site.entry;
  return entry == "vkCreateShaderModule" || entry == "vkCreateComputePipelines";
}

/// How often the engine asks how far the device is depends on how fast it is.
bool is_timed(const FaultSite& site) { return std::string_view(site.entry) == "vkGetSemaphoreCounterValue"; }

/// This run came by without the `n`-th call: the host waits less often when the device is done before it
/// asks. Never true of the first wait, nor of other entries, which are called as often every time.
bool did_not_get_to(const FaultSite& site, std::uint64_t n) {
  return std::string_view(site.entry) == "vkWaitSemaphores" && n > 1 && VulkanFaults::calls(site.entry) < n;
}

template <class Condition>
std::vector<FaultSite> sites(Condition condition) {
  std::vector<FaultSite> found;
  std::ranges::copy_if(fault_sites(), std::back_inserter(found), condition);
  return found;
}

/// Where work meets queues.
bool is_queueing(const FaultSite& site) {
  constexpr std::string_view kEntries[] = {
      "vkCreateSemaphore",  "vkCreateCommandPool", "vkAllocateCommandBuffers", "vkBeginCommandBuffer",
      "vkEndCommandBuffer", "vkQueueSubmit",       "vkWaitSemaphores"};
  return std::ranges::find(kEntries, site.entry) != std::end(kEntries);
}

class FailedCall : public Injected, public ::testing::WithParamInterface<FaultSite> {
 protected:
  static void fail_each_in_turn();
};
INSTANTIATE_TEST_SUITE_P(Sites, FailedCall, ::testing::ValuesIn(sites(std::not_fn(is_per_kernel))),
                         site_name);

/// The same with copies on a queue and a timeline of their own.
template <class Base>
class OnCopyQueue : public Base {
 protected:
  void SetUp() override {
    Base::SetUp();
    if (::testing::Test::IsSkipped()) return;
    ::setenv("CALDERA_VULKAN_COPY_QUEUE", "1", 1);
    reopen_device(kDevice);
  }
  void TearDown() override {
    Base::TearDown();
    ::unsetenv("CALDERA_VULKAN_COPY_QUEUE");
    if (is_available(kDevice)) reopen_device(kDevice);
  }
};
class FailedCallWithCopyQueue : public OnCopyQueue<FailedCall> {};
INSTANTIATE_TEST_SUITE_P(Sites, FailedCallWithCopyQueue, ::testing::ValuesIn(sites(is_queueing)), site_name);

/// One call after the other, from the opening of the device on where it matters.
TEST_P(FailedCall, IsAnErrorAndLeavesNoTrace) { fail_each_in_turn(); }
TEST_P(FailedCallWithCopyQueue, IsAnErrorAndLeavesNoTrace) { fail_each_in_turn(); }
void FailedCall::fail_each_in_turn() {
  const auto [entry, result, reports_loss] = GetParam();
  cold_run();
  const std::uint64_t calls = VulkanFaults::calls(entry);
  ASSERT_TRUE(calls > 0 || is_timed(GetParam())) << "the work does not call " << entry;
  warm_run();
  const bool is_young = VulkanFaults::calls(entry) < calls;  // some only happen on a new device
  for (std::uint64_t n = 1; n <= calls; ++n) {
    SCOPED_TRACE(fmt::format("{} {} of {}", entry, n, calls));
    clear_plan_cache();
    VulkanFaults::reset();
    VulkanFaults::fail(entry, n, result);
    const std::string message = run(is_young);
    if (did_not_get_to(GetParam(), n)) break;
    EXPECT_TRUE(VulkanFaults::struck() == 1 || is_timed(GetParam()));
    if (!message.empty()) expect_message(message, result);
    expect_recovery();
    if (HasFailure()) return;  // one story is enough
  }
}

/// As when memory is short all the time.
TEST_P(FailedCall, AgainAndAgainIsSurvived) {
  const auto [entry, result, reports_loss] = GetParam();
  reopen_device(kDevice);
  VulkanFaults::reset();
  VulkanFaults::fail_alternately(entry, result);
  constexpr int kTries = 4;
  for (int i = 0; i < kTries; ++i) {
    const std::string message = run(i == 0 || i == kTries - 1);  // what is done when a device is closed, too
    if (!message.empty()) expect_message(message, result);
  }
  EXPECT_TRUE(VulkanFaults::struck() > 0 || is_timed(GetParam()));
  expect_recovery();
}

class FailedKernel : public Injected, public ::testing::WithParamInterface<FaultSite> {};
INSTANTIATE_TEST_SUITE_P(Sites, FailedKernel, ::testing::ValuesIn(sites(is_per_kernel)), site_name);

/// Each kernel of the work fails to be made once. The work gets one kernel further at every try: what was
/// made before stays good, and so does a plan that works already.
TEST_P(FailedKernel, CostsOneTryEach) {
  const auto [entry, result, reports_loss] = GetParam();
  cold_run();
  const std::uint64_t kernels = VulkanFaults::calls(entry);
  reopen_device(kDevice);
  const auto known_plan = [] {
    return (LazyTensor::full({3}, 2.0, DType::f32, kDevice).eval() * 3.0).to_vector<float>();
  };
  VulkanFaults::reset();
  EXPECT_EQ(known_plan(), std::vector<float>(3, 6.0F));
  const std::uint64_t made = VulkanFaults::calls(entry);
  VulkanFaults::reset();
  VulkanFaults::fail_alternately(entry, result);
  std::uint64_t errors = 0;
  for (; errors <= kernels; ++errors) {
    SCOPED_TRACE(fmt::format("{} {} of {}", entry, errors, kernels));
    const std::uint64_t before = VulkanFaults::struck();
    const std::string message = run();
    // Plans in flight together may both fail: the first says so.
    EXPECT_EQ(VulkanFaults::struck() > before, !message.empty());
    if (message.empty()) break;
    expect_message(message, result);
    EXPECT_NE(message.find("kernel "), std::string::npos) << message;
    EXPECT_EQ(known_plan(), std::vector<float>(3, 6.0F));
  }
  EXPECT_GE(VulkanFaults::struck() + made, kernels);
  EXPECT_LE(errors, kernels);
  expect_recovery();
}

class LostDevice : public Injected, public ::testing::WithParamInterface<FaultSite> {
 protected:
  static void lose_at_each_in_turn();
};
class LostDeviceWithCopyQueue : public OnCopyQueue<LostDevice> {};
INSTANTIATE_TEST_SUITE_P(Sites, LostDeviceWithCopyQueue, ::testing::ValuesIn(sites([](const FaultSite& site) {
                           return site.reports_loss && is_queueing(site);
                         })),
                         site_name);
INSTANTIATE_TEST_SUITE_P(Sites, LostDevice,
                         ::testing::ValuesIn(sites([](const FaultSite& site) { return site.reports_loss; })),
                         site_name);

/// Lost at every call in turn: the error says so, and again at every further use, until the device is opened
/// again.
TEST_P(LostDevice, IsAnErrorUntilItIsOpenedAnew) { lose_at_each_in_turn(); }
TEST_P(LostDeviceWithCopyQueue, IsAnErrorUntilItIsOpenedAnew) { lose_at_each_in_turn(); }
void LostDevice::lose_at_each_in_turn() {
  const char* const entry = GetParam().entry;
  const bool timed = is_timed(GetParam());
  cold_run();
  warm_run();
  const std::uint64_t calls = timed ? 3 : VulkanFaults::calls(entry);
  ASSERT_GT(calls, 0U) << "the work does not call " << entry;
  for (std::uint64_t n = 1; n <= calls; ++n) {
    SCOPED_TRACE(fmt::format("{} {} of {}", entry, n, calls));
    clear_plan_cache();
    VulkanFaults::reset();
    VulkanFaults::fail(entry, n, VK_ERROR_DEVICE_LOST);
    const std::string message = run();
    if (timed && VulkanFaults::struck() == 0) break;  // asked less often this time
    if (did_not_get_to(GetParam(), n)) break;
    EXPECT_EQ(VulkanFaults::struck(), 1U);
    // Told by its last answer, a run may be done before it matters.
    if (!timed || !message.empty()) expect_message(message, VK_ERROR_DEVICE_LOST);
    expect_message(run(), VK_ERROR_DEVICE_LOST);
    reopen_device(kDevice);
    expect_recovery();
    EXPECT_EQ(VulkanFaults::open_devices(), 1U);
    if (HasFailure()) return;
  }
}

/// Values of a lost device are gone, whichever way one asks for them, and dropping them is safe after the
/// device was opened again.
TEST_F(Injected, ValuesOfALostDeviceAreErrors) {
  const LazyTensor x = LazyTensor::ones({4}, DType::f32, kDevice).eval();
  const LazyTensor lazy = x * 2.0;
  VulkanFaults::fail("vkQueueSubmit", 1, VK_ERROR_DEVICE_LOST);
  const LazyTensor failed = x + 1.0;
  expect_message(error_of([&] { failed.eval(); }), VK_ERROR_DEVICE_LOST);
  expect_message(error_of([&] { failed.to_vector<float>(); }), VK_ERROR_DEVICE_LOST);
  expect_message(error_of([&] { x.to_vector<float>(); }), VK_ERROR_DEVICE_LOST);
  expect_message(error_of([&] { lazy.to_vector<float>(); }), VK_ERROR_DEVICE_LOST);
  reopen_device(kDevice);
  expect_recovery();
  EXPECT_NE(error_of([&] { x.to_vector<float>(); }), "");
  EXPECT_NE(error_of([&] { lazy.to_vector<float>(); }), "");
}

}  // namespace
}  // namespace caldera::testing
