#include "lm/generate/sampling/sampling_options.h"

#include <cmath>
#include <limits>

#include "engine/base/error.h"

namespace caldera {
namespace {

void require(bool ok, const char* message) {
  if (!ok) throw ValueError(message);
}

}  // namespace

void SamplingOptions::validate() const {
  require(std::isfinite(temperature) && temperature >= 0,
          "sampling: temperature must be 0 (greedy) or positive");
  require(top_k >= 0, "sampling: top-k must be 0 (off) or positive");
  require(top_p > 0 && top_p <= 1, "sampling: top-p must lie in (0, 1]");
  require(min_p >= 0 && min_p <= 1, "sampling: min-p must lie in [0, 1]");
  require(std::isfinite(repetition_penalty) && repetition_penalty > 0,
          "sampling: repetition-penalty must be positive (1 is off)");
  require(typical_p > 0 && typical_p <= 1, "sampling: typical-p must lie in (0, 1]");
  require(std::isfinite(presence_penalty), "sampling: presence-penalty must be a finite number (0 is off)");
  require(std::isfinite(frequency_penalty), "sampling: frequency-penalty must be a finite number (0 is off)");
  for (const auto& [id, bias] : logit_bias) {
    require(id >= 0, "sampling: a token of logit-bias must not be negative");
    require(bias < std::numeric_limits<float>::infinity(),
            "sampling: a number of logit-bias must be finite, or -infinity to rule the token out");
  }
}

}  // namespace caldera
