#include "engine/runtime/profiler.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <utility>

#include "engine/compile/cost.h"
#include "engine/runtime/capture.h"
#include "engine/runtime/explain.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/room.h"
#include "engine/runtime/settings.h"
#include "engine/runtime/stream.h"
#include "engine/tensor/error.h"

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

/// Rates of one step, for a line of CALDERA_DEBUG=2.
std::string rates(const StepCost& cost, double seconds) {
  return fmt::format("{:10.1f} us {:8.2f} GB/s {:9.2f} GFLOP/s", seconds * 1e6,
                     static_cast<double>(cost.bytes()) / seconds * 1e-9,
                     static_cast<double>(cost.flops) / seconds * 1e-9);
}

void debug_run(const RunRecord& run) {
  const Plan& plan = *run.plan;
  std::string text;
  StepCost total;
  if (run.steps.empty()) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const StepCost cost = cost_of(plan, plan.steps[i]);
      total += cost;
      text += fmt::format("caldera:   {:4} {} B, {} FLOP  {} {}\n", i, cost.bytes(), cost.flops,
                          plan.steps[i].name(), plan.steps[i].dims.to_string());
    }
  }
  for (const KernelRun& kernel : kernel_runs(plan, run.steps)) {
    total += kernel.cost;
    text +=
        fmt::format("caldera:   {:4} {}  {} {}\n", kernel.first, rates(kernel.cost, seconds_of(kernel.time)),
                    kernel.name(plan), plan.steps[kernel.first].dims.to_string());
  }
  const double seconds = seconds_of({run.begin, run.done});
  fmt::print(stderr, "{}caldera: run on {}: {} in {} dispatches, plan cache {}\n", text,
             plan.device.to_string(), rates(total, seconds), plan.dispatch_count(),
             run.cache_hit ? "hit" : "miss");
}

}  // namespace

RecordedGraph record_graph(const Capture& capture) {
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

double seconds_of(const StepTime& time) {
  return std::max(std::chrono::duration<double>(time.end - time.begin).count(), 1e-9);
}

std::string KernelRun::name(const Plan& plan) const {
  const std::string own = plan.steps[first].name();
  return count == 1 ? own : fmt::format("{} (and {} more)", own, count - 1);
}

std::vector<KernelRun> kernel_runs(const Plan& plan, std::span<const StepTime> times) {
  std::vector<KernelRun> kernels;
  kernels.reserve(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    const StepCost cost = cost_of(plan, plan.steps[i]);
    // A device that runs joined steps one by one gives each its own time.
    const bool same_dispatch = plan.steps[i].joined && !kernels.empty() &&
                               times[i].begin == kernels.back().time.begin &&
                               times[i].end == kernels.back().time.end;
    if (same_dispatch) {
      ++kernels.back().count;
      kernels.back().cost += cost;
    } else {
      kernels.push_back({.first = i, .count = 1, .time = times[i], .cost = cost});
    }
  }
  return kernels;
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

CopyRecorder::CopyRecorder(const DeviceCopy& copy) : copy_(copy), active_(is_recording()) {
  if (active_) begin_ = Clock::now();
}

CopyRecorder::~CopyRecorder() {
  if (!active_) return;
  const auto end = Clock::now();
  Records& r = records();
  const std::scoped_lock lock(r.mutex);
  if (is_recording())
    r.copies.push_back({copy_.from->device(), copy_.to->device(), copy_.bytes, thread_number(), begin_, end});
}

RunRecorder::RunRecorder(const Capture& capture) {
  const bool wanted = is_recording();
  if (!wanted && settings().debug < 2) return;
  record_ = std::make_shared<RunRecord>();
  hits_ = plan_cache().stats().hits;
  if (wanted) record_->graph = record_graph(capture);
}

std::shared_ptr<RunRecord> RunRecorder::record(const Executable& executable) const {
  if (!record_) return nullptr;
  record_->plan = executable.plan_ptr();
  record_->cache_hit = plan_cache().stats().hits > hits_;
  Records& r = records();
  const std::scoped_lock lock(r.mutex);
  if (is_recording()) r.runs.push_back(record_);
  return record_;
}

Ticket submit_recorded(Backend& backend, Job& job) {
  RunRecord& run = *job.record;
  run.thread = thread_number();
  run.steps.reserve(run.plan->steps.size());
  job.bindings.step_times = &run.steps;
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
  if (settings().debug >= 2) debug_run(run);
}

void debug_plan(const Plan& plan) {
  const int level = settings().debug;
  if (level < 1) return;
  fmt::print(stderr, "caldera: plan on {}: {} nodes -> {} dispatches, {} barriers, arena {} bytes\n",
             plan.device.to_string(), plan.node_count, plan.dispatch_count(), plan.barrier_count(),
             plan.arena_bytes);
  if (level >= 3) fmt::print(stderr, "{}", plan.to_string());
  if (level < 4) return;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (const GeneratedCode& code : generated_code(plan.steps[i]))
      fmt::print(stderr, "step {} {}\n{}", i, code.title, code.text);
  }
}

}  // namespace caldera
