// What the device can do at the best, measured: the yardstick beside each figure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "engine/tensor/device.h"

namespace caldera::cli {

class BenchLimits {
 public:
  /// Measures, for about a second. On the CPU with plain loops of this program's own, over as many threads
  /// as the engine may use: reading and a triad at sizes from the L1 caches to memory, and chains of
  /// multiply-adds in registers. On other devices with the engine's largest copies and products, so a limit
  /// there says no more than what the engine itself reached.
  static BenchLimits measure(Device device);

  /// No run of so many bytes and so many operations can be shorter. Nothing for a case without either.
  std::optional<double> limit_us(double bytes, double flops) const;

  /// {"bandwidth":[{"bytes","gb_per_s"}],"gflop_per_s","method"}
  nlohmann::ordered_json to_json() const;

 private:
  struct Bandwidth {
    double bytes = 0;  // working set
    double gb_per_s = 0;
  };
  static BenchLimits measure_cpu();
  static BenchLimits measure_device(Device device);
  /// Between two measured sizes the proportional share of both, on a logarithmic scale: part of such a set
  /// lies in the faster memory.
  double bandwidth_for(double bytes) const;

  std::vector<Bandwidth> bandwidth_;  // rising in bytes
  double gflop_per_s_ = 0;
  const char* method_ = "";
};

}  // namespace caldera::cli
