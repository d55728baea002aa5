#include "engine/check/reference/kernel_values.h"

namespace caldera::reference {

bool is_source(ScalarOp op) {
  return op == ScalarOp::load || op == ScalarOp::load_row || op == ScalarOp::scalar || op == ScalarOp::index;
}

Number source_at(const StepMemory& memory, const KernelUse& use, const Instruction& i, const Point& at,
                 const std::vector<Number>& given) {
  switch (i.op) {
    case ScalarOp::scalar:
      return memory.scalar(memory.step().scalars.at(use.first_scalar + i.a), use.kernel.scalars.at(i.a));
    case ScalarOp::index:
      return convert(DType::i64, i.type, integer(memory.element(use.index(i.a), at)));
    default:
      if (i.a < use.given) return given.at(i.a);
      return memory.read(use.input(i.a), use.kernel.inputs.at(i.a), at);
  }
}

Number function_of(const Kernel& kernel, const Instruction& i, Number a, Number b, Number c) {
  if (i.op == ScalarOp::philox_uniform || i.op == ScalarOp::philox_normal)
    return random_number(i.op, i.type, static_cast<std::uint64_t>(a.i), static_cast<std::uint32_t>(b.i));
  return apply_scalar_op(i.op, kernel.code.at(i.op == ScalarOp::select ? i.b : i.a).type, i.type, a, b, c);
}

std::vector<Number> evaluate(const StepMemory& memory, const KernelUse& use, const Point& at,
                             const std::vector<Number>& given) {
  std::vector<Number> values;
  values.reserve(use.kernel.code.size());
  for (const Instruction& i : use.kernel.code) {
    if (is_source(i.op)) {
      values.push_back(source_at(memory, use, i, at, given));
      continue;
    }
    const int arity = info(i.op).arity;
    values.push_back(function_of(use.kernel, i, values.at(i.a), arity > 1 ? values.at(i.b) : Number{},
                                 arity > 2 ? values.at(i.c) : Number{}));
  }
  return values;
}

Number output_value(const Kernel& kernel, std::size_t number, const std::vector<Number>& values) {
  const auto& output = kernel.outputs.at(number);
  return convert(kernel.code.at(output.value).type, output.type, values.at(output.value));
}

void store_outputs(const StepMemory& memory, const KernelUse& use, const Point& at,
                   const std::vector<Number>& values) {
  for (std::size_t o = 0; o < use.kernel.outputs.size(); ++o)
    memory.write(use.outputs() + o, use.kernel.outputs[o].type, at, output_value(use.kernel, o, values));
}

}  // namespace caldera::reference
