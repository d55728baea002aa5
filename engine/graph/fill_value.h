// FillValue: a C++ number on its way into a tensor of any type.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>

#include "engine/base/to_int64.h"
#include "engine/tensor/dtype.h"

namespace caldera {

/// Holds what constants and margins are filled with: an integer, held exactly in 64 bits, or a floating-point
/// number. Made of either implicitly, so that a call takes 1, 1.0 or std::int64_t{1} << 60 alike. Throws
/// ValueError for an unsigned integer that 64 bits with a sign do not hold.
class FillValue {
 public:
  template <std::integral T>
  constexpr FillValue(T value) : integer_(to_int64(value)), is_integer_(true) {}
  template <std::floating_point T>
  constexpr FillValue(T value) : real_(static_cast<double>(value)) {}

  /// False of a number outside the range of an integer type (NaN and the infinities are outside of all); true
  /// of all else. Of a real number the integer part counts.
  constexpr bool fits(DType dtype) const {
    if (!is_integral(dtype)) return true;
    const TypeFacts& range = facts(dtype);
    if (is_integer_) return integer_ >= range.lowest && integer_ <= range.highest;
    // No double holds the greatest int64; the number above it is one. Below the lowest, a double of int64's
    // magnitude has no fraction.
    const double above = static_cast<double>(range.highest) + (dtype == DType::i64 ? 0 : 1);
    const double lowest = static_cast<double>(range.lowest);
    return (dtype == DType::i64 ? real_ >= lowest : real_ > lowest - 1) && real_ < above;
  }

  /// The bits of a scalar of this type, which fits(): a double's for floating types, an integer's for others.
  /// Integers become the nearest double; of a real number the fraction is cut off. A boolean is whether the
  /// number differs from 0.
  constexpr std::int64_t bits(DType dtype) const {
    if (is_floating(dtype))
      return std::bit_cast<std::int64_t>(is_integer_ ? static_cast<double>(integer_) : real_);
    if (is_integer_) return integer_;
    return dtype == DType::boolean ? static_cast<std::int64_t>(real_ != 0) : static_cast<std::int64_t>(real_);
  }

  constexpr bool is_integer() const { return is_integer_; }
  /// The number, where is_integer().
  constexpr std::int64_t integer() const { return integer_; }
  /// The number, unless is_integer().
  constexpr double real() const { return real_; }

 private:
  double real_ = 0;
  std::int64_t integer_ = 0;
  bool is_integer_ = false;
};

}  // namespace caldera
