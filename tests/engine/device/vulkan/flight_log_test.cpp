// What is said of a device that was lost: which evaluations it was at.
#include "engine/device/vulkan/open/flight_log.h"

#include <gtest/gtest.h>

#include <memory>

#include "engine/device/vulkan/open/flight_log.h"
namespace caldera::testing {
namespace {

std::shared_ptr<const Plan> plan_of(std::initializer_list<const char*> kernels) {
  auto plan = std::make_shared<Plan>();
  for (const char* name : kernels) {
    auto kernel = std::make_shared<Kernel>();
    kernel->name = name;
    Step step;
    step.as<RegionStep>().kernel = std::move(kernel);
    plan->steps.push_back(std::move(step));
  }
  return plan;
}

TEST(FlightLog, NothingHasRun) {
  EXPECT_EQ(vulkan::FlightLog().describe(0), "last completed: none; in flight: none");
}

TEST(FlightLog, NamesWhatIsDoneAndHowFarTheRestCame) {
  vulkan::FlightLog log;
  log.begin(plan_of({"exp"}), 0);
  log.submitted(1, 0);
  log.end();
  log.begin(plan_of({"mul", "tanh", "softmax"}), 0);
  log.submitted(2, 1);
  log.submitted(3, 2);
  log.end();
  log.begin(plan_of({"add", "neg"}), 0);
  EXPECT_EQ(
      log.describe(0),
      "last completed: none; in flight: evaluation 1 (1 step, exp to exp), evaluation 2 (3 steps, mul to "
      "softmax), evaluation 3 (2 steps, add to neg)");
  EXPECT_EQ(log.describe(2),
            "last completed: evaluation 1 (its last step was exp); in flight: evaluation 2 (3 steps, mul to "
            "softmax; done up to step 1, tanh), evaluation 3 (2 steps, add to neg)");
  EXPECT_EQ(log.describe(3),
            "last completed: evaluation 2 (its last step was softmax); in flight: evaluation 3 (2 steps, add "
            "to neg)")
      << "what is being submitted is in flight";
}

TEST(FlightLog, KeepsTheLastThatIsDoneAndForgetsWhatCouldNotBeSubmitted) {
  vulkan::FlightLog log;
  std::weak_ptr<const Plan> first, second;
  for (std::uint64_t i = 1; i <= 2; ++i) {
    auto plan = plan_of({"exp"});
    (i == 1 ? first : second) = plan;
    log.begin(std::move(plan), 0);
    log.submitted(i, 0);
    log.end();
  }
  log.begin(plan_of({"mul"}), 2);
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
  log.cancel();
  log.begin(plan_of({"neg"}), 2);
  EXPECT_EQ(
      log.describe(2),
      "last completed: evaluation 2 (its last step was exp); in flight: evaluation 3 (1 step, neg to neg)");
}

}  // namespace
}  // namespace caldera::testing
