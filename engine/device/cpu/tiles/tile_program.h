// A kernel decoded for the CPU: micro-operations over tiles, with tile buffers assigned by liveness.
//
// A tile is a part of one row, or some whole rows. What a row is, the step decides: the reduced dimensions
// of a row kernel, the innermost dimension of an element-wise one, or the whole space. Values are of two
// kinds: one a point, computed n at a time for the n points of the tile; or uniform, one a row, computed q at
// a time for the q rows of the tile. Where an operation has operands of both kinds, it runs row by row with
// the uniform ones as single elements, or on a copy of them that is expanded to the points.
//
// Values live in numbered locations: first one a kernel input, then one a scalar argument, one an index
// operand, the temporaries, and one an output. At run time each location is a pointer: into the operand
// itself where its elements are contiguous, else to a tile buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/cpu/machine_code/machine_code.h"
#include "engine/device/cpu/simd/micro_ops.h"
#include "engine/tensor/dtype.h"

namespace caldera::cpu {

struct MicroInstruction {
  MicroFn fn = nullptr;
  SpreadFn spread = nullptr;  // by_row: what does it for all rows at once, where there is such a function
  std::uint16_t out = 0, a = 0, b = 0, c = 0;  // locations
  /// Called for each row, rather than once for all the points: some operand is a single element.
  bool by_row = false;
  // by_row: bytes from an element of out, a, b, c to the next; and whether there is one a point (bits 0 to 3)
  // or one a row.
  std::uint8_t size[4] = {0, 0, 0, 0};
  std::uint8_t points = 0;
  // fn computes op; an expansion is a cast to the same type.
  ScalarOp op = ScalarOp::cast;
  DType type = DType::f32;     // of the result
  DType operand = DType::f32;  // of the operands (select: of the second and third)
};

struct TileProgram {
  /// A half-open part of a list.
  struct Range {
    std::uint32_t begin = 0, end = 0;
  };
  struct Reduction {
    const ReduceOps* ops = nullptr;
    std::uint16_t in = 0, out = 0;
    Combine combine = Combine::sum;
    DType type = DType::f32;
  };
  /// One walk along the row: what is computed at its points, what is combined then, and what follows of
  /// uniform values.
  struct Pass {
    std::vector<std::uint16_t> inputs, indices;  // that it reads, one element a point
    Range code;
    Range reductions;
    Range row_code;
  };
  struct Output {
    DType type;
    bool per_row = false;
    std::uint16_t location = 0;
    /// Whether micro-operations may write straight into the operand: false when an input is read later, since
    /// the planner may have put the output in that input's memory.
    bool direct = false;
  };

  std::vector<MicroInstruction> code;
  std::vector<Reduction> reductions;
  std::vector<std::uint16_t> row_inputs, row_indices;      // uniform ones that are read
  std::vector<std::uint16_t> point_inputs, point_indices;  // that any pass reads
  Range first_row_code;                                    // ahead of the first pass
  std::vector<Pass> passes;
  std::vector<Output> outputs;
  std::uint16_t result = 0;  // location of what is combined, where Kernel::reduce is left to the step
  const ReduceOps* reduce = nullptr;  // then
  MicroFn narrow = nullptr;  // takes what was combined to the 16-bit type of the output, if it has one
  std::vector<bool> expanded_scalars;  // of each scalar: read as if it were one a point
  std::vector<DType> inputs, scalars, indices;
  int temporaries = 0;  // one a point; the first `kept` of them last from pass to pass
  int kept = 0;
  int row_temporaries = 0;
  std::size_t element_bytes = 4;         // widest element of any location
  std::int64_t tile = 1024;              // points a tile
  std::shared_ptr<MachineCode> machine;  // what this is compiled to

  std::size_t first_scalar() const { return inputs.size(); }
  std::size_t first_index() const { return first_scalar() + scalars.size(); }
  std::size_t first_temporary() const { return first_index() + indices.size(); }
  std::size_t first_row_temporary() const {
    return first_temporary() + static_cast<std::size_t>(temporaries);
  }
  std::size_t first_output() const {
    return first_row_temporary() + static_cast<std::size_t>(row_temporaries);
  }
  std::size_t locations() const { return first_output() + outputs.size(); }
};

}  // namespace caldera::cpu
