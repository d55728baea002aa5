#include "engine/device/cpu/tiles/turned_copy.h"

#include <algorithm>
#include <cstring>

#include "engine/device/cpu/host/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/tiles/turned_copy.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/turned_squares-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Columns of what is written that are gone through together: as many rows are read side by side, and so much
/// of a row is written at once. Of 2048 x 2048 floats, 16 MiB, past the caches, two cores of a Zen 4: 16
/// columns 0.83 ms, 64 0.63, as long as a copy takes.
template <class T>
constexpr std::int64_t kColumnsTogether = sizeof(T) == 8 ? 32 : 64;

/// A square as wide as the registers are, and one of 16 bytes.
template <bool kPastCaches, class T>
struct Square {
  static constexpr std::int64_t kRows = kSquareRows<T>, kColumns = kSquareColumns<T>;
  using Inexact = Square<false, T>;
  static HWY_INLINE void turn(const T* from, std::int64_t from_row, T* to, std::int64_t to_row) {
    turn_square<kPastCaches>(from, from_row, to, to_row);
  }
};
template <class T>
struct NarrowSquare {
  static constexpr std::int64_t kRows = 16 / sizeof(T), kColumns = kRows;
  using Inexact = NarrowSquare;
  static HWY_INLINE void turn(const T* from, std::int64_t from_row, T* to, std::int64_t to_row) {
    if constexpr (kHasNarrow<T>) turn_narrow(from, from_row, to, to_row);
  }
};

/// Goes square by square along a few rows of what is written, then along what is read, then on to the next
/// columns. Squares at the end reach back over what is copied. At least one square.
template <class S, class T>
void turn_squares(const T* from, std::int64_t from_row, T* to, std::int64_t to_row, std::int64_t rows,
                  std::int64_t columns) {
  for (std::int64_t first = 0; first < columns; first += kColumnsTogether<T>) {
    const std::int64_t end = std::min(columns, first + kColumnsTogether<T>);
    for (std::int64_t r = 0; r < rows; r += S::kRows) {
      const std::int64_t i = std::min(r, rows - S::kRows);
      std::int64_t j = first;
      for (; j + S::kColumns <= end; j += S::kColumns)
        S::turn(from + j * from_row + i, from_row, to + i * to_row + j, to_row);
      if (j == end) continue;
      j = columns - S::kColumns;
      S::Inexact::turn(from + j * from_row + i, from_row, to + i * to_row + j, to_row);
    }
  }
}

/// Past the caches: where rows begin with a whole line.
template <bool kPastCaches, class T>
void turn(const T* from, std::int64_t from_row, T* to, std::int64_t to_row, std::int64_t rows,
          std::int64_t columns) {
  using Wide = Square<kPastCaches, T>;
  using Narrow = NarrowSquare<T>;
  if (rows >= Wide::kRows && columns >= Wide::kColumns)
    return turn_squares<Wide>(from, from_row, to, to_row, rows, columns);
  if (kHasNarrow<T> && rows >= Narrow::kRows && columns >= Narrow::kColumns)
    return turn_squares<Narrow>(from, from_row, to, to_row, rows, columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = 0; k < columns; ++k) to[i * to_row + k] = from[k * from_row + i];
}

/// rows x columns of what is written, whose elements have `size` bytes.
void turn_bytes(const std::byte* from, std::int64_t from_row, std::byte* to, std::int64_t to_row,
                std::int64_t rows, std::int64_t columns, std::size_t size, bool past_caches) {
  const auto typed = [&](auto element) {
    using T = decltype(element);
    const auto* source = reinterpret_cast<const T*>(from);
    auto* result = reinterpret_cast<T*>(to);
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(to) % 64 == 0 && to_row % kSquareColumns<T> == 0;
    if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 && past_caches && is_aligned)
      return turn<true>(source, from_row, result, to_row, rows, columns);
    turn<false>(source, from_row, result, to_row, rows, columns);
  };
  switch (size) {
    case 1:
      return typed(std::uint8_t{});
    case 2:
      return typed(std::uint16_t{});
    case 4:
      return typed(std::uint32_t{});
    default:
      return typed(std::uint64_t{});
  }
}

/// kStreams: whole lines, past the caches. The last vector of a row may reach back over what is copied.
template <bool kStreams>
void copy_vectors(const CopiedRows& copied) {
  const hn::CappedTag<std::uint8_t, 64> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t last = copied.bytes - lanes;
  for (std::int64_t i = 0; i < copied.rows; ++i) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(copied.from + i * copied.from_row);
    auto* to = reinterpret_cast<std::uint8_t*>(copied.to + i * copied.to_row);
    for (std::int64_t at = 0; at <= last; at += lanes) {
      if constexpr (kStreams)
        hn::Stream(hn::LoadU(d, from + at), d, to + at);
      else
        hn::StoreU(hn::LoadU(d, from + at), d, to + at);
    }
    if (!kStreams && copied.bytes % lanes != 0) hn::StoreU(hn::LoadU(d, from + last), d, to + last);
  }
}

