// Listings of machine code, line by line.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/survey/code_stretch.h"

namespace caldera {

/// One line of a listing: a label, or an instruction.
struct CodeLine {
  std::string_view label;   // that begins here
  std::string_view target;  // of a branch
  bool uniform = false;     // the branch: taken by the subgroup as a whole
  bool ends = false;        // what follows is not run after it: an unconditional branch, or the end
  bool is_chosen = false;   // the branch: it is known which way is taken
  // Name the register that is compared with `constant`, and the one that `constant` is added to.
  std::string_view compared;
  std::string_view stepped;
  std::int64_t constant = 0;
  CodeStretch stretch;
};

/// The lines of a listing that are labels or instructions; they refer to its text. Nothing where it is none
/// that can be read (see read_code).
std::optional<std::vector<CodeLine>> read_lines(std::string_view name, std::string_view listing);

}  // namespace caldera
