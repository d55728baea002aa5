// set_memory_limit: never exceeded, no result changed, and what does not fit is an error that the engine
// survives.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "tests/support/engine_setup.h"
#include "tests/support/sanitizers.h"

namespace caldera::testing {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class MemoryLimit : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    start();
  }
  void TearDown() override {
    if (!IsSkipped()) start();
  }

  /// Nothing held but by tensors, no limit, and a new peak.
  static void start() {
    synchronize();
    clear_plan_cache();
    set_memory_limit(device(), 0);
  }
  static DeviceCounters now() { return backend(device()).counters(); }

  static LazyTensor random(const Shape& shape, int seed) {
    return (random_normal(shape, seed, DType::f32, device()) * 0.1).eval();
  }
  /// Small steps of gradient descent over batches of changing length. Returns the losses.
  static std::vector<float> train() {
    LazyTensor w1 = random({128, 256}, 1);
    LazyTensor w2 = random({256, 32}, 2);
    std::vector<float> losses;
    for (int step = 0; step < 8; ++step) {
      const LazyTensor x = random_normal({32 + 48 * (step % 4), 128}, 10 + step, DType::f32, device());
      const LazyTensor loss = mean(square(matmul(tanh(matmul(x, w1)), w2) - 0.5));
      const std::vector<LazyTensor> gradients = grad(loss, std::vector<LazyTensor>{w1, w2});
      w1 = w1 - 0.5 * gradients[0];
      w2 = w2 - 0.5 * gradients[1];
      eval({loss, w1, w2});
      losses.push_back(loss.item());
    }
    return losses;
  }
  static LazyTensor ones(const Shape& shape) { return LazyTensor::ones(shape, DType::f32, device()).eval(); }
  /// One of its intermediates takes 16 MiB, its result 4 bytes.
  static LazyTensor large_intermediate() {
    const LazyTensor y = matmul(ones({2048, 8}), ones({8, 2048}));
    return sum(matmul(y, ones({2048, 4})));
  }
  static constexpr float kLargeSum = 8.0F * 2048 * 2048 * 4;
};
INSTANTIATE_TEST_SUITE_P(Setups, MemoryLimit, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(MemoryLimit, TrainingUnderATightLimitGivesTheSameResults) {
  if (!kKeepsMemory && device().kind == DeviceKind::cpu)
    GTEST_SKIP() << "AddressSanitizer: no memory is kept";
  const std::vector<float> free = train();
  const std::uint64_t taken = now().reserved_peak_bytes;
  EXPECT_TRUE(std::isfinite(free.back()));
  EXPECT_LT(free.back(), free.front());

  // Down to the tightest limit that suffices, and one beyond.
  std::uint64_t limit = taken;
  for (std::uint64_t next = taken / 10 * 9;; next = next / 5 * 4) {
    start();
    set_memory_limit(device(), next);
    try {
      ASSERT_EQ(train(), free) << "under a limit of " << next;
      limit = next;
    } catch (const OutOfMemoryError&) {
      EXPECT_LE(now().reserved_peak_bytes, next);
      break;
    }
    ASSERT_LE(now().reserved_peak_bytes, next);
    EXPECT_EQ(now().limit_bytes, next);
  }
  EXPECT_LT(limit, taken / 4 * 3) << "no limit was tight";
  start();
  EXPECT_EQ(train(), free) << "and after one that was too tight";
}

TEST_P(MemoryLimit, AnOutputThatDoesNotFitIsNamedAndStaysLazy) {
  const LazyTensor x = random({16, 2048}, 3);
  set_memory_limit(device(), now().reserved_bytes + kMiB);
  const LazyTensor y = matmul(transpose(x), x) * 2.0;  // 16 MiB
  try {
    y.eval();
    FAIL() << "no exception";
  } catch (const OutOfMemoryError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.rfind("multiply: float32 of shape (2048, 2048): ", 0), 0U) << text;
    EXPECT_NE(text.find("16777216 bytes wanted"), std::string::npos) << text;
    const std::uint64_t left = now().limit_bytes - now().reserved_bytes;
    EXPECT_NE(text.find("which leaves " + std::to_string(left)), std::string::npos) << text;
    EXPECT_NE(text.find("of a limit of " + std::to_string(now().limit_bytes)), std::string::npos) << text;
    EXPECT_NE(text.find("--memory-limit"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  EXPECT_FALSE(y.is_evaluated());
  EXPECT_EQ((LazyTensor::ones({3}, DType::f32, device()) + 1.0).to_vector<float>(),
            (std::vector<float>{2, 2, 2}));
  EXPECT_LE(now().reserved_peak_bytes, now().limit_bytes);

  set_memory_limit(device(), 0);
  const std::vector<float> rows = x.to_vector<float>();
  double expected = 0;
  for (std::size_t i = 0; i < 16; ++i) expected += 2.0 * rows[i * 2048 + 5] * rows[i * 2048 + 7];
  EXPECT_NEAR(y.to_vector<float>()[5 * 2048 + 7], expected, 1e-5) << "the same tensor, once there is room";
}

TEST_P(MemoryLimit, IntermediatesThatDoNotFitFailInTheFuture) {
  const LazyTensor good = large_intermediate();
  EXPECT_EQ(good.item(), kLargeSum);
  start();
  const LazyTensor bad = large_intermediate();
  set_memory_limit(device(), now().reserved_bytes + 4 * kMiB);
  const EvalFuture future = bad.eval_async();
  try {
    future.get();
    FAIL() << "no exception";
  } catch (const OutOfMemoryError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.rfind("intermediates of a plan of ", 0), 0U) << text;
    EXPECT_NE(text.find("16777216 bytes of matmul over (2048, 2048, 8)"), std::string::npos) << text;
    EXPECT_NE(text.find("bytes wanted"), std::string::npos) << text;
  }
  EXPECT_LE(now().reserved_peak_bytes, now().limit_bytes);
  EXPECT_THROW(large_intermediate().eval(), OutOfMemoryError);
  EXPECT_EQ((LazyTensor::ones({2}, DType::f32, device()) + 1.0).to_vector<float>(),
            (std::vector<float>{2, 2}));
  set_memory_limit(device(), 0);
  EXPECT_EQ(large_intermediate().item(), kLargeSum);
}

TEST_P(MemoryLimit, DataFromTheHostThatDoesNotFitIsNamed) {
  set_memory_limit(device(), now().reserved_bytes + kMiB);
  const std::vector<float> values(kMiB / 2, 3.0F);
  try {
    LazyTensor::from_vector(values, {1024, 512}, device());
    FAIL() << "no exception";
  } catch (const OutOfMemoryError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("from_span: float32 of shape (1024, 512): "), std::string::npos) << text;
    EXPECT_NE(text.find("2097152 bytes wanted"), std::string::npos) << text;
  }
  set_memory_limit(device(), 0);
  EXPECT_EQ(LazyTensor::from_vector(values, {1024, 512}, device()).to_vector<float>(), values);
}

/// The bytes that tensors hold are in the message, whatever it was that had no room.
TEST(MemoryLimitOfTables, AnErrorCountsTheTensors) {
  const Device device = Device::vulkan(0);
  CALDERA_REQUIRE_DEVICE(device);
  constexpr std::int64_t kBytes = 4 << 20;
  const LazyTensor held = LazyTensor::ones(Shape{kBytes / 4}, DType::f32, device).eval();
  synchronize();
  const std::uint64_t live = backend(device).counters().live_bytes;
  ASSERT_GE(live, static_cast<std::uint64_t>(kBytes));
  set_memory_limit(device, live);
  try {
    LazyTensor::ones(Shape{kBytes}, DType::f32, device).eval();
    ADD_FAILURE() << "16 MiB fit";
  } catch (const OutOfMemoryError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(std::to_string(backend(device).counters().live_bytes) + " in use by tensors"),
              std::string::npos)
        << message;
  }
  set_memory_limit(device, 0);
}

