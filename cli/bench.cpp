// caldera bench: the microbenchmark suite, each figure beside what the machine allows and what a peer
// reaches.
#include "cli/arguments/command.h"
#include "cli/arguments/domains.h"

#if CALDERA_HAS_BENCHMARK
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string_view>

#include "benches/baseline.h"
#include "benches/case.h"
#include "benches/limits.h"
#include "benches/llama_peer.h"
#include "benches/peer.h"
#include "benches/picture.h"
#include "benches/report.h"
#include "benches/runner.h"
#include "benches/suites/suites.h"
#include "cli/files/outputs.h"
#include "engine/device/cpu_threads.h"
#include "engine/runtime/runtime.h"
#include "lm/base/atomic_file.h"
#endif

namespace caldera::cli {
namespace {

constexpr const char* kBaseline = "benches/baseline.json";

class BenchCommand : public Command {
 public:
  BenchCommand()
      : Command("bench", "Measure operations, graphs and training steps, beside PyTorch where it is") {}

 protected:
  void add_options(Arguments& args) override {
    args.option(
            "--suite", suite_,
            "seeds, ops, train, graph, all of these; decode: tokens a second of models of random weights; or "
            "lavapipe: those cases that ggml was measured on there")
        .show_default()
        .one_of({"seeds", "ops", "train", "graph", "decode", "lavapipe", "all"});
    args.option(
            "--filter", filter_,
            "Only the cases whose name has a match of this regular expression; most of decode's run where it "
            "asks for them alone")
        .type_name("RE");
    args.option("--repetitions", repetitions_, "Repetitions of each case, of which the median is taken")
        .type_name("N")
        .show_default()
        .check(integer_in(1, 1000));
    args.option("--repetition-ms", repetition_ms_, "Length of a repetition; at least one iteration")
        .type_name("MS")
        .show_default()
        .check(positive_number());
    args.option(
            "--peer", peer_,
            "torch: PyTorch, where it is installed; llama.cpp, or llama.cpp=PATH: its program llama-bench, "
            "for "
            "the suite decode; none; or a shell command that speaks the protocol of benches/torch_worker.py")
        .type_name("PEER")
        .show_default()
        .check(not_empty());
    args.option("--markdown", markdown_,
                "Also write the tables into this file, between its bench:begin and "
                "bench:end lines")
        .type_name("FILE")
        .check(not_empty());
    args.option("--picture", picture_,
                "Also draw the rows that have a peer into this file, as SVG: each row's time over the peer's")
        .type_name("FILE")
        .check(not_empty());
    check_option_ =
        args.option(
                "--check", check_,
                "Compare with this baseline: ratios to the peer, or to the machine's limit where either run "
                "had none; rows that are more than 15 % worse in each of three tries are an error")
            .type_name("FILE")
            .show_default(kBaseline)
            .optional_value();
    args.option("--save-baseline", save_baseline_, "Write these figures as such a baseline")
        .type_name("FILE")
        .check(not_empty());
    args.flag("--list", list_, "Print the names of the cases and do nothing");
  }

  void run() override;

 private:
  std::string baseline_file() const { return check_.empty() ? kBaseline : check_; }

