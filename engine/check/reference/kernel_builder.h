// Kernels written by hand, an instruction a line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/plan/kernel/kernel.h"

namespace caldera::reference {

class KernelBuilder {
 public:
  using Value = std::uint16_t;

  explicit KernelBuilder(std::string name);

  // Sources. Inputs, index operands and scalar arguments are numbered as they are first asked for. A load of
  // a type of memory gives the type that it is computed in.
  Value load(DType type);
  Value load_row(DType type);
  /// Another load of an input that there is already.
  Value load_again(int input);
  Value index();  // i32
  Value scalar(DType type);

  /// The type of the result follows from the operands.
  Value op(ScalarOp op, Value a, Value b = 0, Value c = 0);
  /// To `type`, or where that is a type of memory to what it holds, in the type that it is computed in.
  /// Halves are not rounded.
  Value cast(Value a, DType type);
  Value philox(ScalarOp op, DType type, Value seed, Value index);

  /// An output of the value's own type, or of another.
  KernelBuilder& store(Value value);
  KernelBuilder& store(Value value, DType type);
  KernelBuilder& reduce(Combine combine);

  std::shared_ptr<const Kernel> finish();

 private:
  Value emit(const Instruction& instruction);

  Kernel kernel_;
};

/// One operation on loads: out = op(in0, in1, ...), all of type `operand`.
std::shared_ptr<Kernel> one_op_kernel(ScalarOp op, DType operand, DType result);
/// A reduction of one input.
std::shared_ptr<Kernel> reduce_kernel(Combine combine, DType type);

}  // namespace caldera::reference