/// On a device whose memory the host cannot reach, a copy needs some more on its way.
TEST(MemoryLimitOfCopies, ACopyWithoutRoomForItsStagingNamesItsTensor) {
  const Device gpu = Device::vulkan(0);
  CALDERA_REQUIRE_DEVICE(gpu);
  ASSERT_EQ(::setenv("CALDERA_VULKAN_STAGING", "1", 1), 0);
  reopen_device(gpu);
  ::unsetenv("CALDERA_VULKAN_STAGING");
  set_memory_limit(gpu, 2 * kMiB);
  const std::vector<float> values(kMiB / 8, 3.0F);
  std::string text = "no exception";
  try {
    LazyTensor::from_vector(values, {256, 512}, gpu);
  } catch (const OutOfMemoryError& error) {
    text = error.what();
  }
  EXPECT_EQ(text.rfind("from_span: float32 of shape (256, 512): staging of a copy", 0), 0U) << text;
  EXPECT_NE(text.find("bytes wanted"), std::string::npos) << text;
  EXPECT_NE(text.find("of a limit of 2097152"), std::string::npos) << text;

  const LazyTensor made = LazyTensor::ones({3}, DType::f32, gpu).eval();  // nothing is copied
  try {
    made.to_vector<float>();
    text = "no exception";
  } catch (const OutOfMemoryError& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("float32 of shape (3,): staging of a copy"), std::string::npos) << text;

  set_memory_limit(gpu, 0);
  EXPECT_EQ(LazyTensor::from_vector(values, {256, 512}, gpu).to_vector<float>(), values);
  EXPECT_EQ(made.to_vector<float>(), (std::vector<float>{1, 1, 1}));
  reopen_device(gpu);
}

/// Each holds 4 MiB until it is done; together they would need four times the limit.
TEST_P(MemoryLimit, WhatIsInFlightIsWaitedFor) {
  const LazyTensor x = random({16, 1024}, 3);
  const float expected = sum(matmul(transpose(x), x)).item();
  start();
  set_memory_limit(device(), now().reserved_bytes + 14 * kMiB);
  std::vector<LazyTensor> sums;
  for (int i = 0; i < 12; ++i) {
    const LazyTensor y = matmul(transpose(x), x);
    static_cast<void>(y.eval_async());
    sums.push_back(sum(y));
    static_cast<void>(sums.back().eval_async());
  }
  for (const LazyTensor& total : sums)
    EXPECT_NEAR(total.item(), expected, 1e-4F * std::abs(expected) + 1e-3F);
  EXPECT_LE(now().reserved_peak_bytes, now().limit_bytes);
}

TEST_P(MemoryLimit, ManyFailuresHoldNoMemory) {
  const LazyTensor x = random({16, 1024}, 3);
  start();
  set_memory_limit(device(), now().reserved_bytes + 2 * kMiB);
  const auto fail = [&] {
    EXPECT_THROW(matmul(transpose(x), x).eval(), OutOfMemoryError);
    EXPECT_THROW(large_intermediate().eval(), OutOfMemoryError);
  };
  fail();
  clear_plan_cache();
  const std::uint64_t live = now().live_bytes;
  for (int i = 0; i < 20; ++i) fail();
  clear_plan_cache();
  EXPECT_EQ(now().live_bytes, live);
}

}  // namespace
}  // namespace caldera::testing
