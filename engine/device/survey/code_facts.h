// What a kernel's machine code says of its hot loop, read from the listings that drivers give
// (VK_KHR_pipeline_executable_properties, internal representations).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace caldera {

/// Sums over a stretch of code, each instruction counted once.
struct CodeStretch {
  double instructions = 0;
  double issued = 0;        // of them, what goes through the port that multiply-adds need
  double f32_flops = 0;     // of one invocation: multiply-adds, two each
  double matrix_flops = 0;  // of a subgroup: matrix instructions
  double shared_bytes = 0;  // of one invocation: loaded from and stored to shared memory

  CodeStretch& operator+=(const CodeStretch& other);
};

struct CodeFacts {
  CodeStretch whole;
  /// The smallest loop with nine tenths of the code's multiply-adds and matrix instructions; of code without
  /// any, the loop of most instructions; empty where there is no loop.
  std::optional<CodeStretch> loop;
};

/// Reads a listing. `name` is the driver's for it: "Assembly" (RADV's) and "NAK assembly" (NVK's) are known;
/// for any other there is nothing to say.
std::optional<CodeFacts> read_code(std::string_view name, std::string_view listing);

}  // namespace caldera
