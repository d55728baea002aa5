// What drivers say of compiled kernels, under the names that each of them has for it.
#pragma once

#include <cstdint>
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

/// Empty: this driver does not say.
struct KernelStatistics {
  std::optional<double> registers;         // vector registers of an invocation, of 32 bits
  std::optional<double> scalar_registers;  // of a subgroup
  std::optional<double> spills;            // registers that did not fit, of both kinds
  std::optional<double> shared_bytes;      // of a workgroup
  std::optional<double> scratch_bytes;     // of an invocation's stack, which lies in memory
  std::optional<double> occupancy;         // subgroups that a scheduler (a SIMD, a quarter of an SM) can hold
  std::optional<double> code_bytes;
  std::optional<double> instructions;
  std::vector<NamedStatistic> others;  // names that the table does not know, as they came
};

/// Sorts what a driver says of one kernel into the columns. A statistic of a shader that several names add up
/// to (spills of vector and of scalar registers) is their sum.
KernelStatistics sort_statistics(std::span<const NamedStatistic> all);

}  // namespace caldera
