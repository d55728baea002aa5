// Copies that run along one axis of what they read and along another one of what they write, of each size of
// elements and by each instruction set, beside loops.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/cpu/machine_code/machine_code.h"
#include "engine/device/cpu/tiles/turned_copy.h"
#include "ops/ops.h"
#include "tests/support/instruction_sets.h"

namespace caldera::testing {
namespace {

using Extents = std::vector<std::int64_t>;

/// Whether the copy of (outer, rows, columns) from (outer, columns, rows + gap) is right, and touches nothing
/// else.
template <class T>
void check(const char* instruction_set, std::int64_t outer, std::int64_t rows, std::int64_t columns,
           std::int64_t gap, int threads) {
  SCOPED_TRACE(::testing::Message() << instruction_set << " " << sizeof(T) << " bytes " << outer << " x "
                                    << rows << " x " << columns << ", gap " << gap);
  const std::int64_t from_row = rows + gap;
  const auto copy =
      cpu::TurnedCopy::of(Extents{outer, rows, columns}, Extents{columns * from_row, 1, from_row},
                          Extents{rows * columns, columns, 1}, gap, 16, sizeof(T));
  ASSERT_TRUE(copy);
  std::vector<T> from(static_cast<std::size_t>(outer * columns * from_row + gap));
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<T>(i * 2654435761U >> 7);
  const auto count = static_cast<std::size_t>(outer * rows * columns);
  std::vector<T> memory(count + 32 + 64, T{99});
  // On a line of the cache, where whole lines may go past it.
  T* to = memory.data();
  while (reinterpret_cast<std::uintptr_t>(to) % 64 != 0) ++to;
  copy->run(reinterpret_cast<const std::byte*>(from.data()), reinterpret_cast<std::byte*>(to), threads);
  for (std::size_t i = 0; i < 16; ++i) {
    ASSERT_EQ(to[i], T{99});
    ASSERT_EQ(to[16 + count + i], T{99});
  }
  std::int64_t wrong = 0;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        wrong += to[16 + (o * rows + i) * columns + j] !=
                 from[static_cast<std::size_t>(gap + (o * columns + j) * from_row + i)];
  EXPECT_EQ(wrong, 0);
}

template <class T>
void check_all(const char* name) {
  check<T>(name, 1, 64, 64, 0, 1);
  check<T>(name, 1, 67, 93, 5, 2);
  check<T>(name, 3, 130, 40, 0, 2);
  check<T>(name, 7, 16, 61, 1, 3);
  check<T>(name, 20, 17, 21, 0, 2);
  // Past the caches, which takes 8 MiB.
  check<T>(name, 1, 1024 + 16, (std::int64_t{8} << 20) / 1024 / static_cast<std::int64_t>(sizeof(T)), 0, 2);
}

TEST(CpuTurnedCopy, PutsEachElementInItsPlaceByEachInstructionSet) {
  with_each_instruction_set([](const char* name) {
    check_all<std::uint8_t>(name);
    check_all<std::uint16_t>(name);
    check_all<std::uint32_t>(name);
    check_all<std::uint64_t>(name);
  });
}

TEST(CpuTurnedCopy, IsNoneWhereOneAxisSuitsBothSidesOrLittleIsMoved) {
  const auto is_one = [](const Extents& dims, const Extents& from, const Extents& to) {
    return cpu::TurnedCopy::of(dims, from, to, 0, 0, 4).has_value();
  };
  EXPECT_TRUE(is_one({64, 64}, {1, 64}, {64, 1}));
  EXPECT_FALSE(is_one({64, 64}, {64, 1}, {64, 1}));
  EXPECT_FALSE(is_one({64, 64}, {1, -64}, {64, 1}));
  EXPECT_FALSE(is_one({64, 64}, {1, 64}, {1, 64}));
  EXPECT_FALSE(is_one({1024, 8}, {1, 1024}, {8, 1}));
  EXPECT_FALSE(is_one({16, 16}, {1, 16}, {16, 1}));
  EXPECT_FALSE(is_one({4096}, {2}, {1}));
}

/// transpose(x) * 2 + y of a type that has all integers up to 255 exactly.
void check_computed(std::int64_t rows, std::int64_t columns, DType type) {
  SCOPED_TRACE(::testing::Message() << name(type) << ", " << rows << " x " << columns);
  const auto numbers = [](std::int64_t count, std::int64_t factor) {
    std::vector<float> all(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
      all[static_cast<std::size_t>(i)] = static_cast<float>(i * factor % 101 % 63);
    return all;
  };
  const std::vector<float> from = numbers(rows * columns, 7), added = numbers(rows * columns, 5);
  const auto tensor = [&](const std::vector<float>& all, const Shape& shape) {
    LazyTensor stored = astype(LazyTensor::from_vector(all, shape, Device::cpu()), type);
    stored.eval();
    return stored;
  };
  const LazyTensor x = tensor(from, {columns, rows}), y = tensor(added, {rows, columns});
  const std::vector<float> result = astype(transpose(x) * 2 + y, DType::f32).to_vector<float>();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(i * columns + j);
      wrong += result[at] != 2 * from[static_cast<std::size_t>(j * rows + i)] + added[at];
    }
  EXPECT_EQ(wrong, 0);
}

TEST(CpuTurnedCopy, TransposedOperandsAreComputedWithInBlocks) {
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::u8}) {
    for (const std::int64_t rows : {3, 16, 33, 100, 1000})
      for (const std::int64_t columns : {15, 16, 48, 131, 160}) check_computed(rows, columns, type);
  }
  // Past the caches.
  check_computed(2050, 1040, DType::f32);
  check_computed(1030, 1056, DType::f64);
  check_computed(2050, 1045, DType::f32);
}

