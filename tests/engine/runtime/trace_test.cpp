// The trace that the profiler writes, read back as the Trace Event Format has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/caldera.h"
#include "engine/explain/records.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/inspect/explain.h"
#include "engine/runtime/profiler.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Json = nlohmann::json;

LazyTensor leaf(const Shape& shape, Device device) {
  return LazyTensor::from_vector(std::vector<float>(static_cast<std::size_t>(shape.numel()), 0.5F), shape,
                                 device);
}

/// Several kernels, some of which depend on others, and an arena.
std::vector<LazyTensor> program(Device device) {
  const LazyTensor x = leaf({64, 48}, device), w = leaf({48, 32}, device);
  const LazyTensor y = softmax(matmul(x, w));
  return {matmul(transpose(y), y), sum(exp(x), 0)};
}

/// A slice of a track.
struct Slice {
  std::string name;
  double begin = 0;
  double end = 0;
  Json args;
};

struct Trace {
  std::map<std::pair<int, int>, std::vector<Slice>> tracks;
  std::map<std::pair<int, int>, std::string> track_names;
  std::map<int, std::string> process_names;
  std::map<std::string, std::vector<std::pair<double, Json>>> counters;

  std::vector<Slice> slices(const std::string& process, const std::string& name) const {
    std::vector<Slice> found;
    for (const auto& [track, all] : tracks) {
      if (process_names.at(track.first) != process) continue;
      for (const Slice& slice : all)
        if (slice.name == name) found.push_back(slice);
    }
    return found;
  }
};

/// Checks what the format asks for on the way.
Trace read(const std::string& text) {
  Trace trace;
  const Json document = Json::parse(text);
  EXPECT_TRUE(document.at("traceEvents").is_array());
  double latest = 0;
  for (const Json& event : document.at("traceEvents")) {
    const std::string phase = event.at("ph");
    const int process = event.at("pid");
    const std::pair track{process, event.at("tid").get<int>()};
    if (phase == "M") {
      const std::string name = event.at("args").at("name");
      if (event.at("name") == "process_name") trace.process_names[process] = name;
      if (event.at("name") == "thread_name") trace.track_names[track] = name;
      continue;
    }
    const double at = event.at("ts");
    EXPECT_GE(at, latest) << "events come by time";
    latest = at;
    if (phase == "X") {
      const double length = event.at("dur");
      EXPECT_GE(length, 0);
      trace.tracks[track].push_back({event.at("name"), at, at + length, event.value("args", Json::object())});
    } else {
      EXPECT_EQ(phase, "C") << "an event of no kind that is written";
      for (const auto& [name, value] : event.at("args").items()) EXPECT_TRUE(value.is_number()) << name;
      trace.counters[event.at("name")].emplace_back(at, event.at("args"));
    }
  }
  for (const auto& [track, slices] : trace.tracks) {
    EXPECT_TRUE(trace.process_names.contains(track.first));
    EXPECT_TRUE(trace.track_names.contains(track)) << "a track without a name";
  }
  return trace;
}

/// Slices of a track lie within each other or apart, to a rounding of doubles.
void expect_nested(const std::vector<Slice>& slices) {
  constexpr double kRounding = 1e-3;  // a nanosecond
  std::vector<double> open;
  for (const Slice& slice : slices) {
    while (!open.empty() && open.back() <= slice.begin + kRounding) open.pop_back();
    const double outer = open.empty() ? slice.end : open.back();
    EXPECT_LE(slice.end, outer + kRounding) << slice.name;
    open.push_back(slice.end);
  }
}

