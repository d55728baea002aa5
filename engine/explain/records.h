// Holds what is recorded of evaluations: the graph, the plan and when each part of it ran. Made by the
// runtime, read by what explains an evaluation to people and tools.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/backend.h"
#include "engine/graph/op.h"
#include "engine/plan/cost.h"

namespace caldera {

/// Holds what is kept of a node: neither its value nor its inputs stay alive.
struct GraphNode {
  const OpDef* op = nullptr;
  Shape shape;
  DType dtype = DType::f32;
  std::uint64_t id = 0;
  bool is_data = false;               // a leaf that has its value
  std::vector<std::uint32_t> inputs;  // positions in RecordedGraph::nodes
};

/// A graph as it stood when it was evaluated. Step::nodes are positions in `nodes`.
struct RecordedGraph {
  std::vector<GraphNode> nodes;  // inputs before users
  std::vector<std::uint32_t> outputs;
};

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
  using Time = std::chrono::steady_clock::time_point;
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

/// Bytes brought from one device to another, by a thread of the host.
struct CopyRecord {
  Device from, to;
  std::size_t bytes = 0;
  std::uint32_t thread = 0;
  RunRecord::Time begin, end;
};

/// A stretch of time on a thread of the host.
struct HostSpan {
  std::string_view name;
  std::uint32_t thread = 0;
  RunRecord::Time begin, end;
};

}  // namespace caldera
