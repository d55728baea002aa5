// Chrome's trace format.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/runtime/explain.h"

namespace caldera {
namespace {

using Json = nlohmann::ordered_json;
using Time = RunRecord::Time;

constexpr int kHost = 1;
constexpr int kDevices = 2;

class TraceWriter {
 public:
  explicit TraceWriter(Time start) : start_(start) {}

  void name_process(int process, const char* name) {
    add({{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"tid", 0}, {"args", {{"name", name}}}});
  }
  void name_track(int process, std::uint32_t track, const std::string& name) {
    add({{"name", "thread_name"}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}});
  }
  void span(int process, std::uint32_t track, std::string_view name, Time begin, Time end, Json args) {
    Json event{{"name", name}, {"ph", "X"},       {"pid", process},
               {"tid", track}, {"ts", us(begin)}, {"dur", us(end) - us(begin)}};
    if (!args.empty()) event["args"] = std::move(args);
    add(std::move(event));
  }
  std::string finish() {
    const Json document{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events_)}};
    return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  double us(Time time) const { return std::chrono::duration<double, std::micro>(time - start_).count(); }
  void add(Json event) { events_.push_back(std::move(event)); }

  Time start_;
  Json events_ = Json::array();
};

Json step_arguments(const Plan& plan, const Step& step, double seconds) {
  const StepCost cost = cost_of(plan, step);
  return {{"kind", name(step.kind)},
          {"dims", step.dims.to_string()},
          {"ops", cost.ops},
          {"flops", cost.flops},
          {"bytes", cost.bytes()},
          {"gb_per_s", static_cast<double>(cost.bytes()) / seconds * 1e-9},
          {"gflop_per_s", static_cast<double>(cost.flops) / seconds * 1e-9}};
}

}  // namespace

std::string to_trace(std::span<const std::shared_ptr<const RunRecord>> runs,
                     std::span<const HostSpan> spans) {
  Time start = Time::max();
  std::map<std::uint32_t, bool> threads;
  for (const HostSpan& span : spans) {
    start = std::min(start, span.begin);
    threads[span.thread] = true;
  }
  for (const auto& run : runs) {
    start = std::min(start, run->begin);
    threads[run->thread] = true;
    threads[run->waiter] = true;
  }

  TraceWriter trace(start);
  trace.name_process(kHost, "host");
  trace.name_process(kDevices, "devices");
  for (const auto& [thread, used] : threads)
    trace.name_track(kHost, thread, fmt::format("thread {}", thread));
  for (const HostSpan& span : spans) trace.span(kHost, span.thread, span.name, span.begin, span.end, {});

  std::map<std::string, std::uint32_t> tracks;
  for (const auto& run : runs) {
    const Plan& plan = *run->plan;
    const std::string device = plan.device.to_string();
    const auto [track, is_new] = tracks.emplace(device, static_cast<std::uint32_t>(tracks.size()));
    if (is_new) trace.name_track(kDevices, track->second, device);
    trace.span(kHost, run->thread, "submit", run->begin, run->submitted, {});
    trace.span(kHost, run->waiter, "wait", run->waited, run->done, {});
    Json arguments{{"nodes", plan.node_count},
                   {"dispatches", plan.dispatch_count()},
                   {"arena_bytes", plan.arena_bytes},
                   {"cache", run->cache_hit ? "hit" : "miss"}};
    if (run->steps.empty()) {
      for (const Step& step : plan.steps) arguments["steps"].push_back(step.name());
    }
    trace.span(kDevices, track->second, "plan", run->begin, run->done, std::move(arguments));
    for (std::size_t i = 0; i < run->steps.size(); ++i) {
      const StepTime& time = run->steps[i];
      trace.span(kDevices, track->second, plan.steps[i].name(), time.begin, time.end,
                 step_arguments(plan, plan.steps[i], seconds_of(time)));
    }
  }
  return trace.finish();
}

}  // namespace caldera
