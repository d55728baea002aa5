// What a whole process sees: small work starts no thread, and leaving with work in flight is clean. Each
// case runs in a process of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

std::ptrdiff_t thread_count() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

class Process : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(GetParam());
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process, not a fork of this one
  }
  static LazyTensor slow() {
    const int n = GetParam().kind == DeviceKind::cpu ? 384 : 128;
    const LazyTensor x = LazyTensor::full({n, n}, 1.0 / n, DType::f32, GetParam());
    return matmul(matmul(matmul(x, x), x), x);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Process, ::testing::ValuesIn(tested_devices()), device_test_name);

/// Ends the child: 0 if all is well.
[[noreturn]] void leave(bool well) { std::exit(well ? 0 : 1); }

TEST(ProcessThreads, AnIdleCpuEvaluatesInline) {
  if (!std::filesystem::exists("/proc/self/task")) GTEST_SKIP() << "no /proc here";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto before = thread_count();
        const LazyTensor x = LazyTensor::from_vector(Floats{1, 2, 3}, {3}, Device::cpu());
        const bool right = sum(exp(x - x) * x).item() == 6.0F;
        const auto after = thread_count();
        // The count does see the stream's thread once there is work for it.
        (x + 1.0).eval_async().get();
        leave(right && after == before && thread_count() > before);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_P(Process, ExitsWithWorkInFlight) {
  EXPECT_EXIT(
      {
        for (int i = 0; i < 12; ++i) static_cast<void>(slow().eval_async());
        leave(true);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_P(Process, ExitsWithStaticTensorsInFlight) {
  EXPECT_EXIT(
      {
        static LazyTensor kept = slow();
        static EvalFuture future = kept.eval_async();
        static LazyTensor lazy = kept + 1.0;
        leave(true);
      },
      ::testing::ExitedWithCode(0), "");
}

/// Reads its tensor as the process ends: a value, or on a device that is gone an Error.
struct LastReader {
  LazyTensor x;
  ~LastReader() {
    bool is_well = false;
    try {
      is_well = x.item<float>() == 3.0F;
    } catch (const Error&) {
      is_well = x.device().kind != DeviceKind::cpu;
    }
    if (!is_well) std::_Exit(1);
  }
};

TEST_P(Process, StaticDestructorsReadValues) {
  EXPECT_EXIT(
      {
        static LastReader before;  // it goes after the devices have been closed
        const LazyTensor x = LazyTensor::from_vector(Floats{1, 2}, {2}, GetParam());
        static LastReader after;
        before.x = sum(x);
        after.x = sum(x * 1.0).eval();
        static_cast<void>((x + 1.0).eval_async());
        leave(true);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_P(Process, ExitsAfterAFailure) {
  EXPECT_EXIT(
      {
        const std::int64_t huge = std::int64_t{1} << 44;
        const LazyTensor x = LazyTensor::ones({1, 1}, DType::f32, GetParam()).eval();
        const EvalFuture future = sum(matmul(broadcast_to(x, {huge, 1}), x)).eval_async();
        static_cast<void>(slow().eval_async());
        leave(true);
      },
      ::testing::ExitedWithCode(0), "");
}

/// What the driver compiled is kept for the next process, though nobody closes the device.
TEST(ProcessCaches, OfPipelinesAreWrittenAtExit) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  namespace fs = std::filesystem;
  // The child has to find the same one; the run without fusion may be under way beside this one.
  const bool twin = std::getenv("CALDERA_FUSION") != nullptr;
  const fs::path folder =
      fs::temp_directory_path() / (twin ? "caldera_process_caches_twin" : "caldera_process_caches");
  const auto written = [&] {
    return std::ranges::count_if(fs::directory_iterator(folder), [](const fs::directory_entry& entry) {
      return entry.path().filename().string().starts_with("pipelines-");
    });
  };
  fs::create_directories(folder);
  EXPECT_EXIT(
      {
        ::setenv("CALDERA_CACHE_DIR", folder.c_str(), 1);
        const float value =
            (LazyTensor::ones({3}, DType::f32, Device::vulkan(0)) * 2.0).eval().to_vector<float>()[0];
        // Opening a device may have written some: those are not meant.
        for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
        leave(value == 2.0F && written() == 0);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(written(), 1);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace caldera::testing
