// Eight threads that build, evaluate and differentiate graphs which share nodes. Run it under tsan.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;
constexpr int kThreads = 8;

class Threads : public EngineTest {
 protected:
  static LazyTensor leaf(const Floats& values) {
    return LazyTensor::from_vector(values, {static_cast<std::int64_t>(values.size())}, device());
  }
  /// Fewer rounds where each is slow.
  static int rounds() { return device().kind == DeviceKind::cpu ? 40 : 10; }
  static void in_parallel(const std::function<void(int)>& body) {
    std::barrier<> start(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        body(t);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, Threads, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(Threads, EvaluateTheSameNodeAtOnce) {
  for (int round = 0; round < rounds(); ++round) {
    const LazyTensor y = exp(leaf({0, 0, 0})) * static_cast<double>(round) + 1.0;
    const auto wanted = static_cast<float>(round + 1);
    const auto before = backend(device()).counters().submits;
    in_parallel([&](int t) {
      if (t % 2 == 0) {
        y.eval();
      } else {
        y.eval_async().get();
      }
      EXPECT_TRUE(y.is_evaluated());
      EXPECT_EQ(y.to_vector<float>(), Floats(3, wanted));
    });
    EXPECT_EQ(backend(device()).counters().submits, before + 1) << "a node is computed once";
  }
}

TEST_P(Threads, BuildAndEvaluateOverlappingGraphs) {
  for (int round = 0; round < rounds(); ++round) {
    // Threads use prefixes of one chain: some evaluate the part that others are still building upon.
    std::vector<LazyTensor> chain{leaf({1, 2})};
    const LazyTensor one = leaf({1, 1});
    for (int i = 0; i < 30; ++i) chain.push_back(chain.back() + one);
    in_parallel([&](int t) {
      for (int i = t; i <= 30; i += 3) {
        const LazyTensor mine = chain[static_cast<std::size_t>(i)] * 2.0 + static_cast<double>(t);
        const auto value = static_cast<float>(2 * (1 + i) + t);
        EXPECT_EQ(mine.to_vector<float>(), (Floats{value, value + 2}));
      }
    });
  }
}

TEST_P(Threads, DifferentiateWhileOthersEvaluate) {
  for (int round = 0; round < rounds(); ++round) {
    const LazyTensor x = leaf({1, 2, 3});
    const LazyTensor shared = x * x;
    std::atomic<int> differentiated{0};
    in_parallel([&](int t) {
      if (t == 0) {
        shared.eval();
        EXPECT_EQ(shared.to_vector<float>(), (Floats{1, 4, 9}));
        return;
      }
      try {
        const LazyTensor g = grad(sum(shared * x), x);
        EXPECT_EQ(g.to_vector<float>(), (Floats{3, 12, 27}));
        ++differentiated;
      } catch (const GradientError&) {
        // The other thread was first: the history of `shared` is gone, and saying so is right.
        EXPECT_TRUE(shared.node().has_value());
      }
      const LazyTensor own = x * x * x;  // history of its own is never lost
      EXPECT_EQ(grad(sum(own), x).to_vector<float>(), (Floats{3, 12, 27}));
    });
    EXPECT_LE(differentiated, kThreads - 1);
  }
}

TEST_P(Threads, TraceFunctionsThatEvaluateInside) {
  const LazyTensor x = leaf({1, 2, 3});
  in_parallel([&](int t) {
    for (int round = 0; round < rounds() / 5 + 1; ++round) {
      const double k = t + 1;
      const auto [value, grads] = value_and_grad(
          [&](std::span<const LazyTensor> arguments) {
            const LazyTensor square = arguments[0] * arguments[0];
            square.eval();  // keeps its history here
            return sum(square * k);
          },
          std::span(&x, 1));
      EXPECT_EQ(value.item(), static_cast<float>(14 * k));
      EXPECT_EQ(grads[0].to_vector<float>()[2], static_cast<float>(6 * k));
    }
  });
}

TEST_P(Threads, MixAsyncAndSyncOnOneStream) {
  const LazyTensor shared = leaf({1, 1}) * 3.0;
  std::vector<LazyTensor> results(kThreads);
  in_parallel([&](int t) {
    LazyTensor y = shared;
    for (int i = 0; i < rounds(); ++i) {
      y = y + static_cast<double>(t);
      if (i % 2 == t % 2) {
        y.eval();
      } else {
        static_cast<void>(y.eval_async());
      }
    }
    results[static_cast<std::size_t>(t)] = y;
  });
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(results[static_cast<std::size_t>(t)].to_vector<float>(),
              Floats(2, static_cast<float>(3 + t * rounds())));
  }
}

TEST_P(Threads, DropSharedNodesFromEverywhere) {
  for (int round = 0; round < rounds(); ++round) {
    LazyTensor y = leaf({1, 2});
    for (int i = 0; i < 200; ++i) y = y + y * 0.0;
    std::vector<LazyTensor> copies(kThreads, y);
    y = {};
    in_parallel([&](int t) {
      LazyTensor mine = std::move(copies[static_cast<std::size_t>(t)]);
      if (t == 3) {
        EXPECT_EQ(mine.to_vector<float>(), (Floats{1, 2}));
      }
      if (t == 4) {
        EXPECT_GE(Graph({mine}).node_count(), 1U);
      }
      mine = {};
    });
  }
}

TEST_P(Threads, UseTheCacheTogether) {
  in_parallel([&](int t) {
    for (int i = 0; i < rounds(); ++i) {
      const auto n = static_cast<std::size_t>(1 + (i + t) % 5);
      EXPECT_EQ((leaf(Floats(n, 1)) + static_cast<double>(t)).to_vector<float>(),
                Floats(n, static_cast<float>(1 + t)));
      if (t == 0 && i % 10 == 0) clear_plan_cache();
      if (t == 1) static_cast<void>(plan_cache_stats());
      if (t == 2 && i % 10 == 0) synchronize();
    }
  });
}

TEST(ThreadsOnDevices, OneGraphADevice) {
  const ScopedSettings scope;
  std::vector<Device> devices = available_devices();
  devices.push_back(Device::null());
  std::vector<std::thread> threads;
  for (Device device : devices) {
    threads.emplace_back([device] {
      for (int i = 0; i < 20; ++i) {
        const LazyTensor x = LazyTensor::from_vector(Floats{1, 2}, {2}, device);
        const Floats got = (x * 2.0).to_vector<float>();
        const bool computes = device.kind != DeviceKind::null;
        EXPECT_EQ(got, computes ? (Floats{2, 4}) : (Floats{0, 0}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace caldera::testing
