// From a dtype, which is known only while the program runs, to the C++ type of its elements.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/tensor/dtype.h"

namespace caldera {

/// The dtypes among which `dispatch` chooses unless told otherwise: all.
constexpr bool is_any_type(DType) { return true; }

namespace detail {
/// Throws the DTypeError of `dispatch`.
[[noreturn]] void refuse_dispatch(DType type);
}  // namespace detail

/// Calls `f` with the C++ type of the elements of `type` as its template argument, and returns what it
/// returns:
///
///   const double low = dispatch<is_integral>(x.dtype(), []<class T>() -> double {
///     return std::numeric_limits<T>::lowest();
///   });
///
/// T is bool, std::uint8_t, std::uint32_t, std::int8_t to std::int64_t, Half, BFloat16, float or double: the
/// type of which dtype_of<T>() is `type`. `kAmong` says which dtypes `f` is made for, as one of the functions
/// of dtype.h does (is_floating, is_integral, is_compute_type, is_compute_number) or the caller's own; `f` is
/// instantiated for those alone. All of its instances must return the same type, or nothing. Throws
/// DTypeError if `type` is not among them, so a caller that has an answer for the others gives it first.
///
/// Always inlined: code of another instruction set than the rest of the program's can only be inlined where
/// its caller is of that instruction set too, and would otherwise become a function for every type.
template <bool (*kAmong)(DType) = is_any_type, class F>
[[gnu::always_inline]] constexpr auto dispatch(DType type, F&& f) {
  switch (type) {
    case DType::boolean:
      if constexpr (kAmong(DType::boolean)) return f.template operator()<bool>();
      break;
    case DType::u8:
      if constexpr (kAmong(DType::u8)) return f.template operator()<std::uint8_t>();
      break;
    case DType::u32:
      if constexpr (kAmong(DType::u32)) return f.template operator()<std::uint32_t>();
      break;
    case DType::i8:
      if constexpr (kAmong(DType::i8)) return f.template operator()<std::int8_t>();
      break;
    case DType::i16:
      if constexpr (kAmong(DType::i16)) return f.template operator()<std::int16_t>();
      break;
    case DType::i32:
      if constexpr (kAmong(DType::i32)) return f.template operator()<std::int32_t>();
      break;
    case DType::i64:
      if constexpr (kAmong(DType::i64)) return f.template operator()<std::int64_t>();
      break;
    case DType::f16:
      if constexpr (kAmong(DType::f16)) return f.template operator()<Half>();
      break;
    case DType::bf16:
      if constexpr (kAmong(DType::bf16)) return f.template operator()<BFloat16>();
      break;
    case DType::f32:
      if constexpr (kAmong(DType::f32)) return f.template operator()<float>();
      break;
    case DType::f64:
      if constexpr (kAmong(DType::f64)) return f.template operator()<double>();
      break;
  }
  detail::refuse_dispatch(type);
}

/// Names the type as which code reads and writes elements in memory: booleans as bytes, since reading one
/// that is neither 0 nor 1 as a bool is undefined.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

/// Whether T is a floating type of 16 bits, with which C++ does not compute.
template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// The number that an element holds, of a type with which C++ computes: a float for Half and BFloat16, else
/// the element itself.
template <class T>
constexpr auto to_number(T element) {
  if constexpr (kIsHalf<T>)
    return to_float(element);
  else
    return element;
}

/// The element of type T that holds a number: for Half and BFloat16 the nearest to it as a float, else what
/// the conversion of C++ gives, which is undefined for a floating number outside of an integer type's range.
template <class T, class Number>
constexpr T to_element(Number number) {
  if constexpr (std::is_same_v<T, Half>)
    return to_half(static_cast<float>(number));
  else if constexpr (std::is_same_v<T, BFloat16>)
    return to_bfloat16(static_cast<float>(number));
  else
    return static_cast<T>(number);
}

}  // namespace caldera