template <std::size_t kBytes>
void copy_short(const CopiedRows& copied) {
  for (std::int64_t i = 0; i < copied.rows; ++i)
    std::memcpy(copied.to + i * copied.to_row, copied.from + i * copied.from_row, kBytes);
}

void copy_rows_of(const CopiedRows& copied) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::CappedTag<std::uint8_t, 64>()));
  const bool in_lines = reinterpret_cast<std::uintptr_t>(copied.to) % 64 == 0 && copied.to_row % 64 == 0 &&
                        copied.bytes % 64 == 0;
  if (copied.past_caches && in_lines) return copy_vectors<true>(copied);
  if (copied.bytes >= lanes) return copy_vectors<false>(copied);
  if (copied.bytes == 16) return copy_short<16>(copied);
  if (copied.bytes == 32) return copy_short<32>(copied);
  for (std::int64_t i = 0; i < copied.rows; ++i)
    std::memcpy(copied.to + i * copied.to_row, copied.from + i * copied.from_row,
                static_cast<std::size_t>(copied.bytes));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(turn_bytes);
HWY_EXPORT(copy_rows_of);
namespace {

constexpr std::int64_t kSide = 16;
/// Elements below which a copy is not worth another way.
constexpr std::int64_t kFewest = 4096;
/// Bytes of a result above which it goes past the caches: 2048 x 2048 floats, two threads, 2.0 ms into them
/// and 1.0 past them; 1024 x 1024 0.27 and 0.33.
constexpr std::int64_t kLargeResult = std::int64_t{8} << 20;

}  // namespace

void turn_block(const std::byte* from, std::int64_t from_row, std::byte* to, std::int64_t to_row,
                std::int64_t rows, std::int64_t columns, std::size_t size, bool past_caches) {
  HWY_DYNAMIC_DISPATCH(turn_bytes)(from, from_row, to, to_row, rows, columns, size, past_caches);
}

void copy_rows(const CopiedRows& copied) { HWY_DYNAMIC_DISPATCH(copy_rows_of)(copied); }

std::optional<TurnedCopy> TurnedCopy::of(std::span<const std::int64_t> dims,
                                         std::span<const std::int64_t> from_strides,
                                         std::span<const std::int64_t> to_strides, std::int64_t from_offset,
                                         std::int64_t to_offset, std::size_t size) {
  if (dims.size() < 2 || to_strides.back() != 1 || from_strides.back() < kSide || dims.back() < kSide)
    return std::nullopt;
  TurnedCopy copy;
  std::int64_t elements = 1;
  bool is_found = false;
  for (std::size_t d = 0; d + 1 < dims.size(); ++d) {
    const Axis axis{dims[d], from_strides[d], to_strides[d]};
    elements *= axis.extent;
    if (!is_found && axis.from == 1 && axis.extent >= kSide && axis.to >= kSide) {
      copy.read_ = axis;
      is_found = true;
    } else {
      copy.outer_.push_back(axis);
      copy.outer_count_ *= axis.extent;
    }
  }
  if (!is_found || elements * dims.back() < kFewest) return std::nullopt;
  copy.written_ = {dims.back(), from_strides.back(), 1};
  copy.from_offset_ = from_offset;
  copy.to_offset_ = to_offset;
  copy.size_ = size;
  return copy;
}

void TurnedCopy::seek(std::int64_t outer, std::int64_t& from, std::int64_t& to) const {
  from = from_offset_;
  to = to_offset_;
  for (auto axis = outer_.rbegin(); axis != outer_.rend(); ++axis) {
    const std::int64_t at = outer % axis->extent;
    outer /= axis->extent;
    from += at * axis->from;
    to += at * axis->to;
  }
}

void TurnedCopy::run(const std::byte* from, std::byte* to, int threads) const {
  const auto size = static_cast<std::int64_t>(size_);
  const bool past_caches = outer_count_ * read_.extent * written_.extent * size >= kLargeResult;
  // Pieces of an outer place are rows of the result, in whole squares.
  const std::int64_t squares = (read_.extent + kSide - 1) / kSide;
  const std::int64_t pieces = outer_count_ >= threads ? 1 : std::min<std::int64_t>(threads, squares);
  parallel_ranges(outer_count_ * pieces, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      std::int64_t source = 0, result = 0;
      seek(t / pieces, source, result);
      const std::int64_t piece = t % pieces;
      const std::int64_t first = squares * piece / pieces * kSide;
      const std::int64_t last = std::min(read_.extent, squares * (piece + 1) / pieces * kSide);
      HWY_DYNAMIC_DISPATCH(turn_bytes)
      (from + (source + first) * size, written_.from, to + (result + first * read_.to) * size, read_.to,
       last - first, written_.extent, size_, past_caches);
    }
    if (past_caches) hwy::FlushStream();
  });
}

}  // namespace caldera::cpu
#endif
