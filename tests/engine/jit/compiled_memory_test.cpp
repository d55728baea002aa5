// compiled: donation, failure, bounds, threads.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "engine/caldera.h"
#include "engine/explain/records.h"
#include "engine/runtime/profiler.h"
#include "tests/support/engine_setup.h"
#include "tests/support/memory_watch.h"
#include "tests/support/messages.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<LazyTensor>;
using Inputs = std::span<const LazyTensor>;

class CompiledMemory : public EngineTest {
 protected:
  static LazyTensor leaf(float value, std::int64_t count = 100) {
    return LazyTensor::from_vector(Floats(static_cast<std::size_t>(count), value), {count}, device());
  }
  static Floats all(float value, std::size_t count = 100) { return Floats(count, value); }
  std::uint64_t donated() const { return donation_stats().buffers - start_.buffers; }

 private:
  DonationStats start_ = donation_stats();
};
INSTANTIATE_TEST_SUITE_P(Setups, CompiledMemory, ::testing::ValuesIn(engine_setups()), engine_setup_name);

VectorFunction halve_both(CompiledOptions options) {
  return compiled(VectorFunction([](Inputs a) {
                    return Tensors{a[0] * 0.5, a[1] * 0.5};
                  }),
                  std::move(options));
}

TEST_P(CompiledMemory, DonatedArgumentsGiveTheirMemory) {
  const VectorFunction step = halve_both({.donate = {0, 1}});
  Tensors state{leaf(8), leaf(16)};
  const Storage* before = state[0].node().value().storage.get();
  for (int i = 0; i < 3; ++i) {
    eval(state);  // what is still being computed is not given
    state = step(state);
  }
  EXPECT_EQ(donated(), 6U);
  EXPECT_EQ(state[0].to_vector<float>(), all(1));
  EXPECT_EQ(state[1].to_vector<float>(), all(2));
  EXPECT_EQ(state[0].node().value().storage.get(), before);
}

TEST_P(CompiledMemory, WhatSomebodyHoldsIsNotOverwritten) {
  const VectorFunction step = halve_both({.donate = {0, 1}});
  const Tensors state{leaf(8), leaf(16)};
  const Tensors handles(1, state[0]);
  const LazyTensor alias = state[1].detach();  // of the same memory
  const Tensors next = step(state);
  const Tensors same = step(Tensors{handles[0], handles[0]});
  EXPECT_EQ(donated(), 0U);
  EXPECT_EQ(handles[0].to_vector<float>(), all(8));
  EXPECT_EQ(alias.to_vector<float>(), all(16));
  EXPECT_EQ(next[0].to_vector<float>(), all(4));
  EXPECT_EQ(same[1].to_vector<float>(), all(4));
  const LazyTensor reader = next[0] + 1.0;  // a graph that is yet to be evaluated
  (void)step(next);
  EXPECT_EQ(donated(), 1U) << "the other one";
  EXPECT_EQ(reader.to_vector<float>(), all(5));
}

TEST_P(CompiledMemory, AnArgumentThatWasGivenAwaySaysSo) {
  const VectorFunction step = halve_both({.donate = {0}});
  const Tensors state{leaf(8), leaf(16)};
  const Tensors next = step(state);
  EXPECT_EQ(donated(), 1U);
  EXPECT_EQ(next[0].to_vector<float>(), all(4));
  EXPECT_FALSE(state[0].is_evaluated());
  EXPECT_MENTIONS(message_of<ValueError>([&] { (void)state[0].to_vector<float>(); }), "given to a compiled");
  EXPECT_THROW((void)(state[0] + 1.0).to_vector<float>(), ValueError);
  EXPECT_THROW((void)state[0].to(Device::null()).eval(), ValueError);
  EXPECT_THROW((void)step(state)[0].to_vector<float>(), ValueError);
  EXPECT_EQ(state[1].to_vector<float>(), all(16));
}

TEST_P(CompiledMemory, AnArgumentThatIsAResultIsKept) {
  const VectorFunction f = compiled(VectorFunction([](Inputs a) {
                                      return Tensors{a[0] * 2.0, a[0]};
                                    }),
                                    {.donate = {0}});
  const Tensors y = f(Tensors{leaf(3)});
  EXPECT_EQ(y[0].to_vector<float>(), all(6));
  EXPECT_EQ(y[1].to_vector<float>(), all(3));
}

