#include "training/rl/envs/environment.h"

#include "engine/base/error.h"

namespace caldera::rl {

void Environment::set_state(std::span<const double> /*state*/, std::span<double> /*observation*/) {
  throw ValueError("this environment has no state() that could be set; begin with reset()");
}

}  // namespace caldera::rl
