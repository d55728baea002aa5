// The clock that `caldera bench` measures with.
#pragma once

#include <chrono>

namespace caldera::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace caldera::bench
