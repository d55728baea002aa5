// A million nodes in a row: nothing recurses. Everything runs on a thread whose stack would not hold one
// frame for every hundredth node.
#include <gtest/gtest.h>
#include <pthread.h>

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/engine_setup.h"
#include "tests/support/sanitizers.h"

namespace caldera::testing {
namespace {

// Sanitizers make frames larger and everything slower; a tenth of the nodes still overflows such a stack.
constexpr std::size_t kStackBytes = kSanitized ? 1U << 20U : 256U << 10U;
constexpr int kNodes = kSanitized ? 100'000 : 1'000'000;

/// Runs `body` on a thread with a small stack. An exception fails the test.
void run_on_small_stack(std::function<void()> body) {
  struct Task {
    std::function<void()> body;
    std::string error;
  } task{std::move(body), {}};
  const auto entry = [](void* argument) -> void* {
    auto& t = *static_cast<Task*>(argument);
    try {
      t.body();
    } catch (const std::exception& error) {
      t.error = error.what();
    }
    return nullptr;
  };
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, entry, &task), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(task.error, "");
}

LazyTensor chain_leaf(std::vector<float> values, const Shape& shape) {
  return LazyTensor::from_vector(values, shape, Device::cpu());
}

class LongChain : public ::testing::Test {
 protected:
  void TearDown() override { clear_plan_cache(); }  // a plan of this size is not worth keeping
  ScopedSettings scope_;
};

TEST_F(LongChain, IsDestroyedUnevaluated) {
  run_on_small_stack([] {
    const LazyTensor x = chain_leaf({1, 2}, {2});
    LazyTensor y = x;
    for (int i = 0; i < kNodes; ++i) y = negative(y);
    EXPECT_EQ(y.graph_size(), static_cast<std::size_t>(kNodes));
    const Graph view({y});
    EXPECT_EQ(view.node_count(), static_cast<std::size_t>(kNodes) + 1);
    y = x;  // the view is the last owner now
  });
}

TEST_F(LongChain, OfElementwiseOperationsEvaluates) {
  run_on_small_stack([] {
    const LazyTensor one = chain_leaf({1, 2}, {2});
    LazyTensor y = chain_leaf({0, 0}, {2});
    for (int i = 0; i < kNodes; ++i) y = y + one;
    const auto n = static_cast<float>(kNodes);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{n, 2 * n}));
  });
}

TEST_F(LongChain, OfElementwiseOperationsDifferentiates) {
  run_on_small_stack([] {
    // Each step scales by -1, so the gradient of x is 1 for an even number of steps, and each step adds
    // -x to the gradient of the scale.
    const int steps = kNodes / 4;  // a gradient makes three nodes a step
    const LazyTensor x = chain_leaf({1, 2}, {2});
    const LazyTensor scale = chain_leaf({-1, -1}, {2});
    LazyTensor y = x;
    for (int i = 0; i < steps; ++i) y = y * scale;
    const std::vector<LazyTensor> grads = grad(sum(y), {x, scale});
    eval({y, grads[0], grads[1]});
    const auto n = static_cast<float>(steps);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2}));
    EXPECT_EQ(grads[0].to_vector<float>(), (std::vector<float>{1, 1}));
    EXPECT_EQ(grads[1].to_vector<float>(), (std::vector<float>{-n, -2 * n}));
  });
}

TEST_F(LongChain, OfAMillionNodesDifferentiates) {
  run_on_small_stack([] {
    const LazyTensor x = chain_leaf({1, 2}, {2});
    LazyTensor y = x;
    for (int i = 0; i < kNodes + 1; ++i) y = negative(y);
    const LazyTensor g = grad(sum(y), x);
    EXPECT_GT(g.graph_size(), static_cast<std::size_t>(kNodes));
    EXPECT_EQ(g.to_vector<float>(), (std::vector<float>{-1, -1}));
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{-1, -2}));
  });
}

TEST_F(LongChain, OfReductionsAndBroadcastsEvaluatesAndDifferentiates) {
  // Nothing here fuses into one kernel: three nodes a round, two steps.
  run_on_small_stack([] {
    const LazyTensor x = chain_leaf({1, 3}, {2, 1});
    const LazyTensor half = chain_leaf({0.5F}, {1, 1});
    LazyTensor y = x;
    for (int i = 0; i < kNodes / 3; ++i) y = broadcast_to(sum(y, 0, true) * half, {2, 1});
    const LazyTensor g = grad(sum(y * chain_leaf({1, 0}, {2, 1})), x);
    EXPECT_GT(g.graph_size(), static_cast<std::size_t>(kNodes / 3 * 3));
    eval({y, g});
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 2}));
    EXPECT_EQ(g.to_vector<float>(), (std::vector<float>{0.5F, 0.5F}));
  });
}

TEST_F(LongChain, IsPushedForward) {
  run_on_small_stack([] {
    const int steps = kNodes / 10;
    const LazyTensor x = chain_leaf({1, 2}, {2});
    const LazyTensor scale = chain_leaf({-1, -1}, {2});
    const LazyTensor along[] = {chain_leaf({3, 5}, {2}), chain_leaf({1, 0}, {2})};
    const LazyTensor inputs[] = {x, scale};
    LazyTensor y = x;
    for (int i = 0; i < steps; ++i) y = y * scale;
    const LazyTensor tangent = jvp({&y, 1}, inputs, along)[0];
    EXPECT_GT(tangent.graph_size(), static_cast<std::size_t>(steps));
    // x s^n along (u, v) is u s^n + n x s^(n - 1) v, for an even n.
    EXPECT_EQ(tangent.to_vector<float>(), (std::vector<float>{3 - static_cast<float>(steps), 5}));
  });
}

TEST_F(LongChain, IsMapped) {
  run_on_small_stack([] {
    const int steps = kNodes / 10;
    const LazyTensor x = chain_leaf({1, 2, 3, 4, 5, 6}, {3, 2});
    const LazyTensor one = chain_leaf({1, 2}, {2});
    const LazyTensor y = vmap(UnaryFunction([&](const LazyTensor& a) {
      LazyTensor sum = a;
      for (int i = 0; i < steps; ++i) sum = sum + one;
      return sum;
    }))(x);
    const auto n = static_cast<float>(steps);
    EXPECT_EQ(y.to_vector<float>(),
              (std::vector<float>{1 + n, 2 + 2 * n, 3 + n, 4 + 2 * n, 5 + n, 6 + 2 * n}));
  });
}

TEST_F(LongChain, WithoutFusionEvaluates) {
  settings().fusion = false;
  run_on_small_stack([] {
    const int steps = kNodes / 2;  // a step of the plan for each
    const LazyTensor one = chain_leaf({1, 2}, {2});
    LazyTensor y = chain_leaf({0, 0}, {2});
    for (int i = 0; i < steps; ++i) y = y + one;
    const auto plan = plan_for({y});
    EXPECT_EQ(plan->steps.size(), static_cast<std::size_t>(steps));
    EXPECT_EQ(plan->arena_bytes, kArenaAlignment) << "every step writes over what the one before it wrote";
    y.eval();
    const auto n = static_cast<float>(steps);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{n, 2 * n}));
  });
}

TEST_F(LongChain, OfMovementsEvaluates) {
  // Views compose: a million of them are one step.
  run_on_small_stack([] {
    LazyTensor y = chain_leaf({1, 2, 3, 4, 5, 6}, {2, 3});
    for (int i = 0; i < kNodes; ++i) y = transpose(y);
    y = y + y;
    EXPECT_EQ(plan_for({y})->steps.size(), 1U);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  });
}

}  // namespace
}  // namespace caldera::testing
