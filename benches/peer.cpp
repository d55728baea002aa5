#include "benches/peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>

#include "benches/clock.h"
#include "benches/worker_script.h"
#include "engine/caldera.h"
#include "engine/graph/lazy_tensor.h"
#include "ops/linalg/matmul.h"

namespace caldera::bench {
namespace {

// Importing a large library from a cold disk takes a while; so does a slow case.
constexpr std::chrono::seconds kPatience{120};
/// Bytes of an answer: a peer that writes on and on has lost its way.
constexpr std::size_t kLongestAnswer = std::size_t{1} << 20;

// Another program's answers: a field of another type is as good as missing.
bool is_true(const nlohmann::json& answer, const char* name) {
  const auto at = answer.find(name);
  return at != answer.end() && at->is_boolean() && at->get<bool>();
}

std::string text_of(const nlohmann::json& answer, const char* name) {
  const auto at = answer.find(name);
  return at != answer.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::string reason_of(const nlohmann::json& answer) {
  const std::string reason = text_of(answer, "error");
  return reason.empty() ? "it gave no reason" : reason;
}

/// Seconds an iteration; nothing where the answer has no such time.
std::optional<double> seconds_in(const nlohmann::json& answer) {
  const auto at = answer.find("seconds");
  if (at == answer.end() || !at->is_number() || !(at->get<double>() > 0)) return std::nullopt;
  return at->get<double>();
}

constexpr const char* kNoTime = "its answer has no \"seconds\" above 0";

}  // namespace

PeerWorker::PeerWorker(const std::vector<std::string>& command, const EnvironmentChanges& environment) {
  // A worker that died must show as an answer that does not come, not end this program.
  signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0) {
    lose(fmt::format("no pipe: {}", std::strerror(errno)));
    return;
  }
  to_ = in[1];
  if (pipe2(out.data(), O_CLOEXEC) != 0) {
    ::close(in[0]);
    lose(fmt::format("no pipe: {}", std::strerror(errno)));
    return;
  }
  from_ = out[0];
  const int status = start_process(command, environment, {in[0], out[1], -1}, pid_);
  ::close(in[0]);
  ::close(out[1]);
  if (status != 0) {
    lose(fmt::format("{}: {}", command[0], std::strerror(status)));
  }
}

PeerWorker::~PeerWorker() { lose("ended"); }

std::optional<nlohmann::json> PeerWorker::lose(const std::string& why) {
  if (to_ >= 0) ::close(to_);
  if (from_ >= 0) ::close(from_);
  to_ = from_ = -1;
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  error_ = why;
  return std::nullopt;
}

std::optional<nlohmann::json> PeerWorker::greeting() { return answer(); }

std::optional<nlohmann::json> PeerWorker::ask(const nlohmann::json& request) {
  const std::string line = request.dump() + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t n = to_ < 0 ? -1 : write(to_, line.data() + sent, line.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return lose("it has ended");
    sent += static_cast<std::size_t>(n);
  }
  std::optional<nlohmann::json> reply = answer();
  if (reply && !is_true(*reply, "ok")) {
    error_ = reason_of(*reply);
    return std::nullopt;
  }
  return reply;
}

std::optional<nlohmann::json> PeerWorker::answer() {
  const Clock::time_point deadline = Clock::now() + kPatience;
  std::size_t end = 0;
  while ((end = buffer_.find('\n')) == std::string::npos) {
    if (from_ < 0) return std::nullopt;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{from_, POLLIN, 0};
    const int count = left <= 0 ? 0 : poll(&ready, 1, static_cast<int>(left));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return lose("it does not answer");
    std::array<char, 4096> part{};
    const ssize_t n = read(from_, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return lose("it has ended");
    if (buffer_.size() > kLongestAnswer) return lose("its answer has no end");
    buffer_.append(part.data(), static_cast<std::size_t>(n));
  }
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  nlohmann::json reply = nlohmann::json::parse(line, nullptr, false);
  if (!reply.is_object()) return lose("its answer is not JSON: " + line);
  return reply;
}

WorkerPeer::WorkerPeer(const std::string& command, int threads, bool on_gpu) {
  // The engine chooses OpenBLAS's kernels when it first opens the library, through the environment: the peer
  // inherits the choice.
  const LazyTensor ones = LazyTensor::ones({4, 4}, DType::f32, Device::cpu());
  matmul(ones, ones).eval();

  // Debian's packages belong to Debian's Python, which need not be the first one in the path.
  std::vector<std::vector<std::string>> candidates;
  if (command.empty()) {
    for (const char* python : {"python3", "/usr/bin/python3"})
      candidates.push_back({python, "-u", "-c", kWorkerScript});
  } else {
    candidates.push_back({"sh", "-c", command});
  }
  std::vector<int> counts{1};
  if (threads > 1 && !on_gpu) counts.push_back(threads);
  std::vector<const char*> policies{""};
  if (!on_gpu) policies.push_back("passive");
  for (const std::vector<std::string>& candidate : candidates) {
    for (const char* policy : policies) {
      for (const int count : counts) {
        const std::string number = std::to_string(count);
        // GOMP_SPINCOUNT is this program's own setting, not one that the peer's users have.
        auto process = std::make_unique<PeerWorker>(
            candidate, EnvironmentChanges{{"OMP_WAIT_POLICY", policy},
                                          {"GOMP_SPINCOUNT", ""},
                                          {"OMP_NUM_THREADS", number},
                                          {"CALDERA_PEER_DEVICE", on_gpu ? "gpu" : ""}});
        workers_.push_back(
            {std::move(process), fmt::format("{} thread{}{}", count, count == 1 ? "" : "s",
                                             *policy != '\0' ? ", OMP_WAIT_POLICY=passive" : "")});
      }
    }
    for (const Worker& worker : workers_) {
      const std::optional<nlohmann::json> greeting = worker.process->greeting();
      if (!greeting || !is_true(*greeting, "ready")) {
        error_ = greeting ? reason_of(*greeting) : worker.process->error();
        workers_.clear();
        break;
      }
      library_ = text_of(*greeting, "library");
      if (library_.empty()) library_ = "peer";
    }
    if (!workers_.empty()) return;
  }
}

std::optional<Peer::Case> WorkerPeer::open(const nlohmann::json& request) {
  std::optional<Case> best;
  chosen_ = nullptr;
  for (Worker& worker : workers_) {
    const auto reply = worker.process->ask({{"do", "open"}, {"case", request}});
    if (!reply) {
      error_ = worker.process->error();
      continue;
    }
    const std::optional<double> seconds = seconds_in(*reply);
    if (!seconds) error_ = kNoTime;
    if (!seconds || (best && *seconds >= best->seconds)) {
      worker.process->ask({{"do", "close"}});
      continue;
    }
    if (chosen_ != nullptr) chosen_->process->ask({{"do", "close"}});
    chosen_ = &worker;
    best = Case{*seconds, worker.setting};
    if (const std::string variant = text_of(*reply, "variant"); !variant.empty())
      best->setting += ", " + variant;
  }
  return best;
}

std::optional<double> WorkerPeer::run(std::int64_t iterations) {
  if (chosen_ == nullptr) return std::nullopt;
  const auto reply = chosen_->process->ask({{"do", "run"}, {"iterations", iterations}});
  if (!reply) {
    error_ = chosen_->process->error();
    return std::nullopt;
  }
  const std::optional<double> seconds = seconds_in(*reply);
  if (!seconds) error_ = kNoTime;
  return seconds;
}

void WorkerPeer::close() {
  if (chosen_ != nullptr) chosen_->process->ask({{"do", "close"}});
  chosen_ = nullptr;
}

}  // namespace caldera::bench
