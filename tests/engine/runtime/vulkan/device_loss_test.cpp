// A device that is lost, and opened again in the same process.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/vulkan/open/device.h"
#include "tests/support/devices.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

const Device kDevice = Device::vulkan(0);

/// When the device under test is lost. Other calls go to the driver.
struct Faults {
  std::atomic<int> submits_left{-1};  // that succeed; -1: all
  std::atomic<bool> waits_fail{false};
  PFN_vkQueueSubmit submit = nullptr;
  PFN_vkWaitSemaphores wait = nullptr;
};
Faults faults;

VKAPI_ATTR VkResult VKAPI_CALL faulty_submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos,
                                             VkFence fence) {
  if (faults.submits_left == 0) return VK_ERROR_DEVICE_LOST;
  if (faults.submits_left > 0) --faults.submits_left;
  return faults.submit(queue, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL faulty_wait(VkDevice device, const VkSemaphoreWaitInfo* info,
                                           std::uint64_t timeout) {
  return faults.waits_fail ? VK_ERROR_DEVICE_LOST : faults.wait(device, info, timeout);
}

void plant(VolkDeviceTable& table) {
  faults.submit = table.vkQueueSubmit;
  faults.wait = table.vkWaitSemaphores;
  table.vkQueueSubmit = faulty_submit;
  table.vkWaitSemaphores = faulty_wait;
}

template <class Call>
std::string device_error(Call call) {
  try {
    call();
  } catch (const DeviceError& e) {
    return e.what();
  }
  return "none";
}

class DeviceLoss : public ::testing::Test {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(kDevice);
    vulkan::set_table_hook(plant);
    reopen_device(kDevice);
    vulkan::set_table_hook(nullptr);
  }
  void TearDown() override {
    faults.submits_left = -1;
    faults.waits_fail = false;
    if (is_available(kDevice)) reopen_device(kDevice);
  }
  static LazyTensor leaf(const Floats& values) {
    return LazyTensor::from_vector(values, {static_cast<std::int64_t>(values.size())}, kDevice);
  }

  ScopedSettings scope_;
};

TEST_F(DeviceLoss, ReachesEveryPendingEventAndAllThatComesAfter) {
  const LazyTensor x = leaf({1, 2, 3});
  const LazyTensor before = (x + 1.0).eval();
  const LazyTensor sums = exp(x).eval();
  faults.submits_left = 0;

  const LazyTensor first = x * 2.0;
  const EvalFuture first_done = first.eval_async();
  const LazyTensor second = first + x;
  const std::string error = device_error([&] { first_done.get(); });
  EXPECT_EQ(device_error([&] { second.eval(); }), error);
  for (const char* part :
       {"vulkan:0", "was lost", "vkQueueSubmit", "last completed: evaluation 2 (its last step was exp",
        "in flight: evaluation 3 (1 step, mul", "reopen_device()"})
    EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;

  EXPECT_EQ(device_error([&] { first.to_vector<float>(); }), error) << "a value that never came";
  EXPECT_EQ(device_error([&] { before.to_vector<float>(); }), error) << "a value that was there";
  EXPECT_EQ(device_error([&] { (before + 1.0).eval(); }), error);
  EXPECT_EQ(device_error([&] { (before - 1.0).eval_async().get(); }), error);
  EXPECT_EQ(device_error([&] { leaf({1}); }), error);
  const LazyTensor host = LazyTensor::from_vector(Floats{1, 2}, {2}, Device::cpu());
  EXPECT_EQ((host + 1.0).to_vector<float>(), (Floats{2, 3})) << "other devices go on";
}

TEST_F(DeviceLoss, FoundWhileWaitingNamesWhatWasInFlight) {
  const LazyTensor x = leaf({1, 2, 3});
  faults.waits_fail = true;
  LazyTensor y = x;
  std::vector<EvalFuture> futures;
  for (int i = 0; i < 6; ++i) {
    y = y * 0.5 + x;
    futures.push_back(y.eval_async());
  }
  std::string first;
  for (const EvalFuture& future : futures) {
    const std::string error = device_error([&] { future.get(); });
    if (first.empty()) first = error;
    EXPECT_EQ(error, first);
  }
  EXPECT_NE(first.find("waiting for the device"), std::string::npos) << first;
  synchronize();  // does not hang
}

TEST_F(DeviceLoss, ADeviceOpenedAnewWorksAndOldTensorsSayWhatTheyAre) {
  const LazyTensor x = leaf({1, 2, 3});
  const auto program = [](const LazyTensor& t) { return t * 3.0 + 1.0; };
  EXPECT_EQ(program(x).to_vector<float>(), (Floats{4, 7, 10}));
  faults.submits_left = 0;
  const std::string lost = device_error([&] { program(x).eval(); });
  ASSERT_NE(lost, "none");
  reopen_device(kDevice);  // without faults this time

  const LazyTensor fresh = leaf({1, 2, 4});
  EXPECT_EQ(program(fresh).to_vector<float>(), (Floats{4, 7, 13})) << "the same program, planned anew";
  EXPECT_EQ(device_error([&] { x.to_vector<float>(); }), lost);
  EXPECT_EQ(device_error([&] { (x + fresh).eval(); }), lost);
  EXPECT_EQ(program(fresh).to_vector<float>(), (Floats{4, 7, 13})) << "an error leaves the device usable";
}

TEST_F(DeviceLoss, TensorsOfADeviceThatWasReopenedWithoutNeedSayIt) {
  const LazyTensor x = leaf({1, 2, 3});
  const LazyTensor y = x + 1.0;
  const EvalFuture pending = y.eval_async();
  reopen_device(kDevice);
  pending.get();  // what was scheduled ended
  EXPECT_NE(device_error([&] { x.to_vector<float>(); }).find("before reopen_device()"), std::string::npos);
  EXPECT_NE(device_error([&] { (x * 2.0).eval(); }).find("before reopen_device()"), std::string::npos);
  EXPECT_EQ((leaf({5}) + 1.0).item(), 6.0F);
}

TEST_F(DeviceLoss, AtAnySubmitOfAFirstRunInParts) {
  settings().fusion = false;
  const auto program = [](LazyTensor t) {
    for (int i = 0; i < 100; ++i) t = t + 1.0;
    return t;
  };
  int submits = 0;
  for (;; ++submits) {
    const LazyTensor x = leaf({1, 2});
    faults.submits_left = submits;
    const LazyTensor y = program(x);
    const std::string error = device_error([&] { y.eval(); });
    faults.submits_left = -1;
    if (error == "none") {
      EXPECT_EQ(y.to_vector<float>(), (Floats{101, 102}));
      break;
    }
    EXPECT_NE(error.find("in flight: evaluation 1 (100 steps"), std::string::npos) << error;
    vulkan::set_table_hook(plant);
    reopen_device(kDevice);
    vulkan::set_table_hook(nullptr);
  }
  EXPECT_GT(submits, 2) << "a plan of 100 dispatches starts in several parts";
}

}  // namespace
}  // namespace caldera::testing
