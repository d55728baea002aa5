#include "engine/runtime/profiler.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/explain/debug_print.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/job.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/profile_hooks.h"
#include "engine/runtime/settings.h"

namespace caldera {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> recording = false;

struct Records {
  std::mutex mutex;
  std::vector<std::shared_ptr<RunRecord>> runs;
  std::vector<HostSpan> spans;
  std::vector<CopyRecord> copies;

  void clear() {
    runs.clear();
    spans.clear();
    copies.clear();
  }
};

/// Never destroyed: streams may still run while statics go.
Records& records() {
  static auto* instance = new Records;
  return *instance;
}

bool is_recording() { return recording.load(std::memory_order_relaxed); }

std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> next = 0;
  thread_local const std::uint32_t kMine = next.fetch_add(1, std::memory_order_relaxed);
  return kMine;
}

RecordedGraph record_graph(const Program& program, std::span<const NodePtr> nodes) {
  RecordedGraph graph;
  graph.nodes.reserve(program.nodes.size());
  for (const Program::Node& node : program.nodes) {
    const auto inputs = program.inputs.begin() + node.first_input;
    graph.nodes.push_back({.op = node.op,
                           .shape = node.shape,
                           .dtype = node.dtype,
                           .id = nodes[node.origin]->id(),
                           .is_data = node.op->kind == OpClass::data,
                           .inputs = {inputs, inputs + node.input_count}});
  }
  graph.outputs.assign(program.outputs.begin(), program.outputs.end());
  return graph;
}

}  // namespace

RecordedGraph record_graph(const GraphKey& capture) {
  RecordedGraph graph;
  graph.nodes.reserve(capture.walk.order.size());
  auto leaf = capture.data.begin();
  for (const Node* node : capture.walk.order) {
    GraphNode copy{.op = &node->op(),
                   .shape = node->shape(),
                   .dtype = node->dtype(),
                   .id = node->id(),
                   .is_data = leaf != capture.data.end() && *leaf == node,
                   .inputs = {}};
    if (copy.is_data) {
      ++leaf;
    } else {
      copy.inputs.reserve(node->operands().size());
      for (const NodePtr& input : node->operands()) copy.inputs.push_back(input->walk_index);
    }
    graph.nodes.push_back(std::move(copy));
  }
  graph.outputs.reserve(capture.outputs.size());
  for (const Node* output : capture.outputs) graph.outputs.push_back(output->walk_index);
  return graph;
}

Profiler::Profiler() {
  Records& r = records();
  const std::scoped_lock lock(r.mutex);
  if (is_recording()) throw Error("a profiler is recording already; end it before starting another");
  r.clear();
  recording.store(true, std::memory_order_relaxed);
}

Profiler::~Profiler() {
  Records& r = records();
  const std::scoped_lock lock(r.mutex);
  recording.store(false, std::memory_order_relaxed);
  r.clear();
}

std::vector<std::shared_ptr<const RunRecord>> Profiler::runs() const {
  Records& r = records();
  const std::scoped_lock lock(r.mutex);
  return {r.runs.begin(), r.runs.end()};
}

std::vector<HostSpan> Profiler::spans() const {
  Records& r = records();
  const std::scoped_lock lock(r.mutex);
  return r.spans;
}

std::vector<CopyRecord> Profiler::copies() const {
  Records& r = records();
  const std::scoped_lock lock(r.mutex);
  return r.copies;
}

ProfileSpan::ProfileSpan(std::string_view name) : name_(name), active_(is_recording()) {
  if (active_) begin_ = Clock::now();
}

ProfileSpan::~ProfileSpan() {
  if (!active_) return;
  const auto end = Clock::now();
  Records& r = records();
  const std::scoped_lock lock(r.mutex);
  if (is_recording()) r.spans.push_back({name_, thread_number(), begin_, end});
}

CopyRecorder::CopyRecorder(Device from, Device to, std::size_t bytes) : active_(is_recording()) {
  if (active_) copy_ = {from, to, bytes, thread_number(), Clock::now(), {}};
}

CopyRecorder::~CopyRecorder() {
  if (!active_) return;
  copy_.end = Clock::now();
  Records& r = records();
  const std::scoped_lock lock(r.mutex);
  if (is_recording()) r.copies.push_back(copy_);
}

RunRecorder::RunRecorder(const GraphKey& capture) {
  begin();
  if (record_ != nullptr && is_recording()) record_->graph = record_graph(capture);
}

RunRecorder::RunRecorder(const Program& program, std::span<const NodePtr> nodes) {
  begin();
  if (record_ != nullptr && is_recording()) record_->graph = record_graph(program, nodes);
}

void RunRecorder::begin() {
  if (!is_recording() && settings().debug < 2) return;
  record_ = std::make_shared<RunRecord>();
  hits_ = plan_cache().stats().hits;
}

std::shared_ptr<RunRecord> RunRecorder::record(const Executable& executable) const {
  if (!record_) return nullptr;
  record_->plan = executable.plan_ptr();
  const std::vector<std::uint32_t>& optional = record_->plan->optional_outputs;
  record_->graph.outputs.insert(record_->graph.outputs.end(), optional.begin(), optional.end());
  record_->cache_hit = plan_cache().stats().hits > hits_;
  return record_;
}

void RunRecorder::add(const std::shared_ptr<RunRecord>& record) {
  if (!record) return;
  Records& r = records();
  const std::scoped_lock lock(r.mutex);
  if (is_recording()) r.runs.push_back(record);
}

Ticket submit_recorded(Backend& backend, Job& job) {
  RunRecord& run = *job.record;
  run.thread = thread_number();
  run.steps.reserve(run.plan->steps.size());
  job.bindings.step_times = &run.steps;
  run.code = backend.code_writer();
  run.before = backend.counters();
  run.begin = Clock::now();
  const Ticket ticket = submit_job(backend, job);
  run.submitted = Clock::now();
  run.submits = backend.counters().submits - run.before.submits;
  return ticket;
}

void wait_recorded(Backend& backend, const Job& job, Ticket ticket) {
  RunRecord& run = *job.record;
  run.waiter = thread_number();
  run.waited = Clock::now();
  backend.wait(ticket);
  run.done = Clock::now();
  run.after = backend.counters();
  // A device that merges or leaves out steps cannot say which time belongs to which.
  if (run.steps.size() != run.plan->steps.size()) run.steps.clear();
  if (settings().debug >= 2) print_run(run);
}

}  // namespace caldera
