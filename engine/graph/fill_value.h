// FillValue: a C++ number on its way into a tensor of any type.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "engine/tensor/dtype.h"

namespace caldera {

/// What constants and margins are filled with: an integer, held exactly in 64 bits, or a floating-point
/// number. Made of either implicitly, so that a call takes 1, 1.0 or std::int64_t{1} << 60 alike.
class FillValue {
 public:
  template <std::integral T>
  constexpr FillValue(T value) : integer_(static_cast<std::int64_t>(value)), is_integer_(true) {}
  template <std::floating_point T>
  constexpr FillValue(T value) : real_(static_cast<double>(value)) {}

  /// The bits of a scalar of this type: a double's for floating types, an integer's for others. Integers
  /// become the nearest double; of a real number the fraction is cut off.
  constexpr std::int64_t bits(DType dtype) const {
    if (is_floating(dtype))
      return std::bit_cast<std::int64_t>(is_integer_ ? static_cast<double>(integer_) : real_);
    return is_integer_ ? integer_ : static_cast<std::int64_t>(real_);
  }

 private:
  double real_ = 0;
  std::int64_t integer_ = 0;
  bool is_integer_ = false;
};

}  // namespace caldera
