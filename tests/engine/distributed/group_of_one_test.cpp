// Training in a group of one rank costs nothing: it runs the plans of training without ranks, and as many
// steps of them.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/device/backend.h"
#include "engine/distributed/communicator.h"
#include "engine/runtime/runtime.h"
#include "tests/training/objective_setup.h"
#include "training/objectives/next_token.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

struct StepsAndPlans {
  std::uint64_t dispatches = 0;
  std::uint64_t plans_made = 0;
  std::vector<float> last;
};

StepsAndPlans trained_with(std::shared_ptr<distributed::Communicator> ranks) {
  ExampleSet set;
  for (int i = 0; i < 8; ++i) set.examples.push_back({.prompt = {}, .text = "a line of one length"});
  const TokenDataset data(set, ByteTokenizer(), {.seq_len = 24});
  const auto model = adapted_model();
  const std::uint64_t before = backend(Device::cpu()).counters().dispatches;
  const std::uint64_t misses = plan_cache_stats().misses;
  train(ObjectiveModels(*model), NextToken(), data, nullptr,
        {.iterations = 3, .batch_size = 2, .grad_accumulation = 2, .ranks = std::move(ranks)});
  return {.dispatches = backend(Device::cpu()).counters().dispatches - before,
          .plans_made = plan_cache_stats().misses - misses,
          .last = model->trainable_parameters().front().tensor->to_vector<float>()};
}

TEST(GroupOfOne, RunsThePlansOfTrainingWithoutRanks) {
  (void)trained_with(nullptr);  // makes the plans
  const StepsAndPlans without = trained_with(nullptr);
  const StepsAndPlans with = trained_with(std::make_shared<distributed::Communicator>());
  EXPECT_EQ(without.plans_made, 0U);
  EXPECT_EQ(with.plans_made, 0U);
  EXPECT_GT(without.dispatches, 0U);
  EXPECT_EQ(with.dispatches, without.dispatches);
  EXPECT_EQ(with.last, without.last);
}

}  // namespace
}  // namespace caldera::testing
