// Rates against torch.optim.lr_scheduler's formulas and sequences worked out by hand.
#include "training/optim/rates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "engine/base/error.h"

namespace caldera {
namespace {

static_assert(LearningRateSchedule<StepRate> && LearningRateSchedule<OneCycleRate>);
static_assert(!LearningRateSchedule<PlateauRate>);

TEST(Rates, FallByFactors) {
  const StepRate step(0.8, 3, 0.5);
  const MultiStepRate milestones(0.8, {4, 2}, 0.5);
  const ExponentialRate exponential(0.8, 0.5);
  const double want[6][3] = {{0.8, 0.8, 0.8}, {0.8, 0.8, 0.4},  {0.8, 0.4, 0.2},
                             {0.4, 0.4, 0.1}, {0.4, 0.2, 0.05}, {0.4, 0.2, 0.025}};
  for (int t = 0; t < 6; ++t) {
    EXPECT_NEAR(step.learning_rate(t), want[t][0], 1e-15);
    EXPECT_NEAR(milestones.learning_rate(t), want[t][1], 1e-15);
    EXPECT_NEAR(exponential.learning_rate(t), want[t][2], 1e-15);
  }
}

// OneCycleLR(max_lr=1, total_steps=11, pct_start=0.3): the phases end at steps 0.3 * 11 - 1 and 10.
TEST(Rates, RiseAndFallInOneCycle) {
  const OneCycleRate rate(1, 11);
  const auto arc = [](double from, double to, double p) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * p));
  };
  EXPECT_NEAR(rate.learning_rate(0), 0.04, 1e-15);
  EXPECT_NEAR(rate.learning_rate(2), arc(0.04, 1, 2 / 2.3), 1e-15);
  EXPECT_NEAR(rate.learning_rate(3), arc(1, 4e-6, 0.7 / 7.7), 1e-15);
  EXPECT_NEAR(rate.learning_rate(10), 4e-6, 1e-15);
  EXPECT_NEAR(rate.learning_rate(99), 4e-6, 1e-15);
}

TEST(Rates, FallOnAPlateau) {
  PlateauRate rate(1, {.factor = 0.5, .patience = 1, .cooldown = 1, .least = 0.3});
  const double losses[] = {5, 4, 4, 4, 4, 4, 4, 3, 3, 3};
  // The second 4 is the first miss, the third the second, more than the patience. The next value only cools
  // down.
  const double want[] = {1, 1, 1, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3, 0.3};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rate.observe(losses[i]), want[i]) << i;
}

TEST(Rates, RefuseWhatIsNoSchedule) {
  EXPECT_THROW(StepRate(0.1, 0), ValueError);
  EXPECT_THROW(ExponentialRate(-1, 0.5), ValueError);
  EXPECT_THROW(OneCycleRate(1, 10, {.rising = 1}), ValueError);
  EXPECT_THROW(PlateauRate(1, {.factor = 1}), ValueError);
}

}  // namespace
}  // namespace caldera
