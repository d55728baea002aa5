// Kernel IR: the program of one fused region, independent of any device.
//
// A kernel runs over an iteration space of `rank` dimensions, outermost first. Per point it evaluates `code`,
// a list in SSA form: the value number of an instruction is its position. Operands are addressed by strides
// (in elements) over the iteration space, so transposes, slices and broadcasts (stride 0) cost nothing.
//
// There are three forms:
//   element-wise  Every output stores its value at every point.
//   reduction     `reduce` is set. The innermost `reduce_rank` dimensions of the step are combined away: the
//                 single output has stride 0 along them, and one element is stored for every point of the
//                 outer dimensions. Rows of any length, in any order of memory.
//   row           `code` has row reductions (ScalarOp::row_sum ...). The innermost `reduce_rank` dimensions
//                 are the row. A value is either one for each point or one for the whole row (see
//                 RowPhases); where an operation has operands of both kinds, the latter stand for each of
//                 the row's points. An output whose value is one a row has stride 0 along the row and stores
//                 one element for it; the others store every point. Softmax, for one:
//                   v0 = load #0; v1 = row_max v0; v2 = sub v0, v1; v3 = exp v2; v4 = row_sum v3;
//                   v5 = div v3, v4; store v5
//                 An output may be in the memory of an operand that the same points address, so no output
//                 may be stored before the row's last read of any operand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/hash.h"
#include "engine/graph/scalar_op.h"
#include "engine/plan/kernel/combine.h"
#include "engine/tensor/dtype.h"

//
// Some types are types of memory alone (is_memory_type): an operand may have them, its load gives a value of
// their compute_type(), and an output of such a type rounds (floating, to nearest even) or wraps (integers)
// when it is stored. No value of `code` has them. Where a value goes on as what such a type holds, that is an
// instruction of its own: ScalarOp::round_f16 or round_bf16 from f32 to f32, where a program asks for the
// rounding (a conversion); and ScalarOp::narrow_i8 and its like wherever integer arithmetic may have left the
// type's range.
namespace caldera {

/// One instruction. `type` is the type of the result. Meaning of a, b, c: value numbers of the operands; but
/// - of load and load_row, a = input number; of scalar, a = scalar argument number;
/// - of index, a = index operand number;
/// - of philox, a = scalar argument value number (i64 seed), b = value number of the linear index (i32).
struct Instruction {
  ScalarOp op;
  DType type;
  std::uint16_t a = 0, b = 0, c = 0;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// The program of a region. Immutable once built; shared by plans and by the devices' kernel caches (keyed by
/// `hash`).
struct Kernel {
  std::string name;            // for traces and `explain`, e.g. "add+exp" or "sum(mul)"
  std::vector<DType> inputs;   // type of each input operand
  int index_count = 0;         // index operands: virtual inputs with an offset and strides but no memory
  std::vector<DType> scalars;  // type of each scalar argument
  std::vector<Instruction> code;
  struct Output {
    std::uint16_t value;
    DType type;
    friend bool operator==(const Output&, const Output&) = default;
  };
  std::vector<Output> outputs;
  std::optional<Combine> reduce;
  Hash128 hash;  // of everything above but the name

  void finish();                  // sets `hash`
  std::string to_string() const;  // readable listing

  /// Whether the kernel is of the row form.
  bool has_rows() const;
};

/// Says what a kernel of the row form computes when.
struct RowPhases {
  /// Whether each value is one for the whole row (row reductions, load_row, scalars, and functions of such
  /// alone), not one a point.
  std::vector<bool> per_row;
  /// Counts, for each value, how many row reductions must be finished before it can be computed. A row
  /// reduction itself has that of its operand plus one.
  std::vector<std::uint8_t> phase;
  /// Walks along the row that are needed: one more than the largest phase of any operand of a row reduction
  /// or of any output that is one a point.
  int passes = 1;
};

RowPhases row_phases(const Kernel& kernel);

}  // namespace caldera
