// Measures what the device can do at the best: the yardstick beside each figure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "benches/yardstick.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"

namespace caldera::bench {

class Limits {
 public:
  /// Measures, for about a second. On the CPU with plain loops of this program's own, over as many threads
  /// as the engine may use: reading and a triad at sizes from the L1 caches to memory, and chains of
  /// multiply-adds in registers, of floats and of integers of 8 bits; where the engine's products of a type
  /// of 16 bits among `types` are faster than those of floats, with them. On other devices with the engine's
  /// largest copies and products, so a limit there says no more than what the engine itself reached; products
  /// are measured in f32 and in those of `types` that have 16 bits and that the device has.
  static Limits measure(Device device, std::span<const DType> types);

  /// No run of so many bytes and so many operations on values of `dtype` can be shorter. Nothing for a case
  /// without either.
  std::optional<double> limit_us(double bytes, double flops, DType dtype) const;

  /// Returns what such a run takes the most of its time for: "overhead" where at least half of it goes by
  /// outside of the device (`device_us`) or for what the smallest evaluation takes as well; else "memory" or
  /// "compute", whichever makes the limit. "" for a case without a limit.
  const char* bound_by(double bytes, double flops, DType dtype, double total_us,
                       std::optional<double> device_us) const;

  /// Which share of the yardstick's rate bytes that are read, or operations, are, that take so long. Integers
  /// are measured against floats where no rate of theirs was measured. Nothing for Yardstick::none.
  std::optional<double> share(Yardstick yardstick, double bytes, double flops, double us) const;

  /// {"bandwidth":[{"bytes","gb_per_s"}],"read_bandwidth":[…],"gflop_per_s","gflop_per_s_of":{"float16"},
  /// "integer_gop_per_s","evaluation_us","method"}; the rates of types whose own was measured, null without
  /// one of integers
  nlohmann::ordered_json to_json() const;

 private:
  struct Bandwidth {
    double bytes = 0;  // working set
    double gb_per_s = 0;
  };
  static void never_slower(std::vector<Bandwidth>& measured);
  static nlohmann::ordered_json to_json(const std::vector<Bandwidth>& measured);
  static Limits measure_cpu(std::span<const DType> types);
  static Limits measure_device(Device device, std::span<const DType> types);
  double gflop_per_s_for(DType dtype) const;
  /// Between two measured sizes the proportional share of both, on a logarithmic scale: part of such a set
  /// is in the faster memory.
  static double bandwidth_for(const std::vector<Bandwidth>& measured, double bytes);

  std::vector<Bandwidth> bandwidth_;       // the better of reading and a triad; rising in bytes
  std::vector<Bandwidth> read_bandwidth_;  // reading alone
  double gflop_per_s_ = 0;                 // of f32, and of every type that has none of its own
  std::map<DType, double> gflop_per_s_of_;
  std::optional<double> integer_gop_per_s_;
  double evaluation_us_ = 0;  // of a graph that computes one element
  const char* method_ = "";
};

}  // namespace caldera::bench
