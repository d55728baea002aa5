// Lists what some graphics cards can do at most, by their makers' data sheets.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace caldera {

struct Card {
  std::string_view name;  // as --card takes it
  std::string_view title;
  double bandwidth;         // bytes a second
  double f32_flops;         // a second, a multiply-add as two
  double matrix_flops;      // of f16 or bf16 with f32 sums, without sparsity
  std::int64_t units;       // compute units or multiprocessors
  std::int64_t schedulers;  // of a unit; each issues one instruction a cycle
  double clock;             // cycles a second
  std::int64_t resident;    // invocations of a unit at once, at most
  bool matrices_block;      // matrix instructions go through the port of all others
  double shared_per_cycle;  // bytes of shared memory that a unit loads or stores in a cycle
};

std::span<const Card> cards();
/// Null for a name that is none.
const Card* find_card(std::string_view name);

}  // namespace caldera
