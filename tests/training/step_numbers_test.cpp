// The numbers of an optimiser's step are nodes of its graph: made once a step, whatever the parameters are.
#include <gtest/gtest.h>

#include <vector>

#include "engine/graph/graph.h"
#include "training/training.h"

namespace caldera {
namespace {

constexpr std::size_t kParameters = 100;

std::vector<LazyTensor> leaves(float first) {
  std::vector<LazyTensor> all;
  for (std::size_t i = 0; i < kParameters; ++i) {
    const float x = first + static_cast<float>(i) / 64;
    all.push_back(LazyTensor::from_vector<float>({x, -x, 0.5F * x}, {3}));
  }
  return all;
}

TEST(StepNumbers, AreSharedByTheParametersOfAnAdamWStep) {
  const std::vector<LazyTensor> p = leaves(1), g = leaves(-2), m = leaves(0.25), v = leaves(9);
  const AdamWScalars scalars{.learning_rate = 0.1, .step = 3};
  const AdamWStep step(scalars);
  std::vector<LazyTensor> shared, single;
  for (std::size_t i = 0; i < kParameters; ++i) {
    const LazyTensor w = square(v[i]);
    const AdamWUpdate a = step(p[i], g[i], m[i], w), b = adamw_update(p[i], g[i], m[i], w, scalars);
    shared.insert(shared.end(), {a.param, a.m, a.v});
    single.insert(single.end(), {b.param, b.m, b.v});
  }
  EXPECT_EQ(Graph(single).node_count() - Graph(shared).node_count(), 8 * (kParameters - 1));
  eval(shared);
  eval(single);
  for (std::size_t i = 0; i < shared.size(); ++i)
    EXPECT_EQ(shared[i].to_vector<float>(), single[i].to_vector<float>()) << i;
}

/// The nodes that an update adds, gradients and state being leaves.
template <class Optimizer, class Options>
std::size_t nodes_of_update(std::size_t count, const Options& options) {
  std::vector<LazyTensor> tensors = leaves(1), grads = leaves(2);
  tensors.resize(count);
  grads.resize(count);
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < count; ++i) parameters.push_back({"p" + std::to_string(i), &tensors[i]});
  Optimizer optimizer(parameters, options);
  optimizer.update(grads);
  return Graph(optimizer.outputs()).node_count();
}

TEST(StepNumbers, AreNoMoreForMoreParameters) {
  const auto numbers = [](std::size_t one, std::size_t hundred) {
    return (kParameters * one - hundred) / (kParameters - 1);  // of each node that is shared, all but one
  };
  const AdamWOptions adamw;
  EXPECT_EQ(numbers(nodes_of_update<AdamW>(1, adamw), nodes_of_update<AdamW>(kParameters, adamw)), 8U);
  const SGDOptions sgd{.momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1};
  EXPECT_EQ(numbers(nodes_of_update<SGD>(1, sgd), nodes_of_update<SGD>(kParameters, sgd)), 4U);
}

TEST(StepNumbers, DoNotMakeAPlanForEachRate) {
  std::vector<LazyTensor> tensors = leaves(1);
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < kParameters; ++i) parameters.push_back({"p" + std::to_string(i), &tensors[i]});
  AdamW optimizer(parameters);
  std::uint64_t before = 0;
  for (const double rate : {0.1, 0.2, 0.9, 0.999}) {  // some of which are other numbers of the step too
    optimizer.update(leaves(2), rate);
    eval(std::vector<LazyTensor>{}, optimizer);
    if (rate == 0.1)
      before = plan_cache_stats().misses;
    else
      EXPECT_EQ(plan_cache_stats().misses, before) << rate;
  }
}

}  // namespace
}  // namespace caldera