  std::string suite_ = "all";
  std::string filter_;
  int repetitions_ = 7;
  double repetition_ms_ = 50;
  std::string peer_ = "torch";
  std::string markdown_;
  std::string picture_;
  Option check_option_;
  std::string check_;
  std::string save_baseline_;
  bool list_ = false;
};

#if CALDERA_HAS_BENCHMARK

/// Those to run, or, with `list`, to name.
std::vector<bench::Case> cases_of(const std::string& suite, const std::string& filter, bool list) {
  std::vector<bench::Case> cases;
  const auto add = [&](const char* name, std::vector<bench::Case> (*make)()) {
    if (suite != "all" && suite != name) return;
    for (bench::Case& c : make()) cases.push_back(std::move(c));
  };
  add("seeds", bench::seeds_suite);
  add("ops", bench::ops_suite);
  add("train", bench::train_suite);
  add("graph", bench::graph_suite);
  if (suite == "lavapipe") cases = bench::lavapipe_suite();
  if (suite == "decode") cases = bench::decode_suite();
  if (filter.empty()) {
    if (!list) std::erase_if(cases, [](const bench::Case& c) { return c.on_request; });
    return cases;
  }
  try {
    const std::regex pattern(filter, std::regex::ECMAScript);
    std::erase_if(cases, [&](const bench::Case& c) { return !std::regex_search(c.name, pattern); });
  } catch (const std::regex_error& error) {
    throw UsageError(fmt::format("--filter: '{}' is no regular expression: {}", filter, error.what()));
  }
  if (cases.empty()) {
    throw UsageError(
        fmt::format("--filter: no case of the suite '{}' has a name that matches '{}' (--list prints "
                    "the names)",
                    suite, filter));
  }
  return cases;
}

constexpr std::string_view kLlama = "llama.cpp";

/// The processor's name as the system has it.
std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

nlohmann::ordered_json variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json describe_environment(Device device) {
  const DeviceInfo& info = device_info(device);
  return {{"date", fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)))},
          {"cpu", cpu_name()},
          {"machine", bench::machine_json()},
          {"load_average", load_average()},
          {"device", device.to_string()},
          {"device_name", info.name},
          {"driver", info.driver},
          {"threads", cpu_threads()},
          {"fusion", settings().fusion},
          {"plan_cache", settings().plan_cache},
          {"compiler", __VERSION__},
          {"variables",
           {{"OPENBLAS_CORETYPE", variable("OPENBLAS_CORETYPE")},
            {"OMP_WAIT_POLICY", variable("OMP_WAIT_POLICY")},
            {"GOMP_SPINCOUNT", variable("GOMP_SPINCOUNT")}}}};
}

nlohmann::ordered_json check_json(const std::string& file, const bench::Baseline& baseline,
                                  const std::vector<bench::Result>& results,
                                  const std::vector<bench::Loss>& losses) {
  nlohmann::ordered_json slower = nlohmann::ordered_json::array(), added = nlohmann::ordered_json::array();
  for (const bench::Loss& loss : losses)
    slower.push_back({{"name", loss.name}, {"of", loss.of}, {"before", loss.before}, {"now", loss.now}});
  for (const bench::Result& result : results)
    if (!baseline.has(result.name)) added.push_back(result.name);
  return {
      {"baseline", file}, {"tolerance", bench::kTolerance}, {"slower", slower}, {"not_in_baseline", added}};
}

