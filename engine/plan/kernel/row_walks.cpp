#include "engine/plan/kernel/row_walks.h"

#include <algorithm>
#include <array>

namespace caldera {
namespace {

/// Calls f(operand) for each operand of v that is a value.
template <class F>
void for_operands(const Kernel& kernel, std::size_t v, F f) {
  const Instruction& i = kernel.code[v];
  const std::array<std::uint16_t, 3> operands{i.a, i.b, i.c};
  const int arity = info(i.op).arity;
  for (int k = 0; k < arity; ++k) f(operands[static_cast<std::size_t>(k)]);
}

}  // namespace

int RowWalks::kept_count() const { return static_cast<int>(std::count(kept.begin(), kept.end(), true)); }

std::vector<bool> live_values(const Kernel& kernel) {
  std::vector<bool> live(kernel.code.size());
  for (const Kernel::Output& o : kernel.outputs) live[o.value] = true;
  for (std::size_t v = live.size(); v-- > 0;) {
    if (live[v]) for_operands(kernel, v, [&](std::uint16_t operand) { live[operand] = true; });
  }
  return live;
}

RowWalks row_walks(const Kernel& kernel, bool remember) {
  const RowPhases phases = row_phases(kernel);
  const std::vector<bool> live = live_values(kernel);
  const std::size_t count = kernel.code.size();
  RowWalks result;
  result.kept.assign(count, false);
  std::vector<bool> known(count);
  for (int pass = 0; pass < phases.passes; ++pass) {
    RowWalk walk;
    walk.computed.assign(count, false);
    walk.recalled.assign(count, false);
    std::vector<bool> wanted(count);
    for (std::size_t v = 0; v < count; ++v) {
      if (!live[v] || !is_row_reduction(kernel.code[v].op) || phases.phase[v] != pass + 1) continue;
      walk.reductions.push_back(static_cast<std::uint16_t>(v));
      wanted[kernel.code[v].a] = true;
    }
    for (std::size_t o = 0; pass == phases.passes - 1 && o < kernel.outputs.size(); ++o) {
      const std::uint16_t v = kernel.outputs[o].value;
      if (phases.per_row[v]) continue;
      walk.outputs.push_back(static_cast<int>(o));
      wanted[v] = true;
    }
    for (std::size_t v = count; v-- > 0;) {  // operands stand before what they are used by
      if (!wanted[v] || phases.per_row[v]) continue;
      if (remember && known[v]) {
        walk.recalled[v] = result.kept[v] = true;
        continue;
      }
      walk.computed[v] = true;
      for_operands(kernel, v, [&](std::uint16_t operand) { wanted[operand] = true; });
    }
    for (std::size_t v = 0; v < count; ++v) known[v] = known[v] || walk.computed[v];
    result.walks.push_back(std::move(walk));
  }
  return result;
}

}  // namespace caldera
