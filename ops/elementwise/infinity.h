#pragma once

#include <limits>

namespace caldera {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace caldera
