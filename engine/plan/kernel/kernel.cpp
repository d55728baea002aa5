#include "engine/plan/kernel/kernel.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace caldera {
namespace {}  // namespace

void Kernel::finish() {
  hash = Hash128{};
  hash.mix(inputs.size());
  for (DType t : inputs) hash.mix(static_cast<std::uint64_t>(t));
  hash.mix(static_cast<std::uint64_t>(index_count));
  hash.mix(scalars.size());
  for (DType t : scalars) hash.mix(static_cast<std::uint64_t>(t));
  hash.mix(code.size());
  for (const Instruction& i : code) {
    hash.mix(static_cast<std::uint64_t>(i.op) | static_cast<std::uint64_t>(i.type) << 8 |
             static_cast<std::uint64_t>(i.a) << 16 | static_cast<std::uint64_t>(i.b) << 32 |
             static_cast<std::uint64_t>(i.c) << 48);
  }
  hash.mix(outputs.size());
  for (const Output& o : outputs) hash.mix(o.value | static_cast<std::uint64_t>(o.type) << 16);
  hash.mix(reduce ? 1 + static_cast<std::uint64_t>(*reduce) : 0);
}

bool Kernel::has_rows() const {
  return std::any_of(code.begin(), code.end(), [](const Instruction& i) { return is_row_reduction(i.op); });
}

RowPhases row_phases(const Kernel& kernel) {
  RowPhases result;
  const std::size_t count = kernel.code.size();
  result.per_row.assign(count, false);
  result.phase.assign(count, 0);
  int last = 0;  // the latest pass that anything needs
  for (std::size_t v = 0; v < count; ++v) {
    const Instruction& i = kernel.code[v];
    const int arity = info(i.op).arity;
    const std::array<std::uint16_t, 3> operands{i.a, i.b, i.c};
    // Sources with an arity of 0: loads and coordinates vary along the row, the others do not.
    bool per_row = i.op != ScalarOp::load && i.op != ScalarOp::index;
    std::uint8_t phase = 0;
    for (int k = 0; k < arity; ++k) {
      const std::uint16_t operand = operands[static_cast<std::size_t>(k)];
      per_row = per_row && result.per_row[operand];
      phase = std::max(phase, result.phase[operand]);
    }
    if (is_row_reduction(i.op)) {
      last = std::max<int>(last, phase);
      ++phase;
      per_row = true;
    }
    result.per_row[v] = per_row;
    result.phase[v] = phase;
  }
  for (const Kernel::Output& output : kernel.outputs) {
    if (!result.per_row[output.value]) last = std::max<int>(last, result.phase[output.value]);
  }
  result.passes = last + 1;
  return result;
}

std::string Kernel::to_string() const {
  std::string text = fmt::format("kernel {}\n", name);
  for (std::size_t v = 0; v < code.size(); ++v) {
    const Instruction& i = code[v];
    const ScalarOpInfo& op = info(i.op);
    text += fmt::format("  v{}: {} = {}", v, caldera::name(i.type), op.name);
    if (op.arity == 0) text += fmt::format(" #{}", i.a);
    if (op.arity >= 1) text += fmt::format(" v{}", i.a);
    if (op.arity >= 2) text += fmt::format(", v{}", i.b);
    if (op.arity >= 3) text += fmt::format(", v{}", i.c);
    text += '\n';
  }
  for (const Output& o : outputs) {
    text += reduce ? fmt::format("  store {}(v{})\n", facts(*reduce).name, o.value)
                   : fmt::format("  store v{}\n", o.value);
  }
  return text;
}

}  // namespace caldera
