// The profiler's hooks in the runtime: what it records for explain(), for traces and for CALDERA_DEBUG.
//
// While nobody records, an evaluation pays for two reads of an atomic. The hooks are ProfileSpan (a named
// stretch of host time), RunRecorder (which graph and plan a job has), submit_recorded and wait_recorded
// (when it ran), and CopyRecorder.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine/device/backend.h"
#include "engine/explain/records.h"

namespace caldera {

class NodePtr;
struct GraphKey;
struct Job;
struct Program;

/// The graph of a capture, whose walk is the latest. Under graph_mutex().
RecordedGraph record_graph(const GraphKey& capture);

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
  CopyRecorder(Device from, Device to, std::size_t bytes);
  ~CopyRecorder();
  CopyRecorder(const CopyRecorder&) = delete;
  CopyRecorder& operator=(const CopyRecorder&) = delete;

 private:
  CopyRecord copy_;
  bool active_;
};

/// Around finding the executable of a captured graph, under graph_mutex(): construct before, ask `record`
/// after.
class RunRecorder {
 public:
  explicit RunRecorder(const GraphKey& capture);
  /// Records a graph that was captured before, and is kept as a program of these nodes. Not under
  /// graph_mutex().
  RunRecorder(const Program& program, std::span<const NodePtr> nodes);
  /// To be kept in the job. Null unless someone records or CALDERA_DEBUG asks for times.
  std::shared_ptr<RunRecord> record(const Executable& executable) const;
  /// The job of this record, which may be null, is about to be queued.
  static void add(const std::shared_ptr<RunRecord>& record);

 private:
  void begin();

  std::shared_ptr<RunRecord> record_;
  std::uint64_t hits_ = 0;
};

/// Backend::submit and Backend::wait for a job that has a record, which the second completes. With
/// CALDERA_DEBUG=2 or more, it also prints a line a kernel.
Ticket submit_recorded(Backend& backend, Job& job);
void wait_recorded(Backend& backend, const Job& job, Ticket ticket);

}  // namespace caldera
