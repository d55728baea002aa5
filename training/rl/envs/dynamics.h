// The dynamics of the classic environments, for numbers and graphs. Private to training/rl/.
#pragma once

#include <array>
#include <cstdint>
#include <numbers>

#include "training/rl/envs/numbers.h"

namespace caldera::rl::detail {

#include "training/rl/envs/dynamics-inl.h"

}  // namespace caldera::rl::detail
