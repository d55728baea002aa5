// Peers: child processes that run the same cases with another library.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "benches/case.h"
#include "benches/child_process.h"

namespace caldera::bench {

/// One worker process. Requests and answers are JSON, a line each, over its standard input and output:
///
///   -> (at start)                                   {"ready":true,"library":"torch 1.13.1"}
///   {"do":"open","case":{"op":…}}                -> {"ok":true,"seconds":1e-5,"variant":"addmm"}
///   {"do":"run","iterations":100}                -> {"ok":true,"seconds":1.2e-5}     (an iteration)
///   {"do":"close"}                               -> {"ok":true}
///
/// or {"ok":false,"error":"…"}. It ends when its input does. `open` tries the ways its library has for a case
/// and keeps the fastest. A worker that dies or does not answer in time is lost for good: requests then give
/// nothing.
class PeerWorker {
 public:
  /// Starts `command`. Does not wait for it.
  PeerWorker(const std::vector<std::string>& command, const EnvironmentChanges& environment);
  ~PeerWorker();
  PeerWorker(const PeerWorker&) = delete;
  PeerWorker& operator=(const PeerWorker&) = delete;

  /// Sends a request and waits for the answer; nothing when the worker is lost or says no.
  std::optional<nlohmann::json> ask(const nlohmann::json& request);
  /// The first line it says; nothing when it cannot start.
  std::optional<nlohmann::json> greeting();
  /// Why the last request gave nothing.
  const std::string& error() const { return error_; }

 private:
  std::optional<nlohmann::json> answer();
  std::optional<nlohmann::json> lose(const std::string& why);

  int pid_ = -1;
  int to_ = -1;
  int from_ = -1;
  std::string buffer_;
  std::string error_;
};

/// Runs the same cases as this engine, in turns with it.
class Peer {
 public:
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  virtual bool available() const = 0;
  /// Its name, and behind a blank its version.
  const std::string& library() const { return library_; }
  /// Why there is none, or why the last call gave nothing.
  const std::string& error() const { return error_; }

  /// Returns what it is asked to run of a case; null: nothing.
  virtual const nlohmann::json& request_of(const bench::Case& c) const = 0;

  struct Case {
    double seconds = 0;   // an iteration, from the trials
    std::string setting;  // "2 threads, OMP_WAIT_POLICY=passive, addmm"
  };
  /// Opens what request_of() gave. Nothing where it cannot be run: `error()` says why.
  virtual std::optional<Case> open(const nlohmann::json& request) = 0;
  /// Seconds an iteration.
  virtual std::optional<double> run(std::int64_t iterations) = 0;
  virtual void close() = 0;

 protected:
  Peer() = default;

  std::string library_;
  std::string error_;
};

/// A peer in each of its settings, as a worker each: every case runs in the setting that is fastest for it.
class WorkerPeer final : public Peer {
 public:
  /// Starts the workers: PyTorch's where `command` is empty. Where the library is not there, `available()` is
  /// false. `on_gpu`: on a GPU, where the library can use one; then there is one setting.
  WorkerPeer(const std::string& command, int threads, bool on_gpu);

  bool available() const override { return !workers_.empty(); }
  const nlohmann::json& request_of(const bench::Case& c) const override { return c.peer; }
  /// Opens the case in every setting and keeps the fastest one open. Nothing when no setting can run it.
  std::optional<Case> open(const nlohmann::json& request) override;
  std::optional<double> run(std::int64_t iterations) override;
  void close() override;

 private:
  struct Worker {
    std::unique_ptr<PeerWorker> process;
    std::string setting;
  };
  std::vector<Worker> workers_;
  Worker* chosen_ = nullptr;
};

}  // namespace caldera::bench
