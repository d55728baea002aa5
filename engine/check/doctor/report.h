// Report: what an examination of a device says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace caldera::doctor {

/// A check that ran.
struct Check {
  std::string name;
  /// The error of the element that is worst for its tolerance: its relative error where a relative one is
  /// allowed, else its absolute error. At most the largest double, also where a NaN or an infinity is on one
  /// side only.
  double error = 0;
  double tolerance = 0;
  std::string source;                   ///< why so much is allowed
  std::vector<std::string> complaints;  ///< lines for people; none if the check is passed

  bool good() const { return complaints.empty(); }
};

/// Names what this device cannot be checked for.
struct Skip {
  std::string name;
  std::string reason;
};

/// Holds what an examination found.
struct Report {
  std::vector<Check> checks;
  std::vector<Skip> skipped;

  std::int64_t failed() const;
  /// The failed checks, then those nearest to their tolerance; `count` at the most. Pointers into `checks`.
  std::vector<const Check*> worst(std::size_t count) const;
};

/// Is called after each family of checks, with the report as it is then.
using Progress = std::function<void(const std::string& family, const Report& so_far)>;

}  // namespace caldera::doctor
