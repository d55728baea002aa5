// Switches of the engine. Initially from the environment; a program may change them.
#pragma once

namespace caldera {

struct Settings {
  bool fusion = true;      // CALDERA_FUSION
  bool plan_cache = true;  // CALDERA_PLAN_CACHE
  bool verify = false;     // CALDERA_VERIFY: prove every plan before it runs
  int debug = 0;           // CALDERA_DEBUG: 1 a line a plan, 2 a line a kernel, 3 the regions, 4 their code
};

/// The settings in force. Change them while no other thread evaluates.
Settings& settings();

}  // namespace caldera
