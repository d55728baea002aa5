// Tells what a kernel's machine code says of its hot loop, read from the listings that drivers give
// (VK_KHR_pipeline_executable_properties, internal representations).
#pragma once

#include <optional>
#include <string_view>

#include "engine/survey/code_stretch.h"

namespace caldera {

/// A listing does not say how often a loop turns, unless it steps a register by a constant up to another, or
/// a branch is taken. So other loops within a stretch are taken to turn eight times, and what a branch of the
/// whole subgroup skips to be run every other time; what a branch skips where no invocation takes part is
/// taken to be run. Of two ways of the whole subgroup that both access memory, the one with fewer accesses is
/// taken: the other one is for what does not fit, or for the edge of what is shared out.
struct CodeFacts {
  CodeStretch whole;       // all loops turn once: who knows how often adds `turn` for each further turn
  CodeStretch turn;        // of the innermost loop of most instructions; nothing where there is no loop
  bool is_nested = false;  // that loop is in another
  /// One turn each of the loops that access memory and have no such loop within: walks over points.
  CodeStretch walks;
  /// One turn of the loop that does the work of products: the smallest with nine tenths of the multiply-adds
  /// and matrix instructions, and a load from memory. Empty where there is none.
  std::optional<CodeStretch> product;
};

/// Reads a listing. `name` is the driver's for it: "Assembly" (RADV's) and "NAK assembly" (NVK's) are known;
/// for any other there is nothing to say.
std::optional<CodeFacts> read_code(std::string_view name, std::string_view listing);

}  // namespace caldera
