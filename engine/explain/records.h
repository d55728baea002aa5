// Holds what is recorded of evaluations: the graph, the plan and when each part of it ran. Made by the
// runtime, read by what explains an evaluation to people and tools.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/explain/host_records.h"
#include "engine/explain/recorded_graph.h"
#include "engine/plan/cost.h"

namespace caldera {

/// At least a nanosecond, so that rates are finite.
double seconds_of(const StepTime& time);

/// One kernel at work: a step, or a step with those joined to it where they ran as one dispatch.
struct KernelRun {
  std::size_t first = 0;  // step
  std::size_t count = 1;  // steps
  StepTime time;
  StepCost cost;  // of all of them

  /// "name", or "name (and 3 more)".
  std::string name(const Plan& plan) const;
};

/// From the times of all steps of a plan. Steps of one dispatch have one time.
std::vector<KernelRun> kernel_runs(const Plan& plan, std::span<const StepTime> times);

/// One replay of a plan. Complete once the evaluation has been waited for.
struct RunRecord {
  using Time = RecordTime;
  RecordedGraph graph;
  std::shared_ptr<const Plan> plan;
  bool cache_hit = false;
  std::uint32_t thread = 0;      // that submitted it
  std::uint32_t waiter = 0;      // thread that waited for it
  Time begin, submitted;         // submit called, submit returned
  Time waited, done;             // wait called, results there
  std::vector<StepTime> steps;   // one a step where the device can tell, else empty
  std::uint64_t submits = 0;     // that the device counted
  DeviceCounters before, after;  // of the device, at `begin` and at `done`
  CodeWriter code = nullptr;     // of the device
};

}  // namespace caldera
