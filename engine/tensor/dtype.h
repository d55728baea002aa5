// Element types, their sizes, and the promotion rules of the Python Array API standard.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace caldera {

/// Element type of a tensor. `boolean` is stored as one byte, 0 or 1.
enum class DType : std::uint8_t { boolean, u8, u32, i8, i16, i32, i64, f16, bf16, f32, f64 };

inline constexpr int kDTypeCount = 11;

inline constexpr std::array<DType, kDTypeCount> kAllDTypes{DType::boolean, DType::u8,  DType::u32, DType::i8,
                                                           DType::i16,     DType::i32, DType::i64, DType::f16,
                                                           DType::bf16,    DType::f32, DType::f64};

enum class ElementKind : std::uint8_t { boolean, unsigned_integer, signed_integer, floating };

/// Holds what there is to know about a type. Everything that depends on types reads it here.
struct TypeFacts {
  std::string_view name;  // as PyTorch and the Array API spell it
  std::uint8_t bytes;     // of one element
  ElementKind kind;
  /// In which its values are computed. Where that is another type, the type is one that values have in memory
  /// alone: a load widens, a store rounds (floating) or wraps (integers).
  DType computed;
  std::int64_t lowest, highest;  // of integers and booleans; 0 for floating types
  /// Counts the bits of a floating type's significand, the leading 1 included; 0 for other types.
  std::uint8_t digits;
};

// In the order of DType.
inline constexpr std::array<TypeFacts, kDTypeCount> kTypeFacts{{
    {"bool", 1, ElementKind::boolean, DType::boolean, 0, 1, 0},
    {"uint8", 1, ElementKind::unsigned_integer, DType::u8, 0, 255, 0},
    {"uint32", 4, ElementKind::unsigned_integer, DType::i64, 0, 4294967295, 0},
    {"int8", 1, ElementKind::signed_integer, DType::i32, -128, 127, 0},
    {"int16", 2, ElementKind::signed_integer, DType::i32, -32768, 32767, 0},
    {"int32", 4, ElementKind::signed_integer, DType::i32, -2147483648LL, 2147483647, 0},
    {"int64", 8, ElementKind::signed_integer, DType::i64, std::numeric_limits<std::int64_t>::min(),
     std::numeric_limits<std::int64_t>::max(), 0},
    {"float16", 2, ElementKind::floating, DType::f32, 0, 0, 11},
    {"bfloat16", 2, ElementKind::floating, DType::f32, 0, 0, 8},
    {"float32", 4, ElementKind::floating, DType::f32, 0, 0, 24},
    {"float64", 8, ElementKind::floating, DType::f64, 0, 0, 53},
}};
constexpr const TypeFacts& facts(DType t) { return kTypeFacts[static_cast<std::size_t>(t)]; }

/// Bytes of one element.
constexpr std::size_t size_of(DType t) { return facts(t).bytes; }
/// Name as PyTorch and the Array API spell it, for example "float32".
constexpr std::string_view name(DType t) { return facts(t).name; }

constexpr bool is_floating(DType t) { return facts(t).kind == ElementKind::floating; }
constexpr bool is_unsigned(DType t) { return facts(t).kind == ElementKind::unsigned_integer; }
constexpr bool is_integral(DType t) { return is_unsigned(t) || facts(t).kind == ElementKind::signed_integer; }

/// The type in which values of `t` are computed: f32 for f16 and bf16, i32 for i8 and i16, i64 for u32.
constexpr DType compute_type(DType t) { return facts(t).computed; }
/// A type that values have while they are computed, and the others: types that they have in memory alone.
constexpr bool is_compute_type(DType t) { return compute_type(t) == t; }
constexpr bool is_memory_type(DType t) { return !is_compute_type(t); }
/// A compute type other than boolean.
constexpr bool is_compute_number(DType t) { return is_compute_type(t) && t != DType::boolean; }
/// A floating type of 16 bits.
constexpr bool is_half(DType t) { return is_memory_type(t) && is_floating(t); }
/// An integer that is computed in a wider one: every result is wrapped to its range.
constexpr bool is_narrow_integer(DType t) { return is_memory_type(t) && is_integral(t); }

/// The type of sums and products of elements: i32 for bool and narrower integers, else the same.
constexpr DType sum_type(DType t) { return is_floating(t) || size_of(t) >= 4 ? t : DType::i32; }

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

/// The DType of a C++ element type: float, double, std::int8_t to std::int64_t, std::uint8_t, std::uint32_t,
/// bool, Half, BFloat16.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::boolean;
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return DType::u8;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return DType::u32;
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return DType::i8;
  else if constexpr (std::is_same_v<T, std::int16_t>)
    return DType::i16;
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
