// The profiler: what the runtime records for `explain`, for traces and for CALDERA_DEBUG.
//
// While nobody records, an evaluation pays for two reads of an atomic. The hooks in the runtime are
// ProfileSpan (a named stretch of host time), RunRecorder (which graph and plan a job has), submit_recorded
// and wait_recorded (when it ran), CopyRecorder and debug_plan.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/backend.h"
#include "engine/graph/node.h"
#include "engine/plan/cost.h"

namespace caldera {

struct DeviceCopy;
struct Job;

/// What is kept of a node: neither its value nor its inputs stay alive.
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

struct Capture;

/// The graph of a capture, whose walk is the latest. Under graph_mutex().
RecordedGraph record_graph(const Capture& capture);

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

/// Records every evaluation of the process from construction to destruction. At most one at a time; throws
/// Error otherwise. A tool for measuring: each evaluation then also copies its graph.
class Profiler {
 public:
  Profiler();
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  /// In the order in which they were scheduled.
  std::vector<std::shared_ptr<const RunRecord>> runs() const;
  std::vector<HostSpan> spans() const;
  std::vector<CopyRecord> copies() const;
};

/// Records a stretch of host time while it exists, if anyone records. `name` must be a literal.
class ProfileSpan {
 public:
  explicit ProfileSpan(std::string_view name);
  ~ProfileSpan();
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

 private:
  std::string_view name_;
  bool active_;
  RunRecord::Time begin_;
};

/// Records a copy between devices while it exists, if anyone records.
class CopyRecorder {
 public:
  explicit CopyRecorder(const DeviceCopy& copy);
  ~CopyRecorder();
  CopyRecorder(const CopyRecorder&) = delete;
  CopyRecorder& operator=(const CopyRecorder&) = delete;

 private:
  const DeviceCopy& copy_;
  bool active_;
  RunRecord::Time begin_;
};

/// Around finding the executable of a captured graph, under graph_mutex(): construct before, ask `record`
/// after.
class RunRecorder {
 public:
  explicit RunRecorder(const Capture& capture);
  /// To be kept in the job. Null unless someone records or CALDERA_DEBUG asks for times.
  std::shared_ptr<RunRecord> record(const Executable& executable) const;

 private:
  std::shared_ptr<RunRecord> record_;
  std::uint64_t hits_ = 0;
};

/// Backend::submit and Backend::wait for a job that has a record, which the second completes. With
/// CALDERA_DEBUG=2 or more, it also prints a line a kernel.
Ticket submit_recorded(Backend& backend, Job& job);
void wait_recorded(Backend& backend, const Job& job, Ticket ticket);

/// Prints what CALDERA_DEBUG asks for of a new plan: 1 a line, 3 its regions, 4 their generated code.
void debug_plan(const Plan& plan);

}  // namespace caldera
