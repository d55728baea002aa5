// Products of bf16 by processors that multiply pairs of such numbers, beside sums in double.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/device/cpu/products/bf16_product.h"
#include "engine/tensor/dtype.h"
#include "tests/support/instruction_sets.h"

namespace caldera::testing {
namespace {

constexpr float kUntouched = 12345;

/// A matrix of bf16 at any strides, and its numbers.
struct Bf16Numbers {
  std::vector<BFloat16> memory;
  std::int64_t row = 0, column = 0;

  /// `coarse`: multiples of 1/8 in [-1, 1), whose products and sums are exact; or else of any size about 1.
  Bf16Numbers(std::int64_t rows, std::int64_t columns, std::int64_t row_stride, std::int64_t column_stride,
              std::uint64_t seed, bool coarse)
      : row(row_stride), column(column_stride) {
    const std::int64_t count = (rows - 1) * row + (columns - 1) * column + 1;
    for (std::int64_t i = 0; i < count; ++i) {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto number = static_cast<float>(static_cast<std::int64_t>(seed >> 40 & 0xffffU) - 32768);
      memory.push_back(to_bfloat16(coarse ? std::floor(number / 4096) / 8 : number / 32768));
    }
  }
  double at(std::int64_t i, std::int64_t j) const {
    return static_cast<double>(to_float(memory[static_cast<std::size_t>(i * row + j * column)]));
  }
  cpu::HalfMatrix matrix() const {
    return {reinterpret_cast<const std::byte*>(memory.data()), DType::bf16, row, column};
  }
};

enum class Layout : std::uint8_t { rows, columns, apart, one_row };

Bf16Numbers numbers_of(Layout layout, std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                       bool coarse) {
  switch (layout) {
    case Layout::rows:
      return {rows, columns, columns + 3, 1, seed, coarse};
    case Layout::columns:
      return {rows, columns, 1, rows + 1, seed, coarse};
    case Layout::apart:
      return {rows, columns, 2 * columns + 1, 2, seed, coarse};
    default:
      return {rows, columns, 0, 1, seed, coarse};
  }
}

/// C of two terms, to memory or by blocks.
void check_exact(std::int64_t m, std::int64_t n, std::int64_t k, Layout of_a, Layout of_b, bool by_blocks) {
  SCOPED_TRACE(::testing::Message() << m << " x " << k << " x " << n << ", layouts " << static_cast<int>(of_a)
                                    << " " << static_cast<int>(of_b) << ", blocks " << by_blocks);
  const Bf16Numbers a = numbers_of(of_a, m, k, 1, true), b = numbers_of(of_b, k, n, 2, true);
  const Bf16Numbers a2 = numbers_of(of_b, m, 3, 3, true), b2 = numbers_of(of_a, 3, n, 4, true);
  const std::vector<cpu::Bf16Term> terms{{k, a.matrix(), b.matrix(), 0.5F},
                                         {3, a2.matrix(), b2.matrix(), -2}};
  const std::int64_t c_row = n + 2;
  std::vector<float> c(static_cast<std::size_t>(m * c_row), kUntouched);
  const bool add = (m + n) % 2 == 0 && !by_blocks;
  if (by_blocks)
    cpu::multiply_bf16(m, n, terms, [&](const cpu::Bf16Block& block) {
      for (std::int64_t i = 0; i < block.rows; ++i)
        for (std::int64_t j = 0; j < block.columns; ++j)
          c[static_cast<std::size_t>((block.row + i) * c_row + block.column + j)] =
              block.data[i * block.row_stride + j];
    });
  else
    cpu::multiply_bf16(m, n, terms, c.data(), c_row, add);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < c_row; ++j) {
      double sum = static_cast<double>(j >= n || add ? kUntouched : 0);
      for (std::int64_t p = 0; p < k && j < n; ++p) sum += 0.5 * a.at(i, p) * b.at(p, j);
      for (std::int64_t p = 0; p < 3 && j < n; ++p) sum -= 2 * a2.at(i, p) * b2.at(p, j);
      wrong += static_cast<double>(c[static_cast<std::size_t>(i * c_row + j)]) != sum;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(CpuBf16Product, IsExactWhereSumsAreInEveryLayoutAndSize) {
  if (!cpu::has_bf16_products()) GTEST_SKIP() << "the processor has no AVX512_BF16 instructions";
  for (const Layout of_a : {Layout::rows, Layout::columns, Layout::apart, Layout::one_row})
    for (const Layout of_b : {Layout::rows, Layout::columns, Layout::apart, Layout::one_row})
      for (const std::int64_t k : {1, 2, 31, 32, 33, 65}) {
        for (const std::int64_t n : {1, 16, 17, 33, 129}) check_exact(1 + n % 9, n, k, of_a, of_b, k == 2);
        for (const std::int64_t m : {13, 14, 15, 57}) check_exact(m, 5 + m % 40, k, of_a, of_b, k > 31);
      }
}

TEST(CpuBf16Product, IsSharedByThreadsInBlocksOfRowsOrOfColumns) {
  if (!cpu::has_bf16_products()) GTEST_SKIP() << "the processor has no AVX512_BF16 instructions";
  check_exact(20, 1600, 300, Layout::rows, Layout::rows, true);
  check_exact(20, 1600, 300, Layout::columns, Layout::columns, false);
  check_exact(700, 200, 64, Layout::rows, Layout::columns, true);
  check_exact(700, 300, 64, Layout::columns, Layout::rows, true);
}

/// Operands of which only a part is packed at a time, with any numbers: what f32 rounds is far below this.
TEST(CpuBf16Product, IsPackedInPartsAndAsExactAsSumsOfFloats) {
  if (!cpu::has_bf16_products()) GTEST_SKIP() << "the processor has no AVX512_BF16 instructions";
  const auto check = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    const Bf16Numbers a = numbers_of(Layout::rows, m, k, 5, false);
    const Bf16Numbers b = numbers_of(Layout::columns, k, n, 6, false);
    const std::vector<cpu::Bf16Term> terms{{k, a.matrix(), b.matrix(), 1}};
    std::vector<float> c(static_cast<std::size_t>(m * n));
    cpu::multiply_bf16(m, n, terms, c.data(), n, false);
    double worst = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0, sizes = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += a.at(i, p) * b.at(p, j);
          sizes += std::abs(a.at(i, p) * b.at(p, j));
        }
        worst = std::max(worst,
                         std::abs(static_cast<double>(c[static_cast<std::size_t>(i * n + j)]) - sum) / sizes);
      }
    }
    EXPECT_LT(worst, 2e-6) << m << " x " << k << " x " << n;
  };
  check(5, 1100, 4096);
  check(1050, 6, 4096);
}

