#include "engine/device/cpu/products/matrix_tiles.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>

#include "engine/base/error.h"

namespace caldera::cpu {

#if defined(__x86_64__) && defined(__linux__)

#define CALDERA_MATRIX_TILES __attribute__((target("amx-tile,amx-bf16,avx512f")))

namespace {

constexpr std::int64_t kRegisterRows = 16;  // of 16 words

/// As the instruction that sets up the registers reads it (Intel SDM, volume 1, 18.2).
struct alignas(64) TileSizes {
  std::uint8_t palette = 1, start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<std::uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileSizes) == 64);

bool ask_for_matrix_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16 = 1U << 22, kTiles = 1U << 24;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16) == 0 || (d & kTiles) == 0) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_matrix_tiles() {
  static const bool kHas = ask_for_matrix_tiles();
  return kHas;
}

CALDERA_MATRIX_TILES void take_matrix_tiles() {
  static constexpr TileSizes kSizes;
  _tile_loadconfig(&kSizes);
}

CALDERA_MATRIX_TILES void release_matrix_tiles() { _tile_release(); }

namespace {

using Sums = float[kMatrixTileRows][kMatrixTileColumns];

__mmask16 first_columns(std::int64_t n) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(n, 0, kRegisterRows)) - 1);
}

/// Copies the part of C that there is to `sums`, or the other way.
CALDERA_MATRIX_TILES void copy_tile(const PanelTile& tile, Sums& sums, bool to_c) {
  for (std::int64_t v = 0; v < kMatrixTileColumns; v += kRegisterRows) {
    const __mmask16 mask = first_columns(tile.columns - v);
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      float* c = tile.c + r * tile.c_row + v;
      if (to_c)
        _mm512_mask_storeu_ps(c, mask, _mm512_load_ps(sums[r] + v));
      else
        _mm512_store_ps(sums[r] + v, _mm512_maskz_loadu_ps(mask, c));
    }
  }
}

/// C = alpha * sums, or that added to C.
CALDERA_MATRIX_TILES void finish_tile(const PanelTile& tile, const Sums& sums) {
  const __m512 alpha = _mm512_set1_ps(tile.alpha);
  for (std::int64_t v = 0; v < kMatrixTileColumns; v += kRegisterRows) {
    const __mmask16 mask = first_columns(tile.columns - v);
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      float* c = tile.c + r * tile.c_row + v;
      const __m512 sum = _mm512_load_ps(sums[r] + v);
      const __m512 result =
          tile.add ? _mm512_fmadd_ps(alpha, sum, _mm512_maskz_loadu_ps(mask, c)) : _mm512_mul_ps(alpha, sum);
      _mm512_mask_storeu_ps(c, mask, result);
    }
  }
}

constexpr std::int64_t kRegisterWords = kRegisterRows * kMatrixTileDepth;  // words of a register

/// Asks for what a register will be loaded from.
CALDERA_MATRIX_TILES inline void ask_for(const std::uint32_t* words) {
#pragma GCC unroll 16
  for (int row = 0; row < kRegisterRows; ++row) __builtin_prefetch(words + row * kMatrixTileDepth);
}

}  // namespace

CALDERA_MATRIX_TILES void multiply_matrix_tile(std::int64_t depth, const std::uint32_t* a,
                                               const std::uint32_t* b, const PanelTile& tile) {
  constexpr int kLine = 64, kRowOfB = static_cast<int>(kMatrixTileColumns * 4);
  const bool low = tile.rows > kRegisterRows, right = tile.columns > kRegisterRows;
  // Sums begin at C, and end there, where there is all of the tile. Parts of tiles have the same bits.
  const bool begins_at_c = tile.add && tile.alpha == 1;
  const bool is_whole = tile.rows == kMatrixTileRows && tile.columns == kMatrixTileColumns && tile.alpha == 1;
  alignas(64) Sums sums;
  float* c = is_whole ? tile.c : sums[0];
  const std::int64_t c_row = is_whole ? tile.c_row : kMatrixTileColumns;
  const auto bytes = static_cast<std::size_t>(c_row) * sizeof(float);
  float* c_low = c + kRegisterRows * c_row;
  if (begins_at_c) {
    if (!is_whole) copy_tile(tile, sums, false);
    _tile_loadd(0, c, bytes);
    if (right) _tile_loadd(1, c + kRegisterRows, bytes);
    if (low) _tile_loadd(2, c_low, bytes);
    if (low && right) _tile_loadd(3, c_low + kRegisterRows, bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  // The next registers' lines are asked for: where another program shares the core's nearest cache, loads
  // from it wait for the L2 cache, one register after the other.
  for (std::int64_t p = 0; p < depth; p += kMatrixTileDepth) {
    const std::uint32_t *next_a = a + 2 * kRegisterWords, *next_b = b + 2 * kRegisterWords;
    _tile_loadd(4, a, kLine);
    _tile_loadd(6, b, kRowOfB);
    ask_for(next_a);
    _tile_dpbf16ps(0, 4, 6);
    ask_for(next_b);
    if (right) {
      _tile_loadd(7, b + kRegisterRows, kRowOfB);
      _tile_dpbf16ps(1, 4, 7);
    }
    ask_for(next_b + kRegisterWords);
    if (low) {
      _tile_loadd(5, a + kRegisterWords, kLine);
      ask_for(next_a + kRegisterWords);
      _tile_dpbf16ps(2, 5, 6);
      if (right) _tile_dpbf16ps(3, 5, 7);
    }
    a = next_a;
    b = next_b;
  }
  _tile_stored(0, c, bytes);
  if (right) _tile_stored(1, c + kRegisterRows, bytes);
  if (low) _tile_stored(2, c_low, bytes);
  if (low && right) _tile_stored(3, c_low + kRegisterRows, bytes);
  if (is_whole) return;
  if (tile.alpha == 1)
    copy_tile(tile, sums, true);
  else
    finish_tile(tile, sums);
}

#else

bool has_matrix_tiles() { return false; }
void take_matrix_tiles() {}
void release_matrix_tiles() {}
void multiply_matrix_tile(std::int64_t, const std::uint32_t*, const std::uint32_t*, const PanelTile&) {
  throw Error("this processor has no matrix registers");
}

#endif

}  // namespace caldera::cpu
