// Kernels on the CPU that read coordinates of their points, by machine code and by the interpreter; runs that
// tiles are filled with.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/cpu/machine_code/machine_code.h"
#include "engine/device/cpu/tiles/strided_runs.h"
#include "ops/ops.h"
#include "tests/support/instruction_sets.h"

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

/// Every element of each type and of many lengths, with nothing behind the last one that may be read.
template <class T>
void expect_runs(DType type) {
  for (const std::int64_t n : {1, 31, 32, 33, 63, 64, 65, 127, 128, 130, 1000}) {
    SCOPED_TRACE(std::string(name(type)) + ", " + std::to_string(n));
    const auto size = static_cast<std::size_t>(n), step = sizeof(T);
    std::vector<T> from(2 * size - 1), out(size + 1, T{7});
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i * 11 + 3);
    cpu::gather_every_other(reinterpret_cast<const std::byte*>(from.data()),
                            reinterpret_cast<std::byte*>(out.data()), n, step);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(out[i], from[2 * i]) << i;
    EXPECT_EQ(out[size], T{7});
    cpu::repeat_element(reinterpret_cast<const std::byte*>(&from[0]),
                        reinterpret_cast<std::byte*>(out.data()), n, step);
    EXPECT_EQ(std::count(out.begin(), out.end() - 1, from[0]), n);
    EXPECT_EQ(out[size], T{7});
    if constexpr (sizeof(T) >= 4)
      for (const std::int64_t first : {std::int64_t{0}, std::int64_t{-5}, std::int64_t{1} << 24})
        for (const std::int64_t apart : {0, 1, 224, -3}) {
          cpu::write_coordinates(type, first, apart, reinterpret_cast<std::byte*>(out.data()), n);
          for (std::int64_t i = 0; i < n; ++i)
            ASSERT_EQ(out[static_cast<std::size_t>(i)], static_cast<T>(first + i * apart)) << i;
          EXPECT_EQ(out[size], T{7});
        }
  }
}

TEST(CpuCoordinates, RunsOfTilesAreWrittenToTheirEndAndNoFurther) {
  with_each_instruction_set([](const char* set) {
    SCOPED_TRACE(set);
    expect_runs<std::uint8_t>(DType::u8);
    expect_runs<std::int16_t>(DType::i16);
    expect_runs<std::int32_t>(DType::i32);
    expect_runs<std::int64_t>(DType::i64);
    expect_runs<float>(DType::f32);
    expect_runs<double>(DType::f64);
  });
}

/// The distance from the first is more than i32 holds.
TEST(CpuCoordinates, OfRunsAcrossTheTypeAreExact) {
  constexpr std::int64_t kFirst = std::numeric_limits<std::int32_t>::min(), kApart = 100'000'000;
  with_each_instruction_set([](const char* set) {
    std::vector<std::int32_t> out(40);
    cpu::write_coordinates(DType::i32, kFirst, kApart, reinterpret_cast<std::byte*>(out.data()), 40);
    for (std::int64_t i = 0; i < 40; ++i)
      ASSERT_EQ(out[static_cast<std::size_t>(i)], kFirst + i * kApart) << set << ", " << i;
  });
}

}  // namespace
}  // namespace caldera::testing
