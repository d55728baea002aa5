#include "engine/device/vulkan/glsl/variant.h"

namespace caldera {

Hash128 KernelVariant::hash() const {
  Hash128 h;
  h.mix(static_cast<std::uint64_t>(form) | std::uint64_t{rank} << 8 | std::uint64_t{reduce_rank} << 16 |
        std::uint64_t{lanes} << 24 | std::uint64_t{kept} << 40 | std::uint64_t{width} << 48 |
        std::uint64_t{online} << 56 | std::uint64_t{finishes} << 57);
  h.mix(access.size());
  for (Access a : access) h.mix(static_cast<std::uint64_t>(a));
  for (Neighbours n : neighbours) h.mix(static_cast<std::uint64_t>(n));
  return h;
}

std::vector<bool> row_operands(const Kernel& kernel) {
  const std::size_t inputs = kernel.inputs.size();
  const std::size_t first_output = inputs + static_cast<std::size_t>(kernel.index_count);
  std::vector<bool> rows(first_output + kernel.outputs.size(), false);
  if (kernel.reduce) {
    for (std::size_t o = 0; o < kernel.outputs.size(); ++o) rows[first_output + o] = true;
  } else if (kernel.has_rows()) {
    const RowPhases phases = row_phases(kernel);
    for (std::size_t o = 0; o < kernel.outputs.size(); ++o)
      rows[first_output + o] = phases.per_row[kernel.outputs[o].value];
    for (const Instruction& i : kernel.code) {
      if (i.op == ScalarOp::load_row) rows[i.a] = true;
    }
    // What is also read a point keeps the strides of one.
    for (const Instruction& i : kernel.code) {
      if (i.op == ScalarOp::load) rows[i.a] = false;
    }
  }
  return rows;
}

}  // namespace caldera
