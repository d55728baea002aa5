// CacheType: how a cache keeps keys and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Names what keys and values are kept as: the type that the model computes in, or that of the name. Fewer
/// bits take less memory, and less time to read; what they cost is in docs/guide/generation.md.
enum class CacheType : std::uint8_t {
  model,
  f32,
  f16,
  q8_0,  ///< 8 bits a number, and a scale of f16 for 32 of them (QuantizedFormat::q8_0): 8.5 bits
};

/// "model", "f32", "f16" or "q8_0".
std::string_view name(CacheType type);
/// Returns the type of that name; nothing for another one.
std::optional<CacheType> cache_type_of(std::string_view name);
/// Says why heads of `head_dim` numbers cannot be kept so, as a sentence for people; empty where they can.
std::string_view why_no_cache(CacheType type, std::int64_t head_dim);

/// Keeps rows of keys or values of heads of `head_dim` numbers: floats, or blocks of q8_0 as u8.
class CacheForm {
 public:
  /// `computed` is what CacheType::model stands for. Throws ValueError where why_no_cache() has a reason.
  CacheForm(CacheType type, DType computed, std::int64_t head_dim);

  /// Returns the type of what is kept.
  DType dtype() const { return dtype_; }
  bool is_blocks() const { return blocks_; }
  /// Returns how many elements a head's numbers are.
  std::int64_t width() const { return width_; }
  std::int64_t head_dim() const { return head_dim_; }
  std::int64_t bytes() const { return width_ * static_cast<std::int64_t>(size_of(dtype_)); }

  /// Returns x (..., head_dim) as it is kept: (..., width()).
  LazyTensor kept(const LazyTensor& x) const;
  /// Returns what is kept (n, rows, width()) as numbers (n, rows, head_dim).
  LazyTensor numbers(const LazyTensor& kept) const;
  /// Rows `which` (...) of a table (rows, heads * width()), as numbers (..., heads * head_dim). A row that
  /// there is not is NaN.
  LazyTensor rows(const LazyTensor& table, const LazyTensor& which) const;

 private:
  DType dtype_;
  bool blocks_;
  std::int64_t head_dim_;
  std::int64_t width_;
};

/// x (..., n), n a multiple of 32, as blocks of q8_0, u8 (..., n / 32 * 34): codes round(x / d) and the scale
/// d = max |x| / 127 of a block, which is kept as f16. As ggml's quantize_row_q8_0_ref, but that halves are
/// rounded to even. A block with a number that is not finite is NaN, as are blocks whose scale f16 does not
/// hold.
LazyTensor q8_0_blocks(const LazyTensor& x);

}  // namespace caldera
