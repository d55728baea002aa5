// llama.cpp as a peer: its program llama-bench, which is started for each repetition of a case.
#pragma once

#include <string>
#include <vector>

#include "benches/peer.h"

namespace caldera::bench {

class LlamaPeer final : public Peer {
 public:
  /// Looks for the program: "llama-bench" in PATH, where `program` is empty. It keeps its layers on the CPU
  /// unless `on_gpu`.
  LlamaPeer(const std::string& program, bool on_gpu);

  bool available() const override { return available_; }
  const nlohmann::json& request_of(const bench::Case& c) const override { return c.llama_bench; }
  /// Runs it once. Nothing for a context where the program is too old for one, and where it fails.
  std::optional<Case> open(const nlohmann::json& request) override;
  std::optional<double> run(std::int64_t iterations) override;
  void close() override { command_.clear(); }

 private:
  /// Returns what it says of one test, repeated so often.
  std::optional<nlohmann::json> measure(std::int64_t repetitions);
  double seconds_of(const nlohmann::json& test) const;

  std::string program_;
  bool on_gpu_;
  bool available_ = false;
  bool has_depth_ = false;
  std::vector<std::string> command_;      // of the open case
  std::int64_t tokens_of_iteration_ = 1;  // iterations of a test: tokens that come one by one
};

}  // namespace caldera::bench
