// Loops that do nothing but read memory, write it, or multiply and add: what a core can do at the best.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caldera::bench {

/// Pointers are aligned to 64 bytes; counts are of floats, multiples of 64.
struct Loops {
  /// Sums n floats.
  float (*read)(const float* a, std::size_t n);
  /// a = b + c / 2.
  void (*triad)(float* a, const float* b, const float* c, std::size_t n);
  /// So many turns of independent multiply-adds in registers.
  float (*multiply_add)(std::int64_t turns);
  std::int64_t flops_per_turn;
};

/// With the widest vectors that this core has.
Loops widest_loops();

}  // namespace caldera::bench
