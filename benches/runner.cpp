#include "benches/runner.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <thread>

#include "benches/clock.h"
#include "engine/device/cpu_threads.h"
#include "engine/explain/records.h"
#include "engine/runtime/profiler.h"
#include "engine/runtime/runtime.h"

namespace caldera::bench {
namespace {

constexpr std::int64_t kMaxIterations = 1'000'000;
// Passes beside the timed one, for submit and device time, take this share of it.
constexpr std::int64_t kSideShare = 5;
// Iterations of so many seconds need no other one before them, and the device's time of one says enough.
constexpr double kLong = 0.2;
// OpenMP threads of the one that ran before spin for so long; they must not take cores from the next.
constexpr std::chrono::milliseconds kSettle{5};

/// A value below which the share `at` of the sorted values is, between neighbours in proportion.
double quantile(const std::vector<double>& sorted, double at) {
  const double position = at * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
}

struct Statistic {
  double median = 0;
  double spread = 0;
};

Statistic statistic(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double median = quantile(values, 0.5);
  return {median, median > 0 ? (quantile(values, 0.75) - quantile(values, 0.25)) / median : 0};
}

/// Collects the repetitions' times; prints nothing.
class Collector final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration && run.iterations > 0)
        seconds.push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
  }
  std::vector<double> seconds;  // an iteration
};

class Runner {
 public:
  Runner(const Case& c, Device device, Peer* peer, const Options& options)
      : case_(c), device_(device), work_(c.make(device)), peer_(peer), options_(options) {}

  void warm_up() {
    const Clock::time_point start = Clock::now();
    iterate();
    first_seconds_ = seconds_since(start);
    iterate();
    double best = HUGE_VAL;
    double spent = 0;
    for (int i = 0; i < 100 && spent < options_.repetition_seconds / 5; ++i) {
      if (work_.before) work_.before();
      const Clock::time_point begin = Clock::now();
      timed_part();
      const double seconds = seconds_since(begin);
      best = std::min(best, seconds);
      spent += seconds;
    }
    iterations_ = iterations_for(best);
    is_long_ = best > kLong;
    if (work_.rival) {
      work_.rival();
      const Clock::time_point begin = Clock::now();
      work_.rival();
      rival_iterations_ = iterations_for(seconds_since(begin));
    }
  }

  void open_peer(const std::function<void(const std::string&)>& note) {
    if (peer_ == nullptr || peer_->request_of(case_).is_null()) return;
    nlohmann::json request = peer_->request_of(case_);
    if (!work_.model_file.empty()) request["model"] = work_.model_file;
    peer_case_ = peer_->open(request);
    if (peer_case_) {
      peer_iterations_ = iterations_for(peer_case_->seconds);
      // What llama-bench says of a token is the mean of so many, the first of which wakes threads and caches.
      iterations_ = std::max(iterations_, request.value("generate", std::int64_t{1}));
    } else {
      note(fmt::format("{}: {} cannot run it: {}", case_.name, peer_->library(), peer_->error()));
    }
  }

  void run() {
    Collector collector;
    benchmark::RegisterBenchmark(case_.name.c_str(), [this](benchmark::State& state) { repetition(state); })
        ->Iterations(iterations_)
        ->Repetitions(options_.repetitions)
        ->UseRealTime();
    benchmark::RunSpecifiedBenchmarks(&collector, ".");
    benchmark::ClearRegisteredBenchmarks();
    if (peer_case_) peer_->close();
    if (error_) std::rethrow_exception(error_);
    seconds_ = std::move(collector.seconds);
  }

  /// Says so where a peer that could run the case failed later.
  void report_peer(const std::function<void(const std::string&)>& note) const {
    const auto wanted = static_cast<std::size_t>(options_.repetitions);
    if (!peer_case_ || peer_seconds_.size() >= wanted) return;
    note(fmt::format("{}: {} ran {} of {} repetitions: {}", case_.name, peer_->library(),
                     peer_seconds_.size(), wanted, peer_->error()));
  }

  double bytes() const { return work_.bytes > 0 ? work_.bytes : case_.bytes; }

  Result result() const {
    Result r;
    r.name = case_.name;
    r.shape = case_.shape;
    r.dtype = name(case_.dtype);
    r.operations = case_.operations;
    r.iterations = iterations_;
    r.first_us = first_seconds_ * 1e6;
    const Statistic total = statistic(seconds_);
    r.total_us = total.median * 1e6;
    r.spread = total.spread;
    if (!submit_seconds_.empty()) r.submit_us = statistic(submit_seconds_).median * 1e6;
    if (!device_seconds_.empty()) r.device_us = statistic(device_seconds_).median * 1e6;
    if (case_.bound_us > 0) r.bound_us = case_.bound_us;
    if (case_.aim_ratio > 0) r.aim_ratio = case_.aim_ratio;
    if (bytes() > 0) r.gb_per_s = bytes() / total.median / 1e9;
    if (case_.tokens > 0) r.tokens_per_s = case_.tokens / total.median;
    r.tokens = case_.tokens;
    r.threads = case_.threads > 0 ? case_.threads : cpu_threads();
    if (case_.flops > 0) r.gflop_per_s = case_.flops / total.median / 1e9;
    if (!rival_seconds_.empty()) {
      const Statistic rival = statistic(rival_seconds_);
      r.peers[work_.rival_name] = {rival.median * 1e6, rival.spread, "the named operation of this engine"};
    }
    if (!peer_seconds_.empty()) {
      const Statistic other = statistic(peer_seconds_);
      const std::string& library = peer_->library();
      r.peers[library.substr(0, library.find(' '))] = {other.median * 1e6, other.spread, peer_case_->setting};
    }
    return r;
  }

