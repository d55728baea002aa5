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

/// Products of integers of 8 bits, summed in 32.
struct IntegerLoop {
  /// So many turns of independent ones in registers; null where no such instructions of the core are known.
  std::int32_t (*multiply_add)(std::int64_t turns) = nullptr;
  std::int64_t operations_per_turn = 0;
};

/// With the instructions that do most of them at once: AVX-512 VNNI, or AVX2.
IntegerLoop widest_integer_loop();

}  // namespace caldera::bench
