// Switches of the engine. Initially from the environment; a program may change them. The table of all
// switches is in docs/guide/debugging.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/arena_sizes.h"

namespace caldera {

/// Says what is compared with the f64 interpreter while it runs.
struct StepChecks {
  bool on = false;
  std::uint64_t evaluation = 0;       ///< the one that is checked, counted from 1; 0: every one
  std::optional<std::uint64_t> step;  ///< the step of it that is checked and printed; none: all
};

struct Settings {
  bool fusion = true;      // CALDERA_FUSION
  bool plan_cache = true;  // CALDERA_PLAN_CACHE
  bool verify = false;     // CALDERA_VERIFY: prove every plan before it runs
  /// CALDERA_CHECK: 1, or EVALUATION.STEP. Every evaluation runs step by step, each of which is compared with
  /// the f64 interpreter; the first that is beyond its bound ends the evaluation with CheckError.
  StepChecks check;
  /// CALDERA_MEMORY_LIMIT ("512MiB"): bytes that each device opened from now on may take; 0: no limit. See
  /// set_memory_limit in runtime.h.
  std::uint64_t memory_limit = 0;
  /// CALDERA_ARENA_SEGMENT ("64KiB"): the most bytes of an allocation for intermediates that is not for a
  /// single one of them; from kArenaAlignment to kArenaSegment, which is the default. Small ones test what
  /// large plans do.
  std::int64_t arena_segment = kArenaSegment;
  int debug = 0;  // CALDERA_DEBUG: 1 a line a plan, 2 a line a kernel, 3 the regions, 4 their code
  /// CALDERA_DEBUG_PASS: prints to standard error what the compiler has after the pass of this name (see
  /// pass_names()), or, for "all", after each.
  std::string debug_pass;
};

/// The settings in force. Change them while no other thread evaluates.
Settings& settings();

}  // namespace caldera
