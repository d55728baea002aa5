// Reads what drivers say of compiled kernels, under the names that each of them has for it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace caldera {

/// A number as the driver names it.
struct NamedStatistic {
  std::string name;
  double value = 0;
};

/// The columns that drivers have in common. Empty: this one does not say.
struct KernelStatistics {
  std::optional<double> registers;         // of an invocation, 32 bits each
  std::optional<double> scalar_registers;  // of a subgroup, where it has registers of its own
  std::optional<double> spills;            // registers (or stores of such) that went to slower memory
  std::optional<double> shared_bytes;      // of a workgroup
  std::optional<double> scratch_bytes;     // of an invocation's stack, which is in memory
  /// Subgroups that may be there at once, as the driver counts them: RADV, of 32 invocations a SIMD; NVK, a
  /// multiprocessor; Turnip, a core.
  std::optional<double> occupancy;
  /// Counts the resident invocations of a compute unit or multiprocessor; empty where the driver's unit is
  /// not one.
  std::optional<double> resident_invocations;
  std::optional<double> code_bytes;
  std::optional<double> instructions;
  std::vector<NamedStatistic> others;  // names that the table does not know, as they came
};

/// Sorts what a driver says of one kernel into the columns. Names that stand for parts of one column (spilled
/// vector and scalar registers) are added up.
KernelStatistics sort_statistics(std::span<const NamedStatistic> all);

}  // namespace caldera
