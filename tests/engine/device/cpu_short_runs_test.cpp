// Element-wise kernels of operands that lie in memory as many short runs, beside loops in double: by machine
// code, which takes the runs where they are, and by tiles, into which they are gathered.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/cpu/machine_code/machine_code.h"
#include "ops/ops.h"

namespace caldera::testing {
namespace {

class RunsAreComputedBy : public ::testing::TestWithParam<cpu::MachineCodeUse> {
 protected:
  void SetUp() override { cpu::set_machine_code_use(GetParam()); }
  void TearDown() override { cpu::set_machine_code_use(before_); }

 private:
  cpu::MachineCodeUse before_ = cpu::machine_code_use();
};

/// Whole numbers below 64, whose sums and products here are exact.
std::vector<float> run_numbers(std::int64_t count, std::int64_t factor) {
  std::vector<float> all(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    all[static_cast<std::size_t>(i)] = static_cast<float>(i * factor % 101 % 64);
  return all;
}

LazyTensor run_tensor(const std::vector<float>& all, const Shape& shape) {
  return LazyTensor::from_vector(all, shape, Device::cpu());
}

TEST_P(RunsAreComputedBy, SwappedAxes) {
  for (const std::int64_t width : {15, 16, 17, 64, 100}) {
    for (const std::int64_t length : {1, 5, 130}) {
      constexpr std::int64_t kBatch = 3, kHeads = 4;
      const std::vector<float> x = run_numbers(kBatch * length * kHeads * width, 7);
      const std::vector<float> y = run_numbers(kHeads * length * width, 11);
      const LazyTensor swapped = permute_dims(run_tensor(x, {kBatch, length, kHeads, width}), {0, 2, 1, 3});
      const std::vector<float> result =
          (swapped * 2 + run_tensor(y, {kHeads, length, width})).to_vector<float>();
      std::int64_t wrong = 0, at = 0;
      for (std::int64_t b = 0; b < kBatch; ++b)
        for (std::int64_t h = 0; h < kHeads; ++h)
          for (std::int64_t t = 0; t < length; ++t)
            for (std::int64_t i = 0; i < width; ++i, ++at) {
              const auto from = static_cast<std::size_t>(((b * length + t) * kHeads + h) * width + i);
              const auto added = static_cast<std::size_t>((h * length + t) * width + i);
              wrong += result[static_cast<std::size_t>(at)] != 2 * x[from] + y[added];
            }
      EXPECT_EQ(wrong, 0) << "width " << width << ", length " << length;
    }
  }
}

/// Both halves of each run, of which two outputs are made in one kernel, in memory that operands may give.
TEST_P(RunsAreComputedBy, RotaryEmbeddings) {
  for (const std::int64_t half : {16, 20, 33}) {
    constexpr std::int64_t kHeads = 6, kLength = 70;
    const std::int64_t width = 2 * half;
    const std::vector<float> x = run_numbers(kHeads * kLength * width, 7);
    const std::vector<float> c = run_numbers(kLength * width, 5), s = run_numbers(kLength * width, 3);
    LazyTensor y = run_tensor(x, {kHeads, kLength, width}) * 1;
    y.eval();
    const LazyTensor turned =
        concatenate({-slice(y, -1, half, std::nullopt), slice(y, -1, std::nullopt, half)}, -1);
    y = y * run_tensor(c, {kLength, width}) + turned * run_tensor(s, {kLength, width});
    const std::vector<float> result = y.to_vector<float>();
    std::int64_t wrong = 0;
    for (std::int64_t row = 0; row < kHeads * kLength; ++row)
      for (std::int64_t i = 0; i < width; ++i) {
        const auto at = static_cast<std::size_t>(row * width + i);
        const auto other = static_cast<std::size_t>(row * width + (i + half) % width);
        const auto angle = static_cast<std::size_t>(row % kLength * width + i);
        wrong += result[at] != x[at] * c[angle] + (i < half ? -x[other] : x[other]) * s[angle];
      }
    EXPECT_EQ(wrong, 0) << "half " << half;
  }
}

INSTANTIATE_TEST_SUITE_P(MachineCodeAndTiles, RunsAreComputedBy,
                         ::testing::Values(cpu::MachineCodeUse::always, cpu::MachineCodeUse::never),
                         [](const auto& test) {
                           return test.param == cpu::MachineCodeUse::always ? "machine_code" : "tiles";
                         });

}  // namespace
}  // namespace caldera::testing
