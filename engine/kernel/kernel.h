// Kernel IR: the program of one fused region, independent of any device.
//
// A kernel runs over an iteration space of `rank` dimensions, outermost first. Per point it evaluates `code`,
// a list in SSA form: the value number of an instruction is its position. Operands are addressed by strides
// (in elements) over the iteration space, so transposes, slices and broadcasts (stride 0) cost nothing.
// Without `reduce` each output stores its value at every point. With `reduce`, the innermost `reduce_rank`
// dimensions are combined away: the single output has stride 0 along them, and one element is stored for
// every point of the outer dimensions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/scalar_op.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/hash.h"

namespace caldera {

/// How a reduction combines elements. Sums of f32 keep f32 accumulators; the order is fixed, so results are
/// reproducible.
enum class Combine : std::uint8_t { sum, maximum, minimum, product };

/// One instruction. `type` is the type of the result. Meaning of a, b, c: value numbers of the operands,
/// except
///   load:   a = input number;          scalar: a = scalar argument number;   index: a = index operand
///   number; philox: a = scalar argument value number (i64 seed), b = value number of the linear index (i32).
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
};

}  // namespace caldera
