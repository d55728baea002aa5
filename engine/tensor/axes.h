// Axes: what reductions reduce.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "engine/tensor/shape.h"

namespace caldera {

/// Axes to reduce: one, several, or (default) all. Throws ShapeError for more than a tensor can have.
class Axes {
 public:
  Axes() = default;  // all
  Axes(int axis) : Axes(std::span<const int>(&axis, 1)) {}
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
