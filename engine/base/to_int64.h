// to_int64: a C++ integer of any type on its way into the engine, which counts in std::int64_t.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

#include "engine/base/error.h"

namespace caldera {

/// Returns the number as std::int64_t. Throws ValueError for one above its range, which a conversion would
/// turn into a negative number.
template <std::integral T>
constexpr std::int64_t to_int64(T value) {
  if constexpr (std::unsigned_integral<T> && sizeof(T) >= sizeof(std::int64_t)) {
    constexpr T kGreatest = std::numeric_limits<std::int64_t>::max();
    if (value > kGreatest)
      throw ValueError(std::to_string(value) + " is no int64, whose greatest number is " +
                       std::to_string(kGreatest) + "; integers, fill values and indices are int64");
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace caldera