class Traces : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }

 private:
  ScopedSettings scope_;
};
INSTANTIATE_TEST_SUITE_P(Devices, Traces, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST_P(Traces, HasHostAndDeviceTracksWithASliceForEachKernel) {
  const Device device = GetParam();
  const Profiler profiler;
  constexpr std::size_t kRuns = 3;
  for (std::size_t i = 0; i < kRuns; ++i) eval(program(device));
  const auto runs = profiler.runs();
  ASSERT_EQ(runs.size(), kRuns);
  const Trace trace = read(to_trace(runs, profiler.spans()));
  for (const auto& [track, slices] : trace.tracks) expect_nested(slices);
  for (const char* name : {"schedule", "submit", "wait"})
    EXPECT_EQ(trace.slices("host", name).size(), kRuns) << name;
  EXPECT_LE(trace.slices("host", "compile").size(), 1U);
  const std::vector<Slice> plans = trace.slices("devices", "plan");
  ASSERT_EQ(plans.size(), kRuns);

  const Plan& plan = *runs[0]->plan;
  ASSERT_GE(plan.dispatch_count(), 2);
  const auto is_joined = [](const Step& step) { return step.joined; };
  // What finishes a dispatch of a GPU is a kernel of its own on the CPU.
  const std::size_t count =
      device.kind == DeviceKind::vulkan
          ? static_cast<std::size_t>(plan.dispatch_count())
          : plan.steps.size() - static_cast<std::size_t>(std::ranges::count_if(plan.steps, is_joined));
  for (std::size_t r = 0; r < kRuns; ++r) {
    const std::vector<KernelRun> kernels = kernel_runs(plan, runs[r]->steps);
    ASSERT_EQ(kernels.size(), count) << "the device gives no times";
    double total = 0;
    for (const KernelRun& kernel : kernels) {
      // The slice that begins where the kernel began.
      const std::vector<Slice> named = trace.slices("devices", kernel.name(plan));
      const auto inside = std::count_if(named.begin(), named.end(), [&](const Slice& slice) {
        return slice.begin >= plans[r].begin - 1e-3 && slice.end <= plans[r].end + 1e-3;
      });
      EXPECT_GE(inside, 1) << kernel.name(plan);
      total += seconds_of(kernel.time);
      StepCost cost;
      for (std::size_t s = kernel.first; s < kernel.first + kernel.count; ++s)
        cost += cost_of(plan, plan.steps[s]);
      for (const Slice& slice : named) {
        if (slice.args.at("dims") != plan.steps[kernel.first].dims.to_string()) continue;
        EXPECT_EQ(slice.args.at("bytes"), cost.bytes());
        EXPECT_EQ(slice.args.at("flops"), cost.flops);
        EXPECT_GT(slice.args.at("gb_per_s").get<double>(), 0);
        EXPECT_TRUE(std::isfinite(slice.args.at("gflop_per_s").get<double>()));
      }
    }
    // Kernels of these devices run one after the other, within the run.
    EXPECT_LE(total, seconds_of({runs[r]->begin, runs[r]->done}));
  }
}

/// What `steps` is for: the time of a run, told apart. Long kernels, so that what is between them is
/// little.
TEST_P(Traces, TheTimesOfTheStepsSumToAboutTheWhole) {
  const Device device = GetParam();
  const std::int64_t n = device.kind == DeviceKind::cpu ? 768 : 256;
  const LazyTensor x = LazyTensor::full({n, n}, 1.0 / static_cast<double>(n), DType::f32, device).eval();
  const auto chain = [&] { return tanh(matmul(tanh(matmul(tanh(matmul(x, x)), x)), x)); };
  chain().eval();  // planned, and its kernels compiled
  // A loaded machine may put the host to sleep between the last kernel and the end: a few tries.
  double share = 0;
  for (int i = 0; i < 20 && share < 0.8; ++i) {
    const Profiler profiler;
    const std::uint64_t hits = plan_cache_stats().hits;
    chain().eval();
    const auto runs = profiler.runs();
    ASSERT_EQ(runs.size(), 1U);
    const RunRecord& run = *runs[0];
    ASSERT_GT(plan_cache_stats().hits, hits);
    ASSERT_EQ(run.steps.size(), run.plan->steps.size()) << "not a time for each step";
    double total = 0;
    for (const StepTime& step : run.steps) {
      EXPECT_LE(step.begin, step.end);
      EXPECT_GE(step.begin, run.begin - std::chrono::milliseconds(1)) << "another clock";
      EXPECT_LE(step.end, run.done + std::chrono::milliseconds(1));
    }
    for (const KernelRun& kernel : kernel_runs(*run.plan, run.steps)) total += seconds_of(kernel.time);
    const double whole = seconds_of({run.begin, run.done});
    EXPECT_LE(total, whole * 1.001);
    share = std::max(share, total / whole);
  }
  EXPECT_GE(share, 0.8);
}

TEST_P(Traces, HasCountersOfMemory) {
  const Device device = GetParam();
  const Profiler profiler;
  const std::vector<LazyTensor> outputs = program(device);
  eval(outputs);
  const auto runs = profiler.runs();
  ASSERT_EQ(runs.size(), 1U);
  const Trace trace = read(to_trace(runs, profiler.spans()));
  const auto& memory = trace.counters.at("memory of " + device.to_string());
  ASSERT_GE(memory.size(), 2U);
  const double outputs_bytes = 4 * (32 * 32 + 48);
  EXPECT_GE(memory.back().second.at("live").get<double>(), outputs_bytes);
  for (const auto& [at, values] : memory) {
    EXPECT_GE(values.at("peak").get<double>(), values.at("live").get<double>());
    EXPECT_GE(values.at("reserved").get<double>(), values.at("live").get<double>());
  }
  EXPECT_EQ(memory.back().second.at("reserved"), runs[0]->after.reserved_bytes);
  const auto& arena = trace.counters.at("arena of " + device.to_string());
  double most = 0;
  for (const auto& [at, values] : arena) most = std::max(most, values.at("used").get<double>());
  EXPECT_GT(most, 0);
  EXPECT_LE(most, static_cast<double>(runs[0]->plan->arena_bytes));
  EXPECT_EQ(arena.back().second.at("used"), 0);
}

TEST(Trace, SlicesThatOverlapGoOnTracksOfTheirOwn) {
  const ScopedSettings scope;
  const Profiler profiler;
  eval(program(Device::cpu()));
  auto run = std::make_shared<RunRecord>(*profiler.runs().at(0));
  // As on a device that runs two kernels side by side: the second begins in the middle of the first.
  ASSERT_GE(run->steps.size(), 2U);
  run->steps[1].begin = run->steps[0].begin + (run->steps[0].end - run->steps[0].begin) / 2;
  const std::vector<std::shared_ptr<const RunRecord>> runs{run};
  const Trace trace = read(to_trace(runs, {}));
  std::set<std::string> names;
  for (const auto& [track, slices] : trace.tracks) {
    expect_nested(slices);
    if (trace.process_names.at(track.first) == "devices") names.insert(trace.track_names.at(track));
  }
  EXPECT_EQ(names, (std::set<std::string>{"cpu", "cpu (2)"}));
}

TEST(Trace, StepsOfOneDispatchAreOneKernel) {
  const ScopedSettings scope;
  // Two small steps of one kernel that share a dispatch.
  const LazyTensor a = leaf({8}, Device::null()), b = leaf({9}, Device::null());
  const auto plan = plan_for({exp(a), exp(b)});
  ASSERT_EQ(plan->steps.size(), 2U);
  ASSERT_EQ(plan->dispatch_count(), 1);
  const auto t = [](int us) { return RunRecord::Time() + std::chrono::microseconds(us); };
  const std::vector<StepTime> shared{{t(5), t(9)}, {t(5), t(9)}};
  const std::vector<KernelRun> one = kernel_runs(*plan, shared);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].cost.bytes(), 2 * 4 * (8 + 9));
  EXPECT_NEAR(seconds_of(one[0].time), 4e-6, 1e-12);
  EXPECT_EQ(kernel_runs(*plan, std::vector<StepTime>{{t(5), t(9)}, {t(9), t(11)}}).size(), 2U);

  RunRecord run;
  run.plan = plan;
  run.steps = shared;
  const Explanation e = explain(run);
  ASSERT_EQ(e.step_seconds.size(), 2U);
  EXPECT_NEAR(e.step_seconds[0] + e.step_seconds[1], 4e-6, 1e-12) << "the time of a dispatch counts once";
}

TEST(Trace, AnEmptyRecordingIsATraceToo) {
  const Trace trace = read(to_trace({}, {}));
  EXPECT_TRUE(trace.tracks.empty());
}

}  // namespace
}  // namespace caldera::testing
