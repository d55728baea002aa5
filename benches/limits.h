// Measures what the device can do at the best: the yardstick beside each figure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"

namespace caldera::bench {

class Limits {
 public:
  /// Measures, for about a second. On the CPU with plain loops of this program's own, over as many threads
  /// as the engine may use: reading and a triad at sizes from the L1 caches to memory, and chains of
  /// multiply-adds in registers. On other devices with the engine's largest copies and products, so a limit
  /// there says no more than what the engine itself reached; products are measured in f32 and in those of
  /// `types` that have 16 bits and that the device has.
  static Limits measure(Device device, std::span<const DType> types);

  /// No run of so many bytes and so many operations on values of `dtype` can be shorter. Nothing for a case
  /// without either.
  std::optional<double> limit_us(double bytes, double flops, DType dtype) const;

  /// {"bandwidth":[{"bytes","gb_per_s"}],"gflop_per_s","gflop_per_s_of":{"float16"},"method"}; the rates of
  /// types whose own was measured
  nlohmann::ordered_json to_json() const;

 private:
  struct Bandwidth {
    double bytes = 0;  // working set
    double gb_per_s = 0;
  };
  static Limits measure_cpu();
  static Limits measure_device(Device device, std::span<const DType> types);
  /// Between two measured sizes the proportional share of both, on a logarithmic scale: part of such a set
  /// is in the faster memory.
  double bandwidth_for(double bytes) const;

  std::vector<Bandwidth> bandwidth_;  // rising in bytes
  double gflop_per_s_ = 0;            // of f32, and of every type that has none of its own
  std::map<DType, double> gflop_per_s_of_;
  const char* method_ = "";
};

}  // namespace caldera::bench
