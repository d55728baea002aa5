// Counts what a range of machine code does.
#pragma once

namespace caldera {

/// Sums over a stretch of code.
struct CodeStretch {
  double instructions = 0;
  double issued = 0;        // of them, what goes through the port that multiply-adds need
  double loads = 0;         // of them, those from memory
  double accesses = 0;      // of them, loads from memory and stores to it
  double f32_flops = 0;     // of one invocation: multiply-adds, two each
  double matrix_flops = 0;  // of a subgroup: matrix instructions
  double shared_bytes = 0;  // of one invocation: loaded from and stored to shared memory

  CodeStretch& add(const CodeStretch& other, double times);
};

}  // namespace caldera
