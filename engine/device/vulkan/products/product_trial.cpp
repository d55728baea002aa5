#include "engine/device/vulkan/products/product_trial.h"

#include <algorithm>

#include "engine/device/vulkan/products/product_problem.h"

namespace caldera::vulkan {
namespace {

constexpr std::int64_t kLeastExtent = 256;
constexpr int kMostDispatches = 4;  // in one submit, so that what a submit costs weighs little
constexpr int kMostSubmits = 4;
constexpr double kSubmitSeconds = 0.02;
constexpr double kTrialSeconds = 0.1;
/// A first run may also be so slow because it is the first.
constexpr double kWarm = 8;

/// Halves what the step has most of. False if it would become another kind of product.
bool halve(Step& step) {
  const ProductProblem p = make_problem(step);
  const int m = step.dims.rank() - 3, n = step.dims.rank() - 2;
  const auto smaller = [&](int d) { step.dims[d] = (step.dims[d] + 1) / 2; };
  // Outermost first: what is left of the batch still is as one dimension, or joins M.
  int outer = 0;
  while (outer < m && step.dims[outer] == 1) ++outer;
  if (p.batches() > 1 || (p.m >= p.n && p.m > kLeastExtent)) {
    smaller(outer);  // M itself where there is no batch
  } else if (p.n > kLeastExtent) {
    smaller(n);
  } else if (p.m > kLeastExtent) {
    smaller(outer);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Step trial_step(const Step& step, std::int64_t most_flops) {
  Step trial = step;
  while (trial.flops() > most_flops && halve(trial)) {
  }
  return trial;
}

std::int64_t further_flops(std::int64_t flops, double seconds) {
  const double more = static_cast<double>(flops) * kSubmitSeconds / std::max(seconds, 1e-7);
  return std::max(kMostTrialFlops, static_cast<std::int64_t>(std::min(more, 1e15)));
}

double best_of_few(const RunDispatches& run, double stop_at) {
  double best = run(1);
  double spent = best;
  if (best > stop_at && best <= kWarm * stop_at) {
    const double again = run(1);
    spent += again;
    best = std::min(best, again);
  }
  if (best > stop_at) return best;
  for (int submit = 0; submit < kMostSubmits && spent + best <= kTrialSeconds; ++submit) {
    const double fitting = std::clamp(kSubmitSeconds / std::max(best, 1e-7), 1.0, double{kMostDispatches});
    const int dispatches = static_cast<int>(fitting);
    const double seconds = run(dispatches);
    spent += seconds;
    best = std::min(best, seconds / dispatches);
  }
  return best;
}

}  // namespace caldera::vulkan