TEST(CpuBf16Product, KeepsInfinitiesAndNotNumbersInTheirRows) {
  if (!cpu::has_bf16_products()) GTEST_SKIP() << "the processor has no AVX512_BF16 instructions";
  Bf16Numbers a(16, 33, 33, 1, 1, true), b(33, 40, 40, 1, 2, true);
  a.memory[2 * 33 + 32] = to_bfloat16(std::numeric_limits<float>::infinity());
  a.memory[15 * 33] = to_bfloat16(std::numeric_limits<float>::quiet_NaN());
  for (BFloat16& x : b.memory) x = to_bfloat16(1);
  const std::vector<cpu::Bf16Term> terms{{33, a.matrix(), b.matrix(), 1}};
  std::vector<float> c(16 * 40);
  cpu::multiply_bf16(16, 40, terms, c.data(), 40, false);
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 40; ++j) {
      const float x = c[i * 40 + j];
      EXPECT_TRUE(i == 2 ? std::isinf(x) : i == 15 ? std::isnan(x) : std::isfinite(x)) << i << ", " << j;
    }
  }
}

TEST(CpuBf16Product, IsNoneWhereTheInstructionsAreForbidden) {
  std::int64_t found = 0;
  with_each_instruction_set([&](const char*) { found += cpu::has_bf16_products(); });
  EXPECT_EQ(found, std::int64_t{cpu::has_bf16_products()});
}

}  // namespace
}  // namespace caldera::testing
