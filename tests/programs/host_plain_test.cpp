// Plain loops need no annotation to be cheap: after the first round nothing is compiled, whatever changes
// from round to round is a number, and the graph of a round is as large as the first one's.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/graph/graph.h"
#include "ops/nn/optimizer_updates.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class HostPlain : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, HostPlain, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(HostPlain, ALoopOfPlainCodeHasOnePlan) {
  const LazyTensor data = random_normal({64, 3}, 3, DType::f32, device()).eval();
  LazyTensor centre = LazyTensor::full({3}, 1.0, DType::f32, device()).eval();
  std::uint64_t plans = 0;
  std::size_t nodes = 0;
  for (int i = 0; i < 12; ++i) {
    const LazyTensor rows = slice(data, 0, 4 * i, 4 * i + 16);
    const LazyTensor loss = mean(square(rows - centre)) * (1.0 + 0.1 * i);
    centre = centre - (0.3 / (1 + i)) * grad(loss, centre);
    if (i == 2) nodes = centre.graph_size();
    EXPECT_TRUE(i < 2 || centre.graph_size() == nodes);
    eval({centre, loss});
    if (i == 2) plans = plan_cache_stats().misses;
  }
  EXPECT_EQ(plan_cache_stats().misses, plans);
}

TEST_P(HostPlain, TheNumbersOfAStepAreSharedByItsParameters) {
  std::vector<LazyTensor> p, g, m, v, next;
  for (int i = 0; i < 10; ++i) {
    for (auto* list : {&p, &g, &m, &v}) list->push_back(LazyTensor::full({4}, 1 + i, DType::f32, device()));
    eval({p.back(), g.back(), m.back(), v.back()});
  }
  const AdamWStep step({.learning_rate = 0.5, .step = 2});
  for (std::size_t i = 0; i < p.size(); ++i) {
    AdamWUpdate update = step(p[i], g[i], m[i], v[i]);
    next.insert(next.end(), {update.param, update.m, update.v});
  }
  const std::size_t ten = Graph(next).node_count(), one = Graph(std::span(next.data(), 3)).node_count();
  EXPECT_EQ(10 * one - ten, 9U * 8) << "eight numbers, however many parameters";
  eval(next);
  EXPECT_LT(next[0].to_vector<float>()[0], 1.0F);
}

}  // namespace
}  // namespace caldera::testing
