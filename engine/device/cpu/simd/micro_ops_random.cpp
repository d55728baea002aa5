// Philox uniform and normal micro-operations. a: the i64 seed, broadcast over the tile; b: linear indices.
#include <cmath>
#include <numbers>

#include "engine/device/cpu/simd/micro_ops.h"
#include "engine/device/cpu/simd/philox.h"

namespace caldera::cpu {
namespace {

/// Words of the stream by index; remembers the block it was in, since indices mostly run upwards.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : seed_(seed) {}
  const std::array<std::uint32_t, 4>& block(std::uint32_t index) {
    if (!valid_ || block_ != index / 4) {
      block_ = index / 4;
      words_ = philox4x32(block_, seed_);
      valid_ = true;
    }
    return words_;
  }

 private:
  std::uint64_t seed_;
  std::uint32_t block_ = 0;
  bool valid_ = false;
  std::array<std::uint32_t, 4> words_{};
};

template <class T>
void uniform(void* out, const void* a, const void* b, const void*, std::int64_t n) {
  auto* o = static_cast<T*>(out);
  const auto* index = static_cast<const std::int32_t*>(b);
  Stream stream(static_cast<const std::uint64_t*>(a)[0]);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::uint32_t>(index[i]);
    const std::uint32_t word = stream.block(at)[at % 4];
    if constexpr (sizeof(T) == 4)
      o[i] = static_cast<float>(word >> 8) * 0x1p-24F;
    else
      o[i] = static_cast<double>(word) * 0x1p-32;
  }
}

/// Box-Muller on the pair of words that the element belongs to.
template <class T>
void normal(void* out, const void* a, const void* b, const void*, std::int64_t n) {
  auto* o = static_cast<T*>(out);
  const auto* index = static_cast<const std::int32_t*>(b);
  Stream stream(static_cast<const std::uint64_t*>(a)[0]);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::uint32_t>(index[i]);
    const auto& words = stream.block(at);
    const std::uint32_t pair = at % 4 / 2 * 2;
    const double u1 = ((words[pair] >> 8) + 1) * 0x1p-24;
    const double u2 = (words[pair + 1] >> 8) * 0x1p-24;
    const double radius = std::sqrt(-2 * std::log(u1));
    const double angle = 2 * std::numbers::pi * u2;
    o[i] = static_cast<T>(radius * (at % 2 == 0 ? std::cos(angle) : std::sin(angle)));
  }
}

}  // namespace

MicroFn find_random_op(ScalarOp op, DType result) {
  const bool wide = result == DType::f64;
  if (result != DType::f32 && !wide) return nullptr;
  if (op == ScalarOp::philox_uniform) return wide ? uniform<double> : uniform<float>;
  if (op == ScalarOp::philox_normal) return wide ? normal<double> : normal<float>;
  return nullptr;
}

}  // namespace caldera::cpu
