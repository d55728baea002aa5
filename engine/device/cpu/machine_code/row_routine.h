// Describes what machine code is made of: a program over rows, whose values are in numbered locations.
//
// A location is a place in memory, given at run time by its address, or a value that only the program knows.
// It holds one element a point of the row, or is uniform: one element for the whole row. Uniform locations
// are addressed by rows: the element of row r is `r` steps behind the address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/graph/scalar_op.h"
#include "engine/plan/kernel/combine.h"
#include "engine/tensor/dtype.h"

namespace caldera::cpu {

/// Runs a program over `rows` rows of `n` points. `at` has the address of each location in the first row,
/// `steps` the bytes to its place in the next one. Both are read where the program reads or writes memory.
using RowFunction = void (*)(std::byte* const* at, const std::int64_t* steps, std::int64_t rows,
                             std::int64_t n);

/// Holds out = op(a, b, c). A cast from a type to itself is a copy, also of a uniform location to one that is
/// not.
struct RoutineLine {
  ScalarOp op = ScalarOp::cast;
  DType type = DType::f32;     // of the result
  DType operand = DType::f32;  // of the operands (select: of the second and third)
  std::uint16_t out = 0, a = 0, b = 0, c = 0;
};

/// Describes one walk along the row.
struct RoutineWalk {
  struct Reduction {
    Combine combine = Combine::sum;
    DType type = DType::f32;
    std::uint16_t in = 0, out = 0;
  };
  struct Store {
    std::uint16_t location = 0;
    DType type = DType::f32;
  };
  std::vector<RoutineLine> code;      // at each point
  std::vector<Store> stores;          // locations that are in memory when the walk has been at a point
  std::vector<Reduction> reductions;  // of them the results are uniform
  std::vector<RoutineLine> row_code;  // of uniform values, when the walk is over
};

struct RowRoutine {
  std::vector<bool> uniform;  // of each location
  /// Whether each location is memory of the program's own, 4 bytes a point, in which values of several sizes
  /// take turns.
  std::vector<bool> own;
  std::vector<RoutineLine> row_code;  // of uniform values, ahead of the first walk
  std::vector<RoutineWalk> walks;     // in order
  /// Reductions begin with what is at the addresses of their locations, in f64, and end there; row code after
  /// them is left out.
  bool stores_wide = false;
  /// Numbers of 4 bytes are stored past the caches.
  bool streams = false;
  /// The last walk that reads an operand asks for the same points of its next row: between two walks along a
  /// row that is in the cache by then, a processor would not fetch anything ahead.
  bool asks_for_next_row = false;
  std::vector<RoutineWalk::Store> row_stores;  // uniform locations that are in memory at the end of a row
};

}  // namespace caldera::cpu
