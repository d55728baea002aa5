// AxisIndex and Axes: which axis an operation goes along, and what reductions reduce.
#pragma once

#include <array>
#include <concepts>
#include <initializer_list>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "engine/tensor/shape.h"

namespace caldera {

/// An integer that is no bool: what numbers an axis. Other numbers in its place were meant for another
/// parameter: sum(x, true) for keepdims, sort(x, true) for descending, var(x, 1.0) for the correction.
template <class T>
concept NumbersAxis = std::integral<T> && !std::same_as<T, bool>;

/// One axis; negative ones count from the last. It converts from integers and to int.
class AxisIndex {
 public:
  template <NumbersAxis T>
  constexpr AxisIndex(T axis)  // beyond int: an axis that no tensor has
      : value_(std::in_range<int>(axis) ? static_cast<int>(axis) : std::numeric_limits<int>::max()) {}

  constexpr operator int() const { return value_; }

 private:
  int value_;
};

/// Axes to reduce: one, several, or (default) all. Throws ShapeError for more than a tensor can have.
class Axes {
 public:
  Axes() = default;  // all
  Axes(AxisIndex axis) : axes_{axis}, count_(1) {}
  template <NumbersAxis T>
  Axes(T axis) : Axes(AxisIndex(axis)) {}
  Axes(std::initializer_list<int> axes) : Axes(std::span<const int>(axes.begin(), axes.size())) {}
  Axes(const std::vector<int>& axes) : Axes(std::span<const int>(axes)) {}

  bool are_all() const { return count_ < 0; }
  std::span<const int> list() const { return {axes_.data(), static_cast<std::size_t>(count_)}; }

 private:
  explicit Axes(std::span<const int> axes);

  std::array<int, kMaxRank> axes_{};
  int count_ = -1;
};

}  // namespace caldera