TEST_P(CompiledMemory, RunningOutOfItTakesNothingAway) {
  const VectorFunction f = compiled(VectorFunction([](Inputs a) {
                                      return Tensors{a[0] * 0.5, matmul(matmul(a[1], a[1]), a[1])};
                                    }),
                                    {.donate = {0}});
  Tensors state{leaf(8), LazyTensor::full({300, 300}, 0.01, DType::f32, device()).eval()};
  const std::uint64_t limit = backend(device()).counters().limit_bytes;
  for (int i = 0; i < 2; ++i) {  // while tracing, and replaying
    const Tensors given{leaf(8), state[1]};
    set_memory_limit(device(), 1);
    EXPECT_THROW((void)f(given)[1].to_vector<float>(), OutOfMemoryError);
    set_memory_limit(device(), limit);
    EXPECT_EQ(given[0].to_vector<float>(), all(8));
    const Tensors y = f(given);
    EXPECT_EQ(y[0].to_vector<float>(), all(4));
    EXPECT_NEAR(y[1].to_vector<float>()[0], 9e4 * 1e-6, 1e-4);
  }
}

TEST(CompiledFailure, IsThrownByTheCallAndLeavesItsArguments) {
  const ScopedSettings scope;
  const DonationStats before = donation_stats();
  const VectorFunction f = compiled(VectorFunction([](Inputs a) {
                                      return Tensors{cholesky(a[0]), a[1] * 2.0};
                                    }),
                                    {.donate = {0, 1}});
  const auto matrix = [](float off) {
    return LazyTensor::from_vector<float>({1, off, off, 1}, {2, 2}, Device::cpu());
  };
  const LazyTensor x = LazyTensor::from_vector<float>({1, 2}, {2}, Device::cpu());
  const Tensors bad{matrix(2), x * 1.0}, good{matrix(0), x * 1.0};
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW((void)f(bad), ValueError);
    EXPECT_EQ(bad[0].to_vector<float>(), (Floats{1, 2, 2, 1}));
    EXPECT_EQ(bad[1].to_vector<float>(), (Floats{1, 2}));
    EXPECT_EQ(f(good)[0].to_vector<float>(), (Floats{1, 0, 0, 1}));
  }
  EXPECT_EQ(donation_stats().buffers, before.buffers) << "none where the plan may fail";
  const LazyTensor failing = cholesky(matrix(2));
  EXPECT_THROW((void)f(Tensors{failing, x}), ValueError);
  EXPECT_FALSE(failing.is_evaluated());
}

TEST(CompiledFailure, OfWhatItCapturedIsThrownToo) {
  const ScopedSettings scope;
  LazyTensor matrix = LazyTensor::from_vector<float>({1, 2, 2, 1}, {2, 2}, Device::cpu());
  const LazyTensor captured = cholesky(matrix);
  const UnaryFunction f = compiled(UnaryFunction([&](const LazyTensor& x) { return x * captured; }));
  for (int i = 0; i < 2; ++i) {
    captured.eval_async();  // pending while it is captured, or failed by then
    EXPECT_THROW((void)f(matrix), ValueError);
  }
  EXPECT_FALSE(captured.is_evaluated());
}

TEST_P(CompiledMemory, TracesThatWereUsedLongestAgoGo) {
  int calls = 0;
  const UnaryFunction f = compiled(UnaryFunction([&](const LazyTensor& x) {
                                     ++calls;
                                     return x * 2.0;
                                   }),
                                   {.most_traces = 2});
  for (const std::int64_t count : {1, 2, 1, 3, 1, 2}) {
    EXPECT_EQ(f(leaf(3, count)).to_vector<float>(), all(6, static_cast<std::size_t>(count)));
  }
  EXPECT_EQ(calls, 4) << "of 1, 2 and 3, and of 2 again";
}

