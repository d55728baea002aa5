// Access to one operand in the order of an iteration space: linear positions turned into memory addresses by
// an odometer, so that no element costs a division.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace caldera::cpu {

/// Says how one operand is stored over an iteration space: its own dimensions, merged where its strides
/// allow, outermost first. Strides and offset in elements.
struct Access {
  static constexpr int kRank = kMaxRank + 2;  // two dims may be split in two
  int rank = 1;
  std::array<std::int64_t, kRank> dims{1};
  std::array<std::int64_t, kRank> strides{1};
  std::int64_t offset = 0;
  bool past_caches = false;  // whole lines that are scattered go past the caches

  std::int64_t inner_dim() const { return dims[static_cast<std::size_t>(rank - 1)]; }
  std::int64_t inner_stride() const { return strides[static_cast<std::size_t>(rank - 1)]; }
  /// Every position in one run of memory.
  bool contiguous() const { return rank == 1 && strides[0] == 1; }
};

Access make_access(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides,
                   std::int64_t offset);

/// A place in an Access. `element` is the offset of the current element.
struct Cursor {
  std::int64_t element = 0;
  std::array<std::int64_t, Access::kRank> at{};

  /// Moves to a linear position.
  void seek(const Access& access, std::int64_t position);
  /// Moves on by `n` <= what is left of the innermost run.
  void step(const Access& access, std::int64_t n) {
    const auto last = static_cast<std::size_t>(access.rank - 1);
    at[last] += n;
    element += n * access.strides[last];
    if (at[last] == access.dims[last]) carry(access, last);
  }
  /// Moves on by `rows` whole innermost runs, from the start of one.
  void step_rows(const Access& access, std::int64_t rows) {
    const auto row = static_cast<std::size_t>(access.rank - 2);
    at[row] += rows;
    element += rows * access.strides[row];
    if (at[row] == access.dims[row]) carry(access, row);
  }
  std::int64_t run_left(const Access& access) const {
    const auto last = static_cast<std::size_t>(access.rank - 1);
    return access.dims[last] - at[last];
  }

 private:
  void carry(const Access& access, std::size_t from);
};

/// out[0..n) = the next n elements; the cursor moves on. `base` is the operand's buffer, `size` its element.
void gather_tile(const Access& access, Cursor& cursor, const std::byte* base, std::size_t size,
                 std::byte* out, std::int64_t n);
/// out[0..n) = the places of the next n elements, as numbers of `type`; the cursor moves on.
void generate_tile(const Access& access, Cursor& cursor, DType type, std::byte* out, std::int64_t n);
/// The next n elements = in[0..n); the cursor moves on. Where lines go past the caches, other threads see
/// them after hwy::FlushStream().
void scatter_tile(const Access& access, Cursor& cursor, std::byte* base, std::size_t size,
                  const std::byte* in, std::int64_t n);
/// out[0..n) = value[0] n times.
void fill_tile(std::byte* out, const std::byte* value, std::size_t size, std::int64_t n);

}  // namespace caldera::cpu
