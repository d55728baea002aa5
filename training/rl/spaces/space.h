// Space: which observations or actions an environment has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "training/rl/spaces/random.h"

namespace caldera::rl {

/// A set of vectors of numbers. A choice is the number of what was chosen, counted from 0. A value type.
class Space {
 public:
  enum class Kind : std::uint8_t { box, discrete, multi_discrete };

  Kind kind() const { return kind_; }
  bool is_continuous() const { return kind_ == Kind::box; }
  /// Returns how many numbers a value has: 1 for one choice.
  std::int64_t size() const { return static_cast<std::int64_t>(low_.size()); }
  /// Returns the least and the largest value of each number; may be infinite in a box.
  const std::vector<double>& low() const { return low_; }
  const std::vector<double>& high() const { return high_; }
  /// Returns how many values each choice has; empty for a box.
  const std::vector<std::int64_t>& counts() const { return counts_; }

  /// Draws a value: uniform between finite bounds, normal where there are none, an exponential distance from
  /// the one bound that there is. Throws ShapeError unless `value` has size() elements.
  void sample(Random& random, std::span<double> value) const;
  std::vector<double> sample(Random& random) const;
  /// Says whether the value is in the space: no NaN, within bounds, a whole number where it is a choice.
  bool contains(std::span<const double> value) const;
  /// Returns how many numbers flatten() writes: one a number of a box, one a value of each choice.
  std::int64_t flat_size() const;
  /// Returns a box's numbers as they are, and each choice as a one-hot vector. Throws ValueError for a value
  /// that is not in the space.
  std::vector<double> flatten(std::span<const double> value) const;
  /// Undoes flatten(). Throws ShapeError unless there are flat_size() numbers.
  std::vector<double> unflatten(std::span<const double> flat) const;

  /// Prints "Box(4)", "Discrete(2)" or "MultiDiscrete(3, 2)".
  std::string to_string() const;

 protected:
  Space(Kind kind, std::vector<double> low, std::vector<double> high, std::vector<std::int64_t> counts);

 private:
  Kind kind_;
  std::vector<double> low_, high_;
  std::vector<std::int64_t> counts_;
};

/// Real numbers, each between two bounds, which may be infinite. Throws ValueError for bounds that are empty,
/// NaN or in the wrong order, ShapeError where there are more of one kind.
class Box : public Space {
 public:
  Box(std::vector<double> low, std::vector<double> high);
  /// Makes `size` numbers with the same bounds.
  Box(double low, double high, std::int64_t size);
};

/// One of `count` choices. Throws ValueError unless count > 0.
class Discrete : public Space {
 public:
  explicit Discrete(std::int64_t count);
};

/// Several choices. Throws ValueError unless all counts are positive, and for none.
class MultiDiscrete : public Space {
 public:
  explicit MultiDiscrete(const std::vector<std::int64_t>& counts);
};

}  // namespace caldera::rl