TEST_P(CompiledMemory, PlansThatWereDroppedAreMadeAgain) {
  int calls = 0;
  const UnaryFunction f = compiled(UnaryFunction([&](const LazyTensor& x) {
    ++calls;
    return sum(slice(x, 0, 3, 9) * x[0]) + 0.25;
  }));
  EXPECT_EQ(f(leaf(2)).item<float>(), 24.25F);
  clear_plan_cache();
  trim();
  EXPECT_EQ(f(leaf(3)).item<float>(), 54.25F);
  settings().plan_cache = false;
  EXPECT_EQ(f(leaf(1)).item<float>(), 6.25F);
  settings().plan_cache = true;
  const std::size_t limit = plan_cache_stats().limit;
  set_plan_cache_limit(1);
  EXPECT_EQ((leaf(1) + 7.0).to_vector<float>()[0], 8.0F);  // pushes the other plan out
  EXPECT_EQ(f(leaf(4)).item<float>(), 96.25F);
  set_plan_cache_limit(limit);
  EXPECT_EQ(calls, 1);
}

TEST(CompiledReopening, TracesAnew) {
  int calls = 0;
  const UnaryFunction f = compiled(UnaryFunction([&](const LazyTensor& x) {
    ++calls;
    return x + LazyTensor::ones({2}, DType::f32, Device::null());
  }));
  const auto input = [] { return LazyTensor::zeros({2}, DType::f32, Device::null()); };
  (void)f(input());
  reopen_device(Device::null());
  EXPECT_TRUE(f(input()).is_evaluated());
  EXPECT_EQ(calls, 2);
}

TEST_P(CompiledMemory, IsCalledFromSeveralThreads) {
  std::atomic<int> calls = 0;
  const LazyTensor weights = leaf(2, 1);
  const TensorFunction f = compiled(TensorFunction([&](Inputs a) {
    ++calls;
    return a[0] * weights + a[1];
  }));
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        const std::int64_t count = 1 + i % 3;
        const auto value = static_cast<float>(t * 100 + i);
        EXPECT_EQ(f(Tensors{leaf(value, count), i}).to_vector<float>(),
                  all(2 * value + static_cast<float>(i), static_cast<std::size_t>(count)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(calls, 3 * 4);
}

TEST_P(CompiledMemory, IsSeenByTheProfiler) {
  const UnaryFunction f = compiled(UnaryFunction([](const LazyTensor& x) { return tanh(x) * 2.0; }));
  const LazyTensor x = leaf(0);
  (void)f(x).to_vector<float>();
  const Profiler profiler;
  EXPECT_EQ(f(x).to_vector<float>(), all(0));
  synchronize();
  ASSERT_EQ(profiler.runs().size(), 1U);
  const RunRecord& run = *profiler.runs()[0];
  EXPECT_TRUE(run.cache_hit);
  EXPECT_EQ(run.graph.nodes.size(), 4U) << "x, tanh, 2, their product";
  EXPECT_TRUE(run.graph.nodes[0].is_data);
}

TEST_P(CompiledMemory, LongLoopsKeepWhatShortOnesDo) {
  const bool is_cpu = device() == Device::cpu();
  for (const bool donates : {true, false}) {
    const VectorFunction step = compiled(
        VectorFunction([](Inputs a) {
          const auto [loss, grads] = value_and_grad(
              TensorFunction([&](Inputs w) { return mean(square(w[0] * a[2] - w[1])); }), a.first(2));
          return Tensors{a[0] - a[3] * grads[0], a[1] - a[3] * grads[1], loss};
        }),
        {.donate = donates ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{}});
    const LazyTensor x = leaf(0.5F, 8);
    Tensors state{leaf(1, 8), leaf(-1, 8), x, 0};
    const std::uint64_t before = donated();
    const int steps = is_cpu ? (donates && GetParam().fusion ? 100'000 : 5'000) : 300;
    MemorySample early;
    for (int i = 0; i < steps; ++i) {
      state[3] = 1e-4 + 1e-6 * (i % 7);
      Tensors next = step(state);
      state[0] = next[0];
      state[1] = next[1];
      if (i != steps / 4 && i != steps - 1) continue;
      next.clear();
      synchronize();
      const MemorySample now = take_sample(device(), 0, 0);
      if (i == steps / 4) {
        early = now;
        continue;
      }
      EXPECT_LE(now.device_live, early.device_live);
      EXPECT_LE(now.heap, early.heap + (is_cpu ? 16'384 : 262'144));
    }
    EXPECT_TRUE(std::isfinite(state[0].to_vector<float>()[0]));
    if (is_cpu) {
      EXPECT_EQ(donated() - before, donates ? 2U * static_cast<unsigned>(steps) : 0U);
    }
  }
}

}  // namespace
}  // namespace caldera::testing
