// TurnedCopy: a copy that runs along one axis of what it reads and along another one of what it writes, as
// that of a transpose does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace caldera::cpu {

/// Turns a block: to[i * to_row + j] = from[j * from_row + i] for i in [0, rows), j in [0, columns), elements
/// of `size` bytes. `past_caches` asks for a way past them, which rows take that begin with a whole line of
/// 64 bytes; hwy::FlushStream() ends that.
void turn_block(const std::byte* from, std::int64_t from_row, std::byte* to, std::int64_t to_row,
                std::int64_t rows, std::int64_t columns, std::size_t size, bool past_caches = false);

/// Rows of `bytes` that are copied, with strides in bytes.
struct CopiedRows {
  const std::byte* from = nullptr;
  std::int64_t from_row = 0;
  std::byte* to = nullptr;
  std::int64_t to_row = 0;
  std::int64_t rows = 0, bytes = 0;
  /// Asks for a way past the caches, which rows of whole lines of 64 bytes take; hwy::FlushStream() ends
  /// that.
  bool past_caches = false;
};
void copy_rows(const CopiedRows& copied);

/// Copies squares whose sides are a cache line, so that lines are read and written whole, and past the caches
/// where the result is larger than they are.
class TurnedCopy {
 public:
  /// Makes one for elements of `size` bytes over a space of `dims`, with strides in elements, outermost
  /// first; nullopt where the copy is no such one, or its squares would be few. Offsets are where the space
  /// begins.
  static std::optional<TurnedCopy> of(std::span<const std::int64_t> dims,
                                      std::span<const std::int64_t> from_strides,
                                      std::span<const std::int64_t> to_strides, std::int64_t from_offset,
                                      std::int64_t to_offset, std::size_t size);

  /// Copies between buffers, which do not overlap, on up to `threads` threads.
  void run(const std::byte* from, std::byte* to, int threads) const;

 private:
  struct Axis {
    std::int64_t extent = 1, from = 0, to = 0;
  };
  /// One of the outer places, as offsets of both sides.
  void seek(std::int64_t outer, std::int64_t& from, std::int64_t& to) const;

  std::vector<Axis> outer_;
  std::int64_t outer_count_ = 1;
  Axis read_, written_;  // along which elements are neighbours
  std::int64_t from_offset_ = 0, to_offset_ = 0;
  std::size_t size_ = 4;
};

}  // namespace caldera::cpu
