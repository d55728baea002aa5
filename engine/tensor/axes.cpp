#include "engine/tensor/axes.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/base/error.h"

namespace caldera {

Axes::Axes(std::span<const int> axes) : count_(static_cast<int>(axes.size())) {
  if (axes.size() > axes_.size()) {
    throw ShapeError(fmt::format("{} axes are named, a tensor has at most {}", axes.size(), kMaxRank));
  }
  std::copy(axes.begin(), axes.end(), axes_.begin());
}

}  // namespace caldera