void BenchCommand::run() {
  const std::vector<bench::Case> cases = cases_of(suite_, filter_, list_);
  if (list_) {
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const bench::Case& c : cases) names.push_back(c.name);
    if (json()) return print_json(names);
    for (const bench::Case& c : cases) fmt::print("{}\n", c.name);
    return;
  }
  const Device device = open_device();
  const bench::Baseline baseline =
      check_option_.given() ? bench::Baseline::read(baseline_file()) : bench::Baseline();
  // Figures that cost minutes are not to be lost to a folder that is missing.
  if (!markdown_.empty()) {
    bench::check_markdown(markdown_);
    check_output_file(markdown_, "--markdown");
  }
  if (!picture_.empty()) check_output_file(picture_, "--picture");
  if (!save_baseline_.empty()) check_output_file(save_baseline_, "--save-baseline");

  nlohmann::ordered_json environment = describe_environment(device);
  note("bench: measuring the limits of " + device.to_string());
  std::vector<DType> types;
  types.reserve(cases.size());
  for (const bench::Case& c : cases) types.push_back(c.dtype);
  // By threads: of the CPU, a part of which has limits of its own.
  std::map<int, bench::Limits> limits;
  const auto threads_of = [&](const bench::Case& c) {
    return c.threads > 0 && device.kind == DeviceKind::cpu ? c.threads : cpu_threads();
  };
  limits.emplace(cpu_threads(), bench::Limits::measure(device, types));
  environment["limits"] = limits.at(cpu_threads()).to_json();
  for (const bench::Case& c : cases) {
    const int threads = threads_of(c);
    if (limits.contains(threads)) continue;
    const bench::ThreadScope scope(threads);
    const bench::Limits& measured =
        limits.emplace(threads, bench::Limits::measure(device, types)).first->second;
    environment["limits_of_threads"][std::to_string(threads)] = measured.to_json();
  }
  environment["repetitions"] = repetitions_;
  environment["repetition_ms"] = repetition_ms_;

  std::unique_ptr<bench::Peer> peer;
  const bool is_llama = peer_ == kLlama || peer_.starts_with(fmt::format("{}=", kLlama));
  const bool wanted = std::ranges::any_of(
      cases, [&](const bench::Case& c) { return !(is_llama ? c.llama_bench : c.peer).is_null(); });
  if (is_llama && !wanted)
    note("bench: without a peer: llama-bench runs none of these cases; --suite decode has some");
  if (peer_ != "none" && wanted) {
    const bool on_gpu = device_info(device).type.ends_with("-gpu");
    if (is_llama)
      peer =
          std::make_unique<bench::LlamaPeer>(peer_.substr(std::min(peer_.size(), kLlama.size() + 1)), on_gpu);
    else
      peer = std::make_unique<bench::WorkerPeer>(peer_ == "torch" ? "" : peer_, cpu_threads(), on_gpu);
    note(peer->available() ? fmt::format("bench: beside {}", peer->library())
                           : fmt::format("bench: without a peer: {}", peer->error()));
    // What was opened for the peer has chosen OpenBLAS's kernels by now, if this program had not before.
    environment["variables"]["OPENBLAS_CORETYPE"] = variable("OPENBLAS_CORETYPE");
  }
  bench::Peer* const beside = peer && peer->available() ? peer.get() : nullptr;
  environment["peer"] =
      beside != nullptr ? nlohmann::ordered_json(beside->library()) : nlohmann::ordered_json(nullptr);

  const bench::Options options{.repetitions = repetitions_, .repetition_seconds = repetition_ms_ / 1e3};
  const auto measure = [&](const bench::Case& c) {
    return bench::run_case(c, device, limits.at(threads_of(c)), beside, options,
                           [this](const std::string& line) { note("bench: " + line); });
  };
  std::vector<bench::Result> results;
  std::vector<bench::Loss> losses;
  std::vector<std::string> failures;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    note(fmt::format("bench: {}/{} {}", i + 1, cases.size(), cases[i].name));
    if (!supports(device, cases[i].dtype)) {
      note(fmt::format("bench: {}: skipped, {} does not compute with {}", cases[i].name, device.to_string(),
                       caldera::name(cases[i].dtype)));
      continue;
    }
    try {
      bench::Result result = measure(cases[i]);
      std::optional<bench::Loss> loss = baseline.loss(result);
      for (int t = 1; t < bench::kTries && loss; ++t) {
        note(fmt::format("bench: {}: {:.3g} times {}, {:.3g} before; once more", cases[i].name, loss->now,
                         loss->of, loss->before));
        bench::Result again = measure(cases[i]);
        const std::optional<bench::Loss> still = baseline.loss(again);
        if (still && still->now > loss->now) continue;
        result = std::move(again);
        loss = still;
      }
      results.push_back(std::move(result));
      if (loss) losses.push_back(*std::move(loss));
    } catch (const std::exception& error) {
      // The others' figures are worth having.
      failures.push_back(fmt::format("{}: {}", cases[i].name, error.what()));
      note("bench: " + failures.back());
    }
  }

  if (json()) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const bench::Result& result : results) list.push_back(bench::to_json(result));
    nlohmann::ordered_json document{{"environment", environment}, {"results", list}};
    if (check_option_.given()) document["check"] = check_json(baseline_file(), baseline, results, losses);
    print_json(document);
  } else {
    fmt::print("{}", bench::to_table(results));
  }
  if (!markdown_.empty()) bench::write_markdown(markdown_, results, environment);
  if (!picture_.empty()) write_text_file(picture_, bench::to_svg(results));
  if (!save_baseline_.empty()) bench::Baseline(results, environment).write(save_baseline_);
  for (const bench::Loss& loss : losses)
    note(fmt::format("bench: slower: {}: {:.3g} times {}, {:.3g} before", loss.name, loss.now, loss.of,
                     loss.before));
  if (check_option_.given() &&
      std::ranges::none_of(results, [&](const bench::Result& r) { return baseline.has(r.name); }))
    throw Error(fmt::format("--check has compared nothing: {} has none of the {} rows that ran",
                            baseline_file(), results.size()));
  if (!losses.empty())
    throw Error(
        fmt::format("{} of {} rows are more than {:.0f} % slower than {} has them, in each of {} tries",
                    losses.size(), results.size(), 100 * bench::kTolerance, baseline_file(), bench::kTries));
  if (!failures.empty())
    throw Error(
        fmt::format("{} of {} cases failed; the first: {}", failures.size(), cases.size(), failures[0]));
}

#else

void BenchCommand::run() {
  throw UsageError(
      "this build has no benchmarks: install libbenchmark-dev and configure again (./run bench does both)");
}

#endif

}  // namespace

CommandPtr make_bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace caldera::cli
