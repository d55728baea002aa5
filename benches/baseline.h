// Baseline: figures of an earlier run, which a later one is held against.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "benches/runner.h"

namespace caldera::bench {

/// A figure that is worse than the baseline's by more than this share is a loss: less is the machine's noise.
inline constexpr double kTolerance = 0.15;
/// Counts how often a row that seems to have lost is measured in all.
inline constexpr int kTries = 3;

/// Says that a row is slower than the baseline has it.
struct Loss {
  std::string name;
  double before = 0, now = 0;  // times as long as the yardstick takes
  std::string of;              // the yardstick: "torch", "llama.cpp", "limit"
};

/// Figures that are no times but ratios, so that they hold on a machine that is faster or slower throughout:
/// of a row's time to a peer's, and to the least that the machine allows ("limit").
class Baseline {
 public:
  Baseline() = default;
  Baseline(std::span<const Result> results, nlohmann::ordered_json environment);

  /// Throws FileError where the file cannot be read or is no baseline.
  static Baseline read(const std::filesystem::path& file);
  /// Throws FileError where the file cannot be written.
  void write(const std::filesystem::path& file) const;

  bool has(const std::string& name) const { return rows_.contains(name); }
  /// Returns what the row has lost. Nothing where it is as fast as before or faster, and where there is
  /// nothing to compare: it is compared by a peer that both runs had, else by the limit, if both know it.
  std::optional<Loss> loss(const Result& result) const;

 private:
  using Ratios = std::map<std::string, double>;
  static Ratios ratios_of(const Result& result);

  nlohmann::ordered_json environment_;
  std::map<std::string, Ratios> rows_;
};

}  // namespace caldera::bench
