// KeyRows: rows of keys or values as they are stored, and what a few queries compute with them. Rows are read
// once, and widened in registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caldera::cpu {

/// Names how the numbers of a row are stored: dense, one after the other.
enum class RowForm : std::uint8_t { f32, f16, bf16, q8_0 };

/// Rows of a block of keys. Row n begins at `data + n * stride` bytes; with `numbers` at
/// `data + numbers[n * number_stride] * stride`, and numbers outside of [0, count) stand for a row of NaN.
struct KeyRows {
  const std::byte* data = nullptr;
  std::int64_t stride = 0;
  RowForm form = RowForm::f32;
  const std::int32_t* numbers = nullptr;
  std::int64_t number_stride = 0;
  std::int64_t count = 0;
  const float* halves = nullptr;  ///< half_table(), for q8_0

  /// The rows from `first` on.
  KeyRows from(std::int64_t first) const {
    KeyRows rows = *this;
    if (numbers != nullptr)
      rows.numbers += first * number_stride;
    else
      rows.data += first * stride;
    return rows;
  }
  /// Returns where row n begins.
  const std::byte* at(std::int64_t n) const {
    if (numbers == nullptr) return data + n * stride;
    const std::int64_t number = numbers[n * number_stride];
    return number < 0 || number >= count ? nan_row(form) : data + number * stride;
  }

 private:
  /// Numbers of the widest row.
  static constexpr std::int64_t kWidestRow = 256;
  static const std::byte* nan_row(RowForm form);
};

/// Whether the functions below take rows of so many numbers: those that small vectors divide.
constexpr bool takes_row_width(std::int64_t width) { return width % 4 == 0; }

struct KeyRowOps {
  /// scores[m * leading + n] = sum_d q[m * q_row + d] row n[d] for `queries` rows of q and `keys` rows of
  /// `width` numbers.
  void (*dots)(const float* q, std::int64_t q_row, std::int64_t queries, const KeyRows& rows,
               std::int64_t keys, std::int64_t width, float* scores, std::int64_t leading);
  /// sums[m * width + e] += sum_n weights[m * leading + n] row n[e], or that alone unless `add`.
  void (*mix)(const float* weights, std::int64_t leading, std::int64_t queries, const KeyRows& rows,
              std::int64_t keys, std::int64_t width, float* sums, bool add);
  /// to[n * width + d] = row n[d], widened.
  void (*widen)(const KeyRows& rows, std::int64_t keys, std::int64_t width, float* to);
};

const KeyRowOps& key_row_ops();

}  // namespace caldera::cpu
