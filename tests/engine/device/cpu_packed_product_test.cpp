// Products by packed tiles, in f32 and of pairs of bf16 by processors that have such, beside sums in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/device/cpu/products/packed_product.h"
#include "engine/tensor/dtype.h"
#include "tests/support/instruction_sets.h"

namespace caldera::testing {
namespace {

constexpr float kUntouched = 12345;

/// A matrix of any strides, and its numbers, all of which bf16 holds if coarse.
struct TileNumbers {
  DType type = DType::f32;
  std::vector<float> numbers;
  std::vector<std::byte> memory;
  std::int64_t row = 0, column = 0;

  /// `coarse`: multiples of 1/8 in [-1, 1), whose products and sums are exact; or else of any size about 1.
  TileNumbers(DType of, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
              std::int64_t column_stride, std::uint64_t seed, bool coarse)
      : type(of), row(row_stride), column(column_stride) {
    const std::int64_t count = (rows - 1) * row + (columns - 1) * column + 1;
    for (std::int64_t i = 0; i < count; ++i) {
      seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto number = static_cast<float>(static_cast<std::int64_t>(seed >> 40 & 0xffffU) - 32768);
      put(i, coarse ? std::floor(number / 4096) / 8 : number / 32768);
    }
  }
  void put(std::int64_t place, float number) {
    if (type == DType::f32) return store(place, number, number);
    if (type == DType::f16) return store(place, to_half(number), to_float(to_half(number)));
    store(place, to_bfloat16(number), to_float(to_bfloat16(number)));
  }
  double at(std::int64_t i, std::int64_t j) const {
    return static_cast<double>(numbers[static_cast<std::size_t>(i * row + j * column)]);
  }
  cpu::FloatMatrix matrix() const { return {memory.data(), type, row, column}; }

