#include "benches/llama_peer.h"

#include <fmt/format.h>

#include <algorithm>

namespace caldera::bench {
namespace {

// Of a large model on one thread; each test is also run once to warm up.
constexpr std::chrono::seconds kTestPatience{900};
constexpr std::chrono::seconds kHelpPatience{30};
constexpr std::int64_t kMostRepetitions = 1000;

// The first is this program's own setting; the second would slow what waits by OpenMP's means.
const EnvironmentChanges kChanges{{"GOMP_SPINCOUNT", ""}, {"OMP_WAIT_POLICY", ""}};

/// The last line that says something.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return {};
  const std::size_t before = text.find_last_of('\n', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end + 1 - begin);
}

}  // namespace

LlamaPeer::LlamaPeer(const std::string& program, bool on_gpu)
    : program_(program.empty() ? "llama-bench" : program), on_gpu_(on_gpu) {
  library_ = "llama.cpp";
  const FinishedProcess help = run_process({program_, "--help"}, kChanges, kHelpPatience);
  if (!help.failure.empty()) {
    error_ = fmt::format("{}: {}; install llama.cpp, or say where its llama-bench is: --peer llama.cpp=PATH",
                         program_, help.failure);
    return;
  }
  const std::string text = help.out + help.errors;
  if (text.find("--n-prompt") == std::string::npos) {
    error_ = fmt::format("{}: is no llama-bench: its --help has no --n-prompt", program_);
    return;
  }
  has_depth_ = text.find("--n-depth") != std::string::npos;
  available_ = true;
}

std::optional<nlohmann::json> LlamaPeer::measure(std::int64_t repetitions) {
  std::vector<std::string> command = command_;
  command.insert(command.end(), {"-r", std::to_string(repetitions)});
  const FinishedProcess process = run_process(command, kChanges, kTestPatience);
  if (!process.failure.empty() || process.exit_code != 0) {
    error_ = !process.failure.empty() ? process.failure : last_line(process.errors);
    if (error_.empty()) error_ = fmt::format("it ended with code {}", process.exit_code);
    return std::nullopt;
  }
  const nlohmann::json tests = nlohmann::json::parse(process.out, nullptr, false);
  const auto fits = [](const nlohmann::json& test) {
    return test.is_object() && test.contains("avg_ns") && test["avg_ns"].is_number() && test["avg_ns"] > 0;
  };
  if (!tests.is_array() || tests.size() != 1 || !fits(tests[0])) {
    error_ = "its answer is not that of one test";
    return std::nullopt;
  }
  return tests[0];
}

double LlamaPeer::seconds_of(const nlohmann::json& test) const {
  return test["avg_ns"].get<double>() / 1e9 / static_cast<double>(tokens_of_iteration_);
}

std::optional<Peer::Case> LlamaPeer::open(const nlohmann::json& request) {
  const auto number = [&](const char* name) { return request.value(name, std::int64_t{0}); };
  const std::int64_t depth = number("depth");
  if (depth > 0 && !has_depth_) {
    error_ = "this llama-bench has no --n-depth: it is too old to measure behind a context";
    return std::nullopt;
  }
  command_ = {program_, "-m", request.value("model", ""), "-o", "json"};
  const auto add = [&](const char* flag, std::int64_t value) {
    command_.insert(command_.end(), {flag, std::to_string(value)});
  };
  add("-t", number("threads"));
  add("-p", number("prompt"));
  add("-n", number("generate"));
  if (!on_gpu_) add("-ngl", 0);
  if (depth > 0) add("-d", depth);
  tokens_of_iteration_ = std::max<std::int64_t>(number("generate"), 1);
  std::optional<nlohmann::json> test = measure(1);
  if (!test) return std::nullopt;
  const std::int64_t threads = number("threads");
  return Case{seconds_of(*test), fmt::format("{} thread{}, build {} {}", threads, threads == 1 ? "" : "s",
                                             (*test)["build_number"].dump(), (*test)["build_commit"].dump())};
}

std::optional<double> LlamaPeer::run(std::int64_t iterations) {
  const std::optional<nlohmann::json> test =
      measure(std::clamp<std::int64_t>(iterations / tokens_of_iteration_, 1, kMostRepetitions));
  if (!test) return std::nullopt;
  return seconds_of(*test);
}

}  // namespace caldera::bench
