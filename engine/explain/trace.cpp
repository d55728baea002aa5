// Chrome's Trace Event Format: a JSON object with a list of events. "X" is a slice of a track (pid, tid) with
// microseconds of start and length, "C" a sample of a counter, "M" the name of a process or track.
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/explain/explained_plan.h"
#include "engine/explain/explanation.h"
#include "engine/explain/records.h"

namespace caldera {
namespace {

using Json = nlohmann::ordered_json;
using Time = RunRecord::Time;

constexpr int kHost = 1;
constexpr int kDevices = 2;

struct TraceSlice {
  std::string name;
  Time begin, end;
  Json arguments;
};

/// Slices of one track must be within each other or apart. Gives each slice, which must come by time of
/// their begin, the first lane where it does.
class Lanes {
 public:
  std::size_t lane_for(const TraceSlice& slice) {
    for (std::size_t lane = 0; lane < open_.size(); ++lane) {
      std::vector<Time>& ends = open_[lane];
      while (!ends.empty() && ends.back() <= slice.begin) ends.pop_back();
      if (!ends.empty() && ends.back() < slice.end) continue;
      ends.push_back(slice.end);
      return lane;
    }
    open_.push_back({slice.end});
    return open_.size() - 1;
  }

 private:
  std::vector<std::vector<Time>> open_;  // of each lane: ends of the slices that are open, the innermost last
};

class TraceWriter {
 public:
  explicit TraceWriter(Time start) : start_(start) {}

  void name_process(int process, const char* name) {
    events_.push_back(
        {{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"tid", 0}, {"args", {{"name", name}}}});
  }
  void name_track(int process, std::uint32_t track, const std::string& name) {
    events_.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}});
  }
  void slice(int process, std::uint32_t track, const TraceSlice& slice) {
    Json event{{"name", slice.name},    {"ph", "X"},
               {"pid", process},        {"tid", track},
               {"ts", us(slice.begin)}, {"dur", us(slice.end) - us(slice.begin)}};
    if (!slice.arguments.empty()) event["args"] = slice.arguments;
    events_.push_back(std::move(event));
  }
  void counter(const std::string& name, Time at, Json values) {
    events_.push_back({{"name", name},
                       {"ph", "C"},
                       {"pid", kDevices},
                       {"tid", 0},
                       {"ts", us(at)},
                       {"args", std::move(values)}});
  }
  /// Events by time, names first.
  std::string finish() {
    const auto time = [](const Json& event) { return event.value("ts", -1.0); };
    std::stable_sort(events_.begin(), events_.end(),
                     [&](const Json& a, const Json& b) { return time(a) < time(b); });
    const Json document{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events_)}};
    return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  double us(Time time) const { return std::chrono::duration<double, std::micro>(time - start_).count(); }

  Time start_;
  std::vector<Json> events_;
};

Json kernel_arguments(const Plan& plan, const KernelRun& kernel) {
  const Step& step = plan.steps[kernel.first];
  const double seconds = seconds_of(kernel.time);
  return {{"kind", step.kind()},
          {"dims", step.dims.to_string()},
          {"steps", kernel.count},
          {"ops", kernel.cost.ops},
          {"flops", kernel.cost.flops},
          {"bytes", kernel.cost.bytes()},
          {"gb_per_s", static_cast<double>(kernel.cost.bytes()) / seconds * 1e-9},
          {"gflop_per_s", static_cast<double>(kernel.cost.flops) / seconds * 1e-9}};
}

/// The plan and its kernels. A device's clock is brought to the host's with some error: what would stick out
/// of the run is cut.
std::vector<TraceSlice> slices_of(const RunRecord& run) {
  const Plan& plan = *run.plan;
  TraceSlice whole{.name = "plan",
                   .begin = run.begin,
                   .end = run.done,
                   .arguments = {{"nodes", plan.node_count},
                                 {"dispatches", plan.dispatch_count()},
                                 {"barriers", plan.barrier_count()},
                                 {"arena_bytes", plan.arena_bytes},
                                 {"cache", run.cache_hit ? "hit" : "miss"}}};
  if (run.steps.empty()) {
    for (const Step& step : plan.steps) whole.arguments["steps"].push_back(step.name());
  }
  std::vector<TraceSlice> slices{std::move(whole)};
  for (const KernelRun& kernel : kernel_runs(plan, run.steps)) {
    const Time begin = std::clamp(kernel.time.begin, run.begin, run.done);
    slices.push_back({.name = kernel.name(plan),
                      .begin = begin,
                      .end = std::clamp(kernel.time.end, begin, run.done),
                      .arguments = kernel_arguments(plan, kernel)});
  }
  return slices;
}

