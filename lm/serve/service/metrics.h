// Metrics: counts of what the server does, as Prometheus reads them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "lm/serve/engine/engine.h"

namespace caldera::serve {

/// Counts observations that are at most so large, for bounds that grow, and their sum.
class Histogram {
 public:
  void add(double seconds);
  /// Appends lines in Prometheus' text format.
  void print(const std::string& name, const std::string& help, std::string& out) const;

  static constexpr std::array<double, 14> kBounds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                  1,     2.5,  5,     10,   30,  60,   300};

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

/// May be used from any thread.
class Metrics {
 public:
  /// A request that has been answered.
  void count_request(const std::string& endpoint, int status, double seconds);
  /// The first token of a text was sent so long after its request had come.
  void count_first_token(double seconds);
  void count_tokens(std::int64_t prompt, std::int64_t generated);
  void count_disconnect();
  /// Changes the number of requests for texts under way by `change`; returns how many there are.
  std::int64_t add_active(std::int64_t change);
  std::int64_t active() const;

  /// Everything in Prometheus' text format, with the engine's own counts.
  std::string text(const BatchStatus& engine) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  Histogram durations_;
  Histogram first_tokens_;
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t generated_tokens_ = 0;
  std::uint64_t disconnects_ = 0;
  std::int64_t active_ = 0;
};

}  // namespace caldera::serve
