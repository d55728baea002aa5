// Kernels on the CPU that read coordinates of their points, by machine code and by the interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/cpu/machine_code/machine_code.h"
#include "ops/ops.h"

namespace caldera::testing {
namespace {

/// Rows longer than a tile, of which a coordinate picks a number; and rows of which two are compared.
TEST(CpuCoordinates, OfLongRowsAreTakenByMachineCode) {
  if (cpu::machine_code_set().empty())
    GTEST_SKIP() << "built without AsmJit, or the processor has no AVX2: no machine code is made here";
  const cpu::MachineCodeUse use_before = cpu::machine_code_use();
  constexpr std::int64_t kRows = 5, kLength = 4099;
  std::vector<float> values(kRows * kLength);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 1009) / 256.0F;
  const std::vector<std::int32_t> labels{0, 4098, 1024, 77, 2047};
  const LazyTensor x = LazyTensor::from_vector(values, {kRows, kLength}, Device::cpu());
  const LazyTensor label = LazyTensor::from_vector(labels, {kRows}, Device::cpu());
  const auto row = [&](std::int64_t r) { return values.data() + r * kLength; };
  double expected = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    double sum = 0;
    for (std::int64_t i = 0; i < kLength; ++i) sum += std::exp(static_cast<double>(row(r)[i]));
    expected += std::log(sum) - static_cast<double>(row(r)[labels[static_cast<std::size_t>(r)]]);
  }
  const LazyTensor first = iota(x.shape(), 0, DType::i32, Device::cpu());
  const LazyTensor second = iota(x.shape(), 1, DType::i32, Device::cpu());
  for (const auto use : {cpu::MachineCodeUse::always, cpu::MachineCodeUse::never}) {
    cpu::set_machine_code_use(use);
    const std::uint64_t before = cpu::machine_code_stats().compiled;
    EXPECT_NEAR(mean_cross_entropy(x, label).item<float>(), expected / kRows, 2e-6);
    EXPECT_EQ(cpu::machine_code_stats().compiled > before, use == cpu::MachineCodeUse::always);
    const std::vector<float> seen = where(first + 2000 >= second, x, -1.0).to_vector<float>();
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t i = 0; i < kLength; ++i)
        ASSERT_EQ(seen[static_cast<std::size_t>(r * kLength + i)], r + 2000 >= i ? row(r)[i] : -1.0F);
  }
  cpu::set_machine_code_use(use_before);
}

}  // namespace
}  // namespace caldera::testing