/// (transpose(x) + transpose(z)) * 2 of batches, where nothing runs along the result's innermost dim.
void check_only_across(std::int64_t batch, std::int64_t rows, std::int64_t columns, DType from, DType to) {
  SCOPED_TRACE(::testing::Message() << name(from) << " to " << name(to) << ", " << batch << " x " << rows
                                    << " x " << columns);
  std::vector<float> values(static_cast<std::size_t>(batch * rows * columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 101 % 31);
  LazyTensor x = astype(LazyTensor::from_vector(values, {batch, columns, rows}, Device::cpu()), from);
  LazyTensor z = x + 1;
  eval({x, z});
  const LazyTensor sum = astype((transpose(x) + transpose(z)) * 2, to);
  const std::vector<float> result = astype(sum, DType::f32).to_vector<float>();
  std::int64_t wrong = 0;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        const float value = values[static_cast<std::size_t>((b * columns + j) * rows + i)];
        wrong += result[static_cast<std::size_t>((b * rows + i) * columns + j)] != 4 * value + 2;
      }
  EXPECT_EQ(wrong, 0);
}

TEST(CpuTurnedCopy, ResultsAreTurnedWhereAllOperandsAreTransposed) {
  const cpu::MachineCodeUse before = cpu::machine_code_use();
  for (const auto use : {cpu::MachineCodeUse::always, cpu::MachineCodeUse::never}) {
    cpu::set_machine_code_use(use);
    for (const DType from : {DType::f32, DType::bf16, DType::i32})
      for (const DType to : {DType::f32, DType::f16}) {
        check_only_across(1, 64, 128, from, to);
        check_only_across(3, 37, 85, from, to);
        check_only_across(2, 16, 300, from, to);
      }
    check_only_across(1, 1040, 2054, DType::f32, DType::f32);  // past the caches
  }
  cpu::set_machine_code_use(before);
}

/// transpose(pad(x)): blocks of which one operand's rows are elsewhere.
void check_padded(std::int64_t rows, std::int64_t columns, DType type) {
  SCOPED_TRACE(::testing::Message() << name(type) << ", " << rows << " x " << columns);
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7 % 31 + 1);
  const LazyTensor x = astype(LazyTensor::from_vector(values, {rows, columns}, Device::cpu()), type).eval();
  const LazyTensor turned = transpose(pad(x, {1, 1}, {2, 2})).eval();
  const std::vector<float> result = astype(turned, DType::f32).to_vector<float>();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      wrong += result[static_cast<std::size_t>((j + 1) * (rows + 3) + i + 1)] !=
               values[static_cast<std::size_t>(i * columns + j)];
  EXPECT_EQ(wrong, 0);
}

TEST(CpuTurnedCopy, PaddedOperandsAreTurned) {
  const cpu::MachineCodeUse before = cpu::machine_code_use();
  cpu::set_machine_code_use(cpu::MachineCodeUse::always);
  for (const DType type : {DType::f16, DType::f32, DType::bf16}) {
    for (const std::int64_t columns : {13, 29, 45, 61}) {
      for (const std::int64_t rows : {15, 17, 61}) check_padded(rows, columns, type);
    }
  }
  cpu::set_machine_code_use(before);
}

}  // namespace
}  // namespace caldera::testing
