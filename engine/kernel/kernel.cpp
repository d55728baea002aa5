#include "engine/kernel/kernel.h"

#include <fmt/core.h>

namespace caldera {
namespace {

constexpr const char* kCombineNames[] = {"sum", "max", "min", "prod"};

}  // namespace

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
    text += reduce ? fmt::format("  store {}(v{})\n", kCombineNames[static_cast<int>(*reduce)], o.value)
                   : fmt::format("  store v{}\n", o.value);
  }
  return text;
}

}  // namespace caldera
