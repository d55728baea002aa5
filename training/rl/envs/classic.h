// The classic environments by name. Private to training/rl/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "training/rl/envs/environment.h"

namespace caldera::rl::detail {

/// Describes a classic environment.
struct ClassicFacts {
  std::string name;
  std::int64_t steps = 0;  ///< the time limit
  std::size_t state = 0;   ///< numbers in its state
  Space observations;
  Space actions;
  std::unique_ptr<Environment> (*make)() = nullptr;  ///< without a time limit
};

const std::vector<ClassicFacts>& classic_environments();
/// Finds it by name; null where there is none.
const ClassicFacts* find_classic(std::string_view name);

}  // namespace caldera::rl::detail