void write_memory(TraceWriter& trace, const RunRecord& run) {
  const Plan& plan = *run.plan;
  const std::string device = plan.device.to_string();
  const auto sample = [&](Time at, const DeviceCounters& counters) {
    trace.counter("memory of " + device, at,
                  {{"live", counters.live_bytes},
                   {"peak", counters.peak_bytes},
                   {"reserved", counters.reserved_bytes}});
  };
  sample(run.begin, run.before);
  sample(run.done, run.after);
  if (plan.arena_bytes == 0) return;
  const std::string arena = "arena of " + device;
  const auto used = [&](Time at, std::int64_t bytes) {
    trace.counter(arena, std::clamp(at, run.begin, run.done), {{"used", bytes}});
  };
  const std::vector<std::int64_t> live = live_bytes(plan, arena_lives(plan));
  if (run.steps.empty()) used(run.begin, *std::max_element(live.begin(), live.end()));
  for (const KernelRun& kernel : kernel_runs(plan, run.steps)) used(kernel.time.begin, live[kernel.first]);
  used(run.done, 0);
}

}  // namespace

std::string to_trace(std::span<const std::shared_ptr<const RunRecord>> runs, std::span<const HostSpan> spans,
                     std::span<const CopyRecord> copies) {
  Time start = Time::max();
  std::set<std::uint32_t> threads;
  const auto meet = [&](std::uint32_t thread, Time begin) {
    threads.insert(thread);
    start = std::min(start, begin);
  };
  for (const HostSpan& span : spans) meet(span.thread, span.begin);
  for (const CopyRecord& copy : copies) meet(copy.thread, copy.begin);
  for (const auto& run : runs) {
    meet(run->thread, run->begin);
    meet(run->waiter, run->waited);
  }

  TraceWriter trace(start);
  trace.name_process(kHost, "host");
  trace.name_process(kDevices, "devices");
  for (const std::uint32_t thread : threads)
    trace.name_track(kHost, thread, fmt::format("thread {}", thread));
  for (const HostSpan& span : spans)
    trace.slice(kHost, span.thread, {std::string(span.name), span.begin, span.end, {}});
  for (const CopyRecord& copy : copies) {
    const double seconds = seconds_of({copy.begin, copy.end});
    trace.slice(kHost, copy.thread,
                {fmt::format("copy {} to {}", copy.from.to_string(), copy.to.to_string()),
                 copy.begin,
                 copy.end,
                 {{"bytes", copy.bytes}, {"gb_per_s", static_cast<double>(copy.bytes) / seconds * 1e-9}}});
  }

  std::map<std::string, std::vector<TraceSlice>> slices;  // of each device
  for (const auto& run : runs) {
    trace.slice(kHost, run->thread, {"submit", run->begin, run->submitted, {}});
    trace.slice(kHost, run->waiter, {"wait", run->waited, run->done, {}});
    std::vector<TraceSlice>& all = slices[run->plan->device.to_string()];
    for (TraceSlice& slice : slices_of(*run)) all.push_back(std::move(slice));
    write_memory(trace, *run);
  }
  std::uint32_t next_track = 0;
  for (auto& [device, all] : slices) {
    std::stable_sort(all.begin(), all.end(), [](const TraceSlice& a, const TraceSlice& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;  // what contains the other first
    });
    Lanes lanes;
    std::vector<std::uint32_t> tracks;
    for (const TraceSlice& slice : all) {
      const std::size_t lane = lanes.lane_for(slice);
      if (lane == tracks.size()) {
        tracks.push_back(next_track++);
        trace.name_track(kDevices, tracks.back(),
                         lane == 0 ? device : fmt::format("{} ({})", device, lane + 1));
      }
      trace.slice(kDevices, tracks[lane], slice);
    }
  }
  return trace.finish();
}

}  // namespace caldera
