// Yardstick: what a row's rate is shown as a share of.
#pragma once

#include <cstdint>
#include <string_view>

namespace caldera::bench {

/// The bandwidth of reading, and the peak of products in registers.
enum class Yardstick : std::uint8_t { none, read_bandwidth, float_products, integer_products };

/// Returns what reports call it; "" of none.
constexpr std::string_view name(Yardstick yardstick) {
  switch (yardstick) {
    case Yardstick::read_bandwidth:
      return "read bandwidth";
    case Yardstick::float_products:
      return "peak of floats";
    case Yardstick::integer_products:
      return "peak of integers";
    case Yardstick::none:
      break;
  }
  return "";
}

}  // namespace caldera::bench