 private:
  template <class T>
  void store(std::int64_t place, T element, float number) {
    const auto at = static_cast<std::size_t>(place);
    numbers.resize(std::max(numbers.size(), at + 1));
    memory.resize(std::max(memory.size(), (at + 1) * sizeof(T)));
    numbers[at] = number;
    std::memcpy(&memory[at * sizeof(T)], &element, sizeof(T));
  }
};

enum class Layout : std::uint8_t { rows, columns, apart, one_row };

TileNumbers numbers_of(DType type, Layout layout, std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                       bool coarse) {
  switch (layout) {
    case Layout::rows:
      return {type, rows, columns, columns + 3, 1, seed, coarse};
    case Layout::columns:
      return {type, rows, columns, 1, rows + 1, seed, coarse};
    case Layout::apart:
      return {type, rows, columns, 2 * columns + 1, 2, seed, coarse};
    default:
      return {type, rows, columns, 0, 1, seed, coarse};
  }
}

/// Tiles, and the types of operands that they are tried with.
struct TileKind {
  const char* name;
  const cpu::PanelTiles* tiles;
  DType a, b;
};

std::vector<TileKind> tile_kinds() {
  std::vector<TileKind> kinds;
  const cpu::PanelTiles* pairs = cpu::find_bf16_pair_tiles();
  if (pairs != nullptr) kinds.push_back({"pairs of bf16", pairs, DType::bf16, DType::bf16});
  if (const cpu::PanelTiles* tiles = cpu::find_bf16_tiles(); tiles != pairs)
    kinds.push_back({"matrices of bf16", tiles, DType::bf16, DType::bf16});
  if (const cpu::PanelTiles* tiles = cpu::find_f32_tiles()) {
    kinds.push_back({"f32", tiles, DType::f32, DType::f32});
    kinds.push_back({"f32 of f32 and f16", tiles, DType::f32, DType::f16});
    kinds.push_back({"f32 of bf16 and f32", tiles, DType::bf16, DType::f32});
  }
  return kinds;
}

/// C of two terms, to memory or by blocks.
void check_exact(const TileKind& kind, std::int64_t m, std::int64_t n, std::int64_t k, Layout of_a,
                 Layout of_b, bool by_blocks) {
  SCOPED_TRACE(::testing::Message() << kind.name << ", " << m << " x " << k << " x " << n << ", layouts "
                                    << static_cast<int>(of_a) << " " << static_cast<int>(of_b) << ", blocks "
                                    << by_blocks);
  const TileNumbers a = numbers_of(kind.a, of_a, m, k, 1, true), b = numbers_of(kind.b, of_b, k, n, 2, true);
  const TileNumbers a2 = numbers_of(kind.a, of_b, m, 3, 3, true);
  const TileNumbers b2 = numbers_of(kind.b, of_a, 3, n, 4, true);
  const std::vector<cpu::ProductTerm> terms{{k, a.matrix(), b.matrix(), 0.5F},
                                            {3, a2.matrix(), b2.matrix(), -2}};
  const std::int64_t c_row = n + 2;
  std::vector<float> c(static_cast<std::size_t>(m * c_row), kUntouched);
  const bool add = (m + n) % 2 == 0 && !by_blocks;
  if (by_blocks)
    cpu::multiply_packed(*kind.tiles, m, n, terms, [&](const cpu::ProductBlock& block) {
      for (std::int64_t i = 0; i < block.rows; ++i)
        for (std::int64_t j = 0; j < block.columns; ++j)
          c[static_cast<std::size_t>((block.row + i) * c_row + block.column + j)] =
              block.data[i * block.row_stride + j];
    });
  else
    cpu::multiply_packed(*kind.tiles, m, n, terms, c.data(), c_row, add);
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

constexpr const char* kNoTiles = "the processor has no AVX-512 instructions";

TEST(CpuPackedProduct, IsExactWhereSumsAreInEveryLayoutAndSize) {
  if (tile_kinds().empty()) GTEST_SKIP() << kNoTiles;
  for (const TileKind& kind : tile_kinds())
    for (const Layout of_a : {Layout::rows, Layout::columns, Layout::apart, Layout::one_row})
      for (const Layout of_b : {Layout::rows, Layout::columns, Layout::apart, Layout::one_row})
        for (const std::int64_t k : {1, 2, 31, 32, 33, 65}) {
          for (const std::int64_t n : {1, 16, 17, 33, 129})
            check_exact(kind, 1 + n % 9, n, k, of_a, of_b, k == 2);
          for (const std::int64_t m : {13, 14, 15, 57})
            check_exact(kind, m, 5 + m % 40, k, of_a, of_b, k > 31);
        }
}

TEST(CpuPackedProduct, IsSharedByThreadsInBlocksOfRowsOrOfColumns) {
  if (tile_kinds().empty()) GTEST_SKIP() << kNoTiles;
  for (const TileKind& kind : tile_kinds()) {
    check_exact(kind, 20, 1600, 300, Layout::rows, Layout::rows, true);
    check_exact(kind, 20, 1600, 300, Layout::columns, Layout::columns, false);
    check_exact(kind, 700, 200, 64, Layout::rows, Layout::columns, true);
    check_exact(kind, 700, 300, 64, Layout::columns, Layout::rows, true);
    // So many rows that threads take strips of them in turns; and none.
    check_exact(kind, 1103, 45, 33, Layout::rows, Layout::columns, false);
    check_exact(kind, 1103, 45, 33, Layout::columns, Layout::rows, true);
    check_exact(kind, 0, 6, 4, Layout::rows, Layout::rows, false);
    check_exact(kind, 6, 0, 4, Layout::rows, Layout::rows, true);
  }
}

/// Sums of more terms than are multiplied together, of which a part is packed at a time, with any numbers:
/// what f32 rounds is far below this.
TEST(CpuPackedProduct, IsPackedInPartsAndAsExactAsSumsOfFloats) {
  if (tile_kinds().empty()) GTEST_SKIP() << kNoTiles;
  const auto check = [](const TileKind& kind, std::int64_t m, std::int64_t n, std::int64_t k) {
    const TileNumbers a = numbers_of(kind.a, Layout::rows, m, k, 5, false);
    const TileNumbers b = numbers_of(kind.b, Layout::columns, k, n, 6, false);
    const std::vector<cpu::ProductTerm> terms{{k, a.matrix(), b.matrix(), 1}};
    std::vector<float> c(static_cast<std::size_t>(m * n));
    cpu::multiply_packed(*kind.tiles, m, n, terms, c.data(), n, false);
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
    EXPECT_LT(worst, 2e-6) << kind.name << ": " << m << " x " << k << " x " << n;
  };
  for (const TileKind& kind : tile_kinds()) {
    check(kind, 5, 1100, 4096);
    check(kind, 1050, 6, 4096);
    check(kind, 3, 40, 769);
  }
}

TEST(CpuPackedProduct, KeepsInfinitiesAndNotNumbersInTheirRows) {
  if (tile_kinds().empty()) GTEST_SKIP() << kNoTiles;
  for (const TileKind& kind : tile_kinds()) {
    TileNumbers a(kind.a, 16, 33, 33, 1, 1, true), b(kind.b, 33, 40, 40, 1, 2, true);
    a.put(2 * 33 + 32, std::numeric_limits<float>::infinity());
    a.put(15 * 33, std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t i = 0; i < 33 * 40; ++i) b.put(i, 1);
    const std::vector<cpu::ProductTerm> terms{{33, a.matrix(), b.matrix(), 1}};
    std::vector<float> c(16 * 40);
    cpu::multiply_packed(*kind.tiles, 16, 40, terms, c.data(), 40, false);
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t j = 0; j < 40; ++j) {
        const float x = c[i * 40 + j];
        EXPECT_TRUE(i == 2    ? std::isinf(x)
                    : i == 15 ? std::isnan(x)
                              : std::isfinite(x))
            << kind.name << ": " << i << ", " << j;
      }
    }
  }
}

/// The bits of an element follow from its row and its column, so that neither threads nor the other rows of a
/// batch change them.
TEST(CpuPackedProduct, HasTheSameBitsInAnyTileAndOnAnyThreads) {
  if (tile_kinds().empty()) GTEST_SKIP() << kNoTiles;
  for (const TileKind& kind : tile_kinds()) {
    const std::int64_t m = 61, n = 300, k = 900;
    const TileNumbers a = numbers_of(kind.a, Layout::rows, m, k, 7, false);
    const TileNumbers b = numbers_of(kind.b, Layout::rows, k, n, 8, false);
    std::vector<float> whole(static_cast<std::size_t>(m * n)), part(whole.size());
    const cpu::ProductTerm term{k, a.matrix(), b.matrix(), 1};
    cpu::multiply_packed(*kind.tiles, m, n, {&term, 1}, whole.data(), n, false);
    for (const std::int64_t rows : {1, 5, 14, 33}) {
      cpu::multiply_packed(*kind.tiles, rows, n, {&term, 1}, part.data(), n, false);
      EXPECT_TRUE(std::equal(part.begin(), part.begin() + rows * n, whole.begin())) << kind.name << rows;
    }
  }
}

TEST(CpuPackedProduct, IsNoneWhereTheInstructionsAreForbidden) {
  std::int64_t pairs = 0, floats = 0, sets = 0;
  with_each_instruction_set([&](const char*) {
    pairs += cpu::find_bf16_tiles() != nullptr;
    floats += cpu::find_f32_tiles() != nullptr;
    ++sets;
  });
  EXPECT_EQ(pairs, std::int64_t{cpu::find_bf16_tiles() != nullptr});
  EXPECT_EQ(floats, std::int64_t{cpu::find_f32_tiles() != nullptr});
  EXPECT_GT(sets, floats);
}

}  // namespace
}  // namespace caldera::testing
