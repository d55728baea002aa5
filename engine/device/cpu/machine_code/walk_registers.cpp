#include "engine/device/cpu/machine_code/walk_registers.h"

#include <algorithm>

#include "engine/graph/scalar_op.h"

namespace caldera::cpu {
namespace {

/// Registers that a function such as erf takes beside its argument.
constexpr int kFunctionRegisters = 5;

/// Calls visit(location) for each operand of the line.
template <class Visit>
void for_each_operand(const RoutineLine& line, const Visit& visit) {
  const std::uint16_t from[] = {line.a, line.b, line.c};
  for (int k = 0; k < operands_of(line); ++k) visit(from[k]);
}

}  // namespace

int operands_of(const RoutineLine& line) { return info(line.op).arity; }

int registers_of_point(const RowRoutine& routine, const RoutineWalk& walk) {
  const std::size_t locations = routine.uniform.size(), lines = walk.code.size();
  std::vector<std::size_t> end(locations, 0);  // the line behind the last that reads it
  for (std::size_t i = 0; i < lines; ++i)
    for_each_operand(walk.code[i], [&](std::uint16_t location) { end[location] = i + 1; });
  for (const auto& reduction : walk.reductions) end[reduction.in] = lines + 1;
  for (const auto& store : walk.stores) end[store.location] = lines + 1;
  std::vector<bool> is_alive(locations, false);
  std::ptrdiff_t most = 0;
  for (std::size_t i = 0; i < lines; ++i) {
    for_each_operand(walk.code[i],
                     [&](std::uint16_t location) { is_alive[location] = !routine.uniform[location]; });
    is_alive[walk.code[i].out] = true;
    most = std::max(most, std::count(is_alive.begin(), is_alive.end(), true));
    for (std::size_t location = 0; location < locations; ++location)
      if (end[location] <= i + 1) is_alive[location] = false;
  }
  return static_cast<int>(most) + kFunctionRegisters;
}

int registers_of_walk(const RowRoutine& routine, const RoutineWalk& walk, int parts) {
  std::vector<bool> is_read(routine.uniform.size(), false);
  for (const RoutineLine& line : walk.code)
    for_each_operand(line, [&](std::uint16_t location) { is_read[location] = routine.uniform[location]; });
  const auto uniforms = static_cast<int>(std::count(is_read.begin(), is_read.end(), true));
  return uniforms + parts * static_cast<int>(walk.reductions.size());
}

}  // namespace caldera::cpu
