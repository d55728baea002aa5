#include "lm/nn/caches/cache_type.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string>

#include "engine/base/error.h"
#include "engine/tensor/quantized_format.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/rounding.h"
#include "ops/quantized/quantized_products.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

constexpr std::int64_t kBlock = facts(QuantizedFormat::q8_0).block;
constexpr std::int64_t kBlockBytes = facts(QuantizedFormat::q8_0).block_bytes;
constexpr std::array<std::string_view, 4> kTypeNames{"model", "f32", "f16", "q8_0"};

/// The bits of numbers of f16 that are not negative, as i32: of the exponent e of x 2^14, which is 1 or more
/// but for subnormal numbers, and of what is left of x then. All of it is exact.
LazyTensor bits_of_half(const LazyTensor& half) {
  const LazyTensor x = astype(half, DType::f32) * 0x1p14;
  // The logarithm may be off by a little beside a power of two.
  const LazyTensor near = astype(floor(log2(maximum(x, 1.0))), DType::i32);
  const auto power = [](const LazyTensor& e) {
    return astype(bitwise_left_shift(astype(ones_like(e), DType::i32), e), DType::f32);
  };
  LazyTensor e = near - astype(less(x, power(near)), DType::i32);
  e = e + astype(greater_equal(x, power(e) * 2.0), DType::i32);
  const LazyTensor normal = (e + 1) * 1024 + astype((x / power(e) - 1.0) * 1024.0, DType::i32);
  const LazyTensor finite = where(less(x, 1.0), astype(x * 1024.0, DType::i32), normal);
  constexpr double kLargest = 65504.0 * 0x1p14;
  constexpr std::int32_t kNaN = 0x7e00;
  return where(less_equal(x, kLargest), finite, kNaN);
}

}  // namespace

std::string_view name(CacheType type) { return kTypeNames[static_cast<std::size_t>(type)]; }

std::optional<CacheType> cache_type_of(std::string_view name) {
  for (std::size_t i = 0; i < kTypeNames.size(); ++i)
    if (kTypeNames[i] == name) return static_cast<CacheType>(i);
  return std::nullopt;
}

std::string_view why_no_cache(CacheType type, std::int64_t head_dim) {
  return type == CacheType::q8_0 && head_dim % kBlock != 0
             ? "a cache of q8_0 keeps heads of a multiple of 32 numbers"
             : "";
}

CacheForm::CacheForm(CacheType type, DType computed, std::int64_t head_dim)
    : dtype_(type == CacheType::model ? computed
             : type == CacheType::f32 ? DType::f32
             : type == CacheType::f16 ? DType::f16
                                      : DType::u8),
      blocks_(type == CacheType::q8_0),
      head_dim_(head_dim),
      width_(blocks_ ? head_dim / kBlock * kBlockBytes : head_dim) {
  if (const std::string_view why = why_no_cache(type, head_dim); !why.empty())
    throw ValueError(fmt::format("{}, and this model's have {}: take f16 or f32", why, head_dim));
}

LazyTensor CacheForm::kept(const LazyTensor& x) const { return blocks_ ? q8_0_blocks(x) : astype(x, dtype_); }

LazyTensor CacheForm::numbers(const LazyTensor& kept) const {
  if (!blocks_) return kept;
  return dequantize(quantized_tensor({.format = QuantizedFormat::q8_0},
                                     Shape{kept.shape(0), kept.shape(1), head_dim_}, {kept}));
}

LazyTensor CacheForm::rows(const LazyTensor& table, const LazyTensor& which) const {
  if (!blocks_) return take(table, which);
  const std::int64_t columns = table.shape(1) / kBlockBytes * kBlock;
  return quantized_embedding(
      quantized_tensor({.format = QuantizedFormat::q8_0}, Shape{table.shape(0), columns}, {table}), which);
}

LazyTensor q8_0_blocks(const LazyTensor& x) {
  if (x.rank() == 0 || x.shape(-1) % kBlock != 0)
    throw ShapeError(
        fmt::format("q8_0_blocks: {} has no rows of whole blocks of {}", x.shape().to_string(), kBlock));
  Shape split = x.shape();
  split[split.rank() - 1] = x.shape(-1) / kBlock;
  split.push_back(kBlock);
  const LazyTensor blocks = reshape(astype(x, DType::f32), split);
  const LazyTensor d = max(abs(blocks), {-1}, true) / 127.0;
  const LazyTensor codes =
      astype(clip(round(where(greater(d, 0.0), blocks / d, 0.0)), -127.0, 127.0), DType::i32);
  const LazyTensor bits = bits_of_half(astype(d, DType::f16));
  const auto byte = [](const LazyTensor& value) { return astype(bitwise_and(value, 255), DType::u8); };
  const LazyTensor all = concatenate({byte(bits), byte(bitwise_right_shift(bits, 8)), byte(codes)}, -1);
  Shape out = x.shape();
  out[out.rank() - 1] = x.shape(-1) / kBlock * kBlockBytes;
  return reshape(all, out);
}

}  // namespace caldera
