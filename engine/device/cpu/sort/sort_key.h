// Keys: unsigned numbers that compare as the elements that they are made of do.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "engine/tensor/dispatch.h"

namespace caldera::cpu {

/// Keys of elements of at most 32 bits have 32, those of the others 64.
template <class T>
using SortKey = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;

/// An unsigned number that is as ascending as x. Zeros have one, NaN has the largest. Whole numbers alone, so
/// that compilers make vectors of loops over it.
template <class T>
constexpr SortKey<T> sort_key(T x) {
  using Key = SortKey<T>;
  if constexpr (kIsHalf<T> || std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, Key>;
    constexpr Key kInfinity = std::is_same_v<T, Half>       ? 0x7c00
                              : std::is_same_v<T, BFloat16> ? 0x7f80
                              : std::is_same_v<T, float>    ? 0x7f800000
                                                            : static_cast<Key>(0x7ff0000000000000);
    constexpr Key kZero = Key{1} << (8 * sizeof(T) - 1);
    const Key bits = std::bit_cast<Bits>(x);
    const Key magnitude = bits & (kZero - 1);
    const Key key = (bits & kZero) != 0 ? kZero - magnitude : kZero + magnitude;
    return magnitude > kInfinity ? static_cast<Key>(~Key{0}) : key;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(x) ^ (Key{1} << (8 * sizeof(Key) - 1));
  } else {
    return x;
  }
}

}  // namespace caldera::cpu
