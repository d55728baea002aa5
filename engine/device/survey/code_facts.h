// What a kernel's machine code says of its hot loop, read from the listings that drivers give
// (VK_KHR_pipeline_executable_properties, internal representations).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace caldera {

/// Sums over a stretch of code.
struct CodeStretch {
  double instructions = 0;
  double issued = 0;        // of them, what goes through the port that multiply-adds need
  double loads = 0;         // of them, those from memory
  double f32_flops = 0;     // of one invocation: multiply-adds, two each
  double matrix_flops = 0;  // of a subgroup: matrix instructions
  double shared_bytes = 0;  // of one invocation: loaded from and stored to shared memory

  CodeStretch& add(const CodeStretch& other, double times);
};

/// A listing does not say how often a loop turns, unless it steps a register by a constant up to another, or
/// a branch is taken. So other loops within a stretch are taken to turn eight times, and what a branch of the
/// whole subgroup skips to be run every other time; what a branch skips where no invocation takes part is
/// taken to be run.
struct CodeFacts {
  CodeStretch whole;       // all loops turn once: who knows how often adds `turn` for each further turn
  CodeStretch turn;        // of the innermost loop of most instructions; nothing where there is no loop
  bool is_nested = false;  // that loop lies in another
  /// One turn of the loop that does the work of products: the smallest with nine tenths of the multiply-adds
  /// and matrix instructions, and a load from memory. Empty where there is none.
  std::optional<CodeStretch> product;
};

/// Reads a listing. `name` is the driver's for it: "Assembly" (RADV's) and "NAK assembly" (NVK's) are known;
/// for any other there is nothing to say.
std::optional<CodeFacts> read_code(std::string_view name, std::string_view listing);

}  // namespace caldera