 private:
  std::int64_t iterations_for(double seconds) const {
    return std::clamp(static_cast<std::int64_t>(options_.repetition_seconds / std::max(seconds, 1e-9)),
                      std::int64_t{1}, kMaxIterations);
  }

  void timed_part() {
    if (work_.run) return work_.run();
    eval(work_.build());
    if (work_.finish) work_.finish();
  }
  void iterate() {
    if (work_.before) work_.before();
    timed_part();
  }

  /// One turn of each: this engine's loop, which Google Benchmark times, then the others'.
  void repetition(benchmark::State& state) {
    try {
      std::this_thread::sleep_for(kSettle);
      if (!is_long_) iterate();
      // Work that must be prepared is timed without the preparation.
      if (work_.before) {
        for ([[maybe_unused]] auto _ : state) {
          state.PauseTiming();
          work_.before();
          state.ResumeTiming();
          timed_part();
        }
      } else {
        for ([[maybe_unused]] auto _ : state) timed_part();
      }
      const std::int64_t side = std::max<std::int64_t>(1, iterations_ / kSideShare);
      measure_submit(side);
      if (!is_long_ || device_seconds_.empty()) measure_device(side);
      if (work_.rival) {
        std::this_thread::sleep_for(kSettle);
        work_.rival();
        const Clock::time_point start = Clock::now();
        for (std::int64_t i = 0; i < rival_iterations_; ++i) work_.rival();
        rival_seconds_.push_back(seconds_since(start) / static_cast<double>(rival_iterations_));
      }
      if (peer_case_) {
        std::this_thread::sleep_for(kSettle);
        if (const auto seconds = peer_->run(peer_iterations_)) peer_seconds_.push_back(*seconds);
      }
    } catch (...) {
      error_ = std::current_exception();
      state.SkipWithError("failed");
    }
  }

  void measure_submit(std::int64_t iterations) {
    if (!work_.build) return;
    double total = 0;
    for (std::int64_t i = 0; i < iterations; ++i) {
      const Clock::time_point start = Clock::now();
      std::vector<LazyTensor> outputs = work_.build();
      const EvalFuture future = eval_async(outputs);
      total += seconds_since(start);
      future.get();
      if (work_.finish) work_.finish();
    }
    submit_seconds_.push_back(total / static_cast<double>(iterations));
  }

  void measure_device(std::int64_t iterations) {
    double total = 0;
    // Records hold graphs: not more of them than a few iterations make.
    const std::int64_t count = std::min<std::int64_t>(iterations, 50);
    for (std::int64_t i = 0; i < count; ++i) {
      const Profiler profiler;
      iterate();
      // Cases that measure the graph evaluate on the device that computes nothing.
      for (const auto& record : profiler.runs())
        if (record->plan->device == device_)
          total += std::chrono::duration<double>(record->done - record->begin).count();
    }
    if (total > 0) device_seconds_.push_back(total / static_cast<double>(count));
  }

  const Case& case_;
  Device device_;
  Work work_;
  Peer* peer_;
  const Options& options_;
  std::optional<Peer::Case> peer_case_;
  std::int64_t iterations_ = 1;
  bool is_long_ = false;
  std::int64_t rival_iterations_ = 1;
  std::int64_t peer_iterations_ = 1;
  double first_seconds_ = 0;
  std::vector<double> seconds_;
  std::vector<double> submit_seconds_;
  std::vector<double> device_seconds_;
  std::vector<double> rival_seconds_;
  std::vector<double> peer_seconds_;
  std::exception_ptr error_;
};

}  // namespace

Result run_case(const Case& c, Device device, const Limits& limits, Peer* peer, const Options& options,
                const std::function<void(const std::string&)>& note) {
  Runner runner(c, device, peer, options);
  runner.warm_up();
  runner.open_peer(note);
  runner.run();
  runner.report_peer(note);
  Result result = runner.result();
  result.device = device.to_string();
  result.limit_us = limits.limit_us(runner.bytes(), c.flops, c.dtype);
  result.bound_by = limits.bound_by(runner.bytes(), c.flops, c.dtype, result.total_us, result.device_us);
  result.share = limits.share(c.yardstick, runner.bytes(), c.flops, result.total_us);
  result.share_of = name(c.yardstick);
  return result;
}

nlohmann::ordered_json machine_json() {
  const benchmark::CPUInfo& cpu = benchmark::CPUInfo::Get();
  nlohmann::ordered_json caches = nlohmann::ordered_json::array();
  for (const benchmark::CPUInfo::CacheInfo& cache : cpu.caches) {
    caches.push_back({{"type", cache.type},
                      {"level", cache.level},
                      {"bytes", cache.size},
                      {"sharing", cache.num_sharing}});
  }
  return {{"cpus", cpu.num_cpus}, {"mhz", std::round(cpu.cycles_per_second / 1e6)}, {"caches", caches}};
}

}  // namespace caldera::bench
