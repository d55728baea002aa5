// Makes functions of programs in memory that is never writable and executable at one address.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/device/cpu/machine_code/row_routine.h"

namespace caldera::cpu {

struct CompiledRows {
  RowFunction function = nullptr;  // null: the program has something that machine code lacks
  std::size_t bytes = 0;
};

/// The function of a program, for AVX-512 if `is_wide`, else for AVX2. Warns once on stderr where the system
/// allows no new code; then no function is made.
CompiledRows compile_rows(const RowRoutine& routine, bool is_wide);

/// Frees what compile_rows() made.
void release_rows(RowFunction function);

}  // namespace caldera::cpu
