#include "engine/check/reference/kernel_values.h"
#include "engine/check/reference/reference_steps.h"

namespace caldera::reference {
namespace {

/// sum over k of A B, exact for integers (modulo 2^64), in f64 for floating types.
Number product(const StepMemory& memory, std::size_t a, std::size_t b, std::int64_t extent,
               const Point& outer) {
  // A product is most of the interpreter's time: the elements of a sum are a stride apart.
  struct Line {
    const std::vector<std::byte>& bytes;
    DType type;
    std::int64_t first, stride;
    Number at(std::int64_t k) const { return read_number(bytes, type, first + k * stride); }
  };
  const auto line = [&](std::size_t operand) {
    return Line{memory.bytes(operand), memory.type(operand), memory.element(operand, outer),
                memory.step().operands.at(operand).strides.back()};
  };
  const Line as = line(a);
  const Line bs = line(b);
  Number total;
  for (std::int64_t k = 0; k < extent; ++k) {
    const Number x = as.at(k);
    const Number y = bs.at(k);
    total.f += x.f * y.f;
    total.i = static_cast<std::int64_t>(static_cast<std::uint64_t>(total.i) +
                                        static_cast<std::uint64_t>(x.i) * static_cast<std::uint64_t>(y.i));
  }
  return total;
}

}  // namespace

void run_step(const StepMemory& memory, const ContractStep& contract) {
  const Step& step = memory.step();
  for_each_point(memory.leading_dims(1), [&](const Point& at) {
    Number total;
    for (std::size_t s = 0; s < contract.segments.size(); ++s) {
      const Segment& segment = contract.segments[s];
      const Number part = product(memory, 2 * s, 2 * s + 1, segment.k, at);
      Number scale{1, 1};
      if (segment.scale >= 0) scale = memory.scalar(segment.scale, step.dtype);
      total.f += scale.f * part.f;
      total.i =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(total.i) +
                                    static_cast<std::uint64_t>(scale.i) * static_cast<std::uint64_t>(part.i));
    }
    total = rounded(step.dtype, total);
    if (!contract.epilogue) return memory.write(2 * contract.segments.size(), step.dtype, at, total);
    const KernelUse epilogue{*contract.epilogue, 2 * contract.segments.size(), 0, 1};
    store_outputs(memory, epilogue, at, evaluate(memory, epilogue, at, {total}));
  });
}

}  // namespace caldera::reference
