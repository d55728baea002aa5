#include "lm/generate/sampling/sampling_options.h"

#include <cmath>
#include <limits>

#include "engine/base/error.h"

namespace caldera {
namespace {

void require_option(bool ok, const char* message) {
  if (!ok) throw ValueError(message);
}

}  // namespace

void SamplingOptions::validate() const {
  require_option(std::isfinite(temperature) && temperature >= 0,
                 "sampling: temperature must be 0 (greedy) or positive");
  require_option(top_k >= 0, "sampling: top-k must be 0 (off) or positive");
  require_option(top_p > 0 && top_p <= 1, "sampling: top-p must lie in (0, 1]");
  require_option(min_p >= 0 && min_p <= 1, "sampling: min-p must lie in [0, 1]");
  require_option(std::isfinite(repetition_penalty) && repetition_penalty > 0,
                 "sampling: repetition-penalty must be positive (1 is off)");
  require_option(typical_p > 0 && typical_p <= 1, "sampling: typical-p must lie in (0, 1]");
  require_option(std::isfinite(presence_penalty),
                 "sampling: presence-penalty must be a finite number (0 is off)");
  require_option(std::isfinite(frequency_penalty),
                 "sampling: frequency-penalty must be a finite number (0 is off)");
  require_option(std::isfinite(repeats.multiplier) && repeats.multiplier >= 0,
                 "sampling: dry-multiplier must be 0 (off) or positive");
  require_option(std::isfinite(repeats.base) && repeats.base >= 1, "sampling: dry-base must be at least 1");
  require_option(repeats.allowed_length >= 1, "sampling: dry-allowed-length must be at least 1");
  require_option(repeats.last >= -1, "sampling: dry-penalty-last-n must be -1 (all) or a number of tokens");
  require_option(xtc_probability >= 0 && xtc_probability <= 1,
                 "sampling: xtc-probability must lie in [0, 1]");
  require_option(xtc_threshold >= 0 && xtc_threshold <= 1, "sampling: xtc-threshold must lie in [0, 1]");
  require_option(std::isfinite(mirostat.tau) && mirostat.tau >= 0,
                 "sampling: mirostat-tau must be 0 or more bits");
  require_option(mirostat.eta >= 0 && mirostat.eta <= 1, "sampling: mirostat-eta must lie in [0, 1]");
  for (const auto& [id, bias] : logit_bias) {
    require_option(id >= 0, "sampling: a token of logit-bias must not be negative");
    require_option(bias < std::numeric_limits<float>::infinity(),
                   "sampling: a number of logit-bias must be finite, or -infinity to rule the token out");
  }
}

}  // namespace caldera
