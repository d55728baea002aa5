// Element types, their sizes, and the promotion rules of the Python Array API standard.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace caldera {

/// Element type of a tensor. `boolean` is stored as one byte, 0 or 1.
enum class DType : std::uint8_t { boolean, u8, i32, i64, f16, bf16, f32, f64 };

inline constexpr int kDTypeCount = 8;

/// Bytes of one element.
constexpr std::size_t size_of(DType t) {
  constexpr std::array<std::uint8_t, kDTypeCount> bytes{1, 1, 4, 8, 2, 2, 4, 8};
  return bytes[static_cast<std::size_t>(t)];
}

/// Name as PyTorch and the Array API spell it, for example "float32".
constexpr std::string_view name(DType t) {
  constexpr std::array<std::string_view, kDTypeCount> names{"bool",    "uint8",    "int32",   "int64",
                                                            "float16", "bfloat16", "float32", "float64"};
  return names[static_cast<std::size_t>(t)];
}

constexpr bool is_floating(DType t) { return t >= DType::f16; }
constexpr bool is_integral(DType t) { return t == DType::u8 || t == DType::i32 || t == DType::i64; }

constexpr bool is_unsigned(DType t) { return t == DType::u8; }

/// 16 bits wide: a type that values have in memory, not while they are computed.
constexpr bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
/// The type in which values of `t` are computed: f32 for the 16-bit types.
constexpr DType compute_type(DType t) { return is_half(t) ? DType::f32 : t; }

/// The dtype in which `a op b` is computed (Array API type promotion; integer with floating gives the
/// floating type).
DType promote(DType a, DType b);

/// IEEE binary16 and bfloat16 storage types. Arithmetic happens in float32; conversion rounds to nearest
/// even.
struct Half {
  std::uint16_t bits = 0;
};
struct BFloat16 {
  std::uint16_t bits = 0;
};
float to_float(Half h);
Half to_half(float f);
constexpr float to_float(BFloat16 b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16);
}
BFloat16 to_bfloat16(float f);

/// The DType of a C++ element type: float, double, std::int32_t, std::int64_t, std::uint8_t, bool, Half,
/// BFloat16.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::boolean;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return DType::u8;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else {
    static_assert(std::is_same_v<T, double>, "no DType for this C++ type");
    return DType::f64;
  }
}

}  // namespace caldera
