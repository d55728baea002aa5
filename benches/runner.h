// Runs cases on Google Benchmark: repetitions of this engine and of its peers, in turns.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "benches/case.h"
#include "benches/limits.h"
#include "benches/peer.h"

namespace caldera::bench {

struct Options {
  int repetitions = 7;
  /// Length of one repetition; at least one iteration.
  double repetition_seconds = 0.05;
};

/// Figures of one case. Times are microseconds an iteration: medians of the repetitions.
struct Result {
  std::string name;
  std::string shape;
  std::string dtype;
  std::string device;
  /// Building the graph and handing it over, with eval_async: until the program may go on. Nothing for eager
  /// calls, which return when they are done.
  std::optional<double> submit_us;
  /// From the submission of the plan to the device until its results are there: recorded by the profiler, in
  /// a pass of its own. Nothing where nothing is computed.
  std::optional<double> device_us;
  /// Building, evaluating and waiting.
  double total_us = 0;
  /// Interquartile range of the repetitions over their median.
  double spread = 0;
  /// The first iteration, which also plans, compiles kernels and makes pipelines.
  double first_us = 0;
  std::optional<double> limit_us;
  /// Says what holds the row back most: "memory", "compute", "overhead". Nothing where it has no limit.
  std::string bound_by;
  std::optional<double> bound_us;
  std::optional<double> aim_ratio;
  std::optional<double> gb_per_s;
  std::optional<double> gflop_per_s;
  std::optional<double> tokens_per_s;
  double tokens = 0;  // of an iteration
  /// Which share of what the machine can do the rate is, and what that is: "read bandwidth", "peak of
  /// floats", "peak of integers".
  std::optional<double> share;
  std::string share_of;
  int threads = 0;  // of the CPU
  int operations = 1;
  std::int64_t iterations = 0;  // a repetition
  struct PeerFigure {
    double us = 0;
    double spread = 0;
    std::string setting;
  };
  std::map<std::string, PeerFigure> peers;
};

/// Throws what the case throws. Where the peer cannot run a case, `note` says why and the case goes on
/// without it.
Result run_case(const Case& c, Device device, const Limits& limits, Peer* peer, const Options& options,
                const std::function<void(const std::string&)>& note);

/// Returns what Google Benchmark knows of the machine:
/// {"cpus","mhz","caches":[{"type","level","bytes","sharing"}]}.
nlohmann::ordered_json machine_json();

}  // namespace caldera::bench
