// Holds what is known of a kernel that was compiled and not run: what the driver made of it, and where plans
// use it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/survey/code_facts.h"
#include "engine/survey/statistics.h"

namespace caldera {

/// One dispatch of a plan.
struct DispatchFacts {
  std::int64_t workgroups = 0;
  std::int64_t bytes = 0;  // of its steps: engine/plan/cost.h
  std::int64_t flops = 0;
  std::int64_t iterations = 0;  // of all loops in the busiest invocation
  // Counts for an invocation that takes points how often it does so from the beginning, and the turns of each
  // of its walks over them. 0: it does something else.
  std::int64_t rounds = 0, turns = 0;
  bool barrier_before = false;
};

/// A kernel, and all dispatches of the surveyed plans that use it.
struct KernelReport {
  std::string kernel;
  /// "product", "elementwise", "copy", "reduction", "row", "gather", "scatter", "attention",
  /// "attention_grad_q", "attention_grad_kv" or "attention_grad".
  std::string family;
  std::string variant;              // by which a product is computed; else empty
  std::string dims;                 // iteration space of the dispatch with the most work
  std::string error;                // why it could not be made; empty: it was
  bool uses_matrices = false;       // of the hardware
  std::int64_t workgroup_size = 0;  // invocations; 0: not known
  std::int64_t subgroup_size = 0;
  KernelStatistics statistics;
  std::optional<CodeFacts> code;  // where the driver gives a listing that can be read
  std::vector<DispatchFacts> dispatches;
};

}  // namespace caldera
