// Donation: results take the memory of inputs that nobody holds, and no value that anybody holds ever
// changes.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "ops/nn/optimizer_updates.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class Donating : public EngineTest {
 protected:
  static constexpr int kCount = 1000;

  static LazyTensor leaf(float value, int count = kCount) {
    return LazyTensor::from_vector(Floats(static_cast<std::size_t>(count), value), {count}, device());
  }
  static Floats all(float value, int count = kCount) {
    return Floats(static_cast<std::size_t>(count), value);
  }
  std::uint64_t donated() const { return donation_stats().buffers - start_.buffers; }

 private:
  DonationStats start_ = donation_stats();
};
INSTANTIATE_TEST_SUITE_P(Setups, Donating, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(Donating, AReplacedValueGivesItsMemory) {
  LazyTensor x = leaf(1);
  const std::uint64_t bytes = donation_stats().bytes;
  for (int i = 0; i < 5; ++i) {
    x = x * 2.0;
    x.eval();
  }
  EXPECT_EQ(x.to_vector<float>(), all(32));
  EXPECT_EQ(donated(), 5U);
  EXPECT_EQ(donation_stats().bytes - bytes, 5U * kCount * sizeof(float));
}

TEST_P(Donating, AHeldValueDoesNot) {
  const LazyTensor x = leaf(1);
  LazyTensor y = x * 2.0;
  y.eval();
  EXPECT_EQ(donated(), 0U);
  EXPECT_EQ(x.to_vector<float>(), all(1));
  EXPECT_EQ(y.to_vector<float>(), all(2));
}

TEST_P(Donating, AnAliasHoldsTheValue) {
  LazyTensor x = leaf(1);
  const LazyTensor view = x.detach();  // shares the storage, not the node
  x = x * 2.0;
  x.eval();
  EXPECT_EQ(donated(), 0U);
  EXPECT_EQ(view.to_vector<float>(), all(1));
  EXPECT_EQ(x.to_vector<float>(), all(2));
}

TEST_P(Donating, TwoAliasesInOneGraphStayApart) {
  LazyTensor x = leaf(3);
  LazyTensor y = x.detach() * 2.0;
  x = x + 1.0;
  eval({x, y});
  EXPECT_EQ(donated(), 0U);
  EXPECT_EQ(x.to_vector<float>(), all(4));
  EXPECT_EQ(y.to_vector<float>(), all(6));
}

TEST_P(Donating, AnUnevaluatedUserHoldsTheValue) {
  LazyTensor x = leaf(1);
  const LazyTensor later = x + 10.0;  // still needs x after the evaluation
  x = x * 2.0;
  x.eval();
  EXPECT_EQ(donated(), 0U);
  EXPECT_EQ(later.to_vector<float>(), all(11));
  EXPECT_EQ(x.to_vector<float>(), all(2));
}

TEST_P(Donating, AHeldIntermediateHoldsItsInputs) {
  LazyTensor x = leaf(1);
  const LazyTensor middle = x + 10.0;
  LazyTensor y = middle * x;
  x = LazyTensor();
  y.eval();
  EXPECT_EQ(donated(), 0U) << "middle has not been computed for keeps: it needs x";
  EXPECT_EQ(y.to_vector<float>(), all(11));
  EXPECT_EQ(middle.to_vector<float>(), all(11));
}

TEST_P(Donating, AValueAskedForStays) {
  LazyTensor x = leaf(1);
  std::vector<LazyTensor> outputs;
  {
    const LazyTensor doubled = x * 2.0;
    outputs = {x, doubled};
  }
  x = LazyTensor();
  eval(outputs);
  EXPECT_EQ(outputs[0].to_vector<float>(), all(1));
  EXPECT_EQ(outputs[1].to_vector<float>(), all(2));
  EXPECT_EQ(donated(), 0U);
}

TEST_P(Donating, OneInputServesOneOutput) {
  LazyTensor x = leaf(5);
  std::vector<LazyTensor> outputs{x + 1.0, x + 2.0, x * x};
  x = LazyTensor();
  eval(outputs);
  EXPECT_EQ(outputs[0].to_vector<float>(), all(6));
  EXPECT_EQ(outputs[1].to_vector<float>(), all(7));
  EXPECT_EQ(outputs[2].to_vector<float>(), all(25));
  EXPECT_LE(donated(), 1U);
}

TEST_P(Donating, OtherPointsAreNotOverwritten) {
  // Reversed, transposed, reduced over, or read twice at different places: no donation may touch these.
  Floats values(36);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto fresh = [&] { return LazyTensor::from_vector(values, {6, 6}, device()); };
  LazyTensor x = fresh();
  x = slice(x, 0, std::nullopt, std::nullopt, -1) + x;
  x.eval();
  LazyTensor y = fresh();
  y = transpose(y) - y;
  y.eval();
  LazyTensor z = fresh();
  z = z - sum(z, 1, true);
  z.eval();
  LazyTensor w = fresh();
  w = matmul(w, w) + w;
  w.eval();
  for (int r = 0; r < 6; ++r) {
    for (int c = 0; c < 6; ++c) {
      const auto at = [](int i, int j) { return static_cast<float>(6 * i + j); };
      float product = at(r, c);
      for (int k = 0; k < 6; ++k) product += at(r, k) * at(k, c);
      const auto i = static_cast<std::size_t>(6 * r + c);
      EXPECT_EQ(x.to_vector<float>()[i], at(5 - r, c) + at(r, c));
      EXPECT_EQ(y.to_vector<float>()[i], at(c, r) - at(r, c));
      EXPECT_EQ(z.to_vector<float>()[i], at(r, c) - static_cast<float>(36 * r + 15));
      EXPECT_EQ(w.to_vector<float>()[i], product);
    }
  }
}

TEST_P(Donating, OtherSizesAreNotGiven) {
  LazyTensor x = leaf(1);
  x = slice(x, 0, 0, 10) * 2.0;
  x.eval();
  EXPECT_EQ(donated(), 0U);
  EXPECT_EQ(x.to_vector<float>(), all(2, 10));
}

/// A training step in the manner of AdamW: a parameter and two moments, each replaced by a function of
/// itself.
struct Training {
  LazyTensor p, m, v;
  LazyTensor step(double rate) {
    LazyTensor loss = mean(square(p - 3.0));
    const LazyTensor g = grad(loss, p);
    m = m * 0.9 + g * 0.1;
    v = v * 0.99 + square(g) * 0.01;
    p = p - m / (sqrt(v) + 1e-6) * rate;
    return loss;
  }
};

TEST_P(Donating, ATrainingLoopReplacesItsStateInPlace) {
  Training training{leaf(1), leaf(0), leaf(0)};
  Training held{leaf(1), leaf(0), leaf(0)};
  std::vector<LazyTensor> history;  // keeps every value of the second one
  for (int i = 0; i < 10; ++i) {
    history.insert(history.end(), {held.p, held.m, held.v});
    LazyTensor loss = held.step(0.1 / (1 + i));
    eval({loss, held.p, held.m, held.v});
  }
  EXPECT_EQ(donated(), 0U);
  std::vector<Floats> values;
  for (const LazyTensor& t : history) values.push_back(t.to_vector<float>());
  for (int i = 0; i < 10; ++i) {
    const auto at = 3 * static_cast<std::size_t>(i);
    EXPECT_EQ(training.p.to_vector<float>(), values[at]) << i;
    EXPECT_EQ(training.m.to_vector<float>(), values[at + 1]) << i;
    EXPECT_EQ(training.v.to_vector<float>(), values[at + 2]) << i;
    const LazyTensor loss = training.step(0.1 / (1 + i));
    eval({loss, training.p, training.m, training.v});
    if (GetParam().fusion) {
      // The first step's p stays for the gradient of the new p by m and v, which keep no history themselves.
      EXPECT_EQ(donated(), 3U * static_cast<std::uint64_t>(i) + 2U);
    }
  }
  if (!GetParam().fusion) {
    EXPECT_GT(donated(), 0U);
  }
  // What the history holds has not changed.
  for (std::size_t k = 0; k < history.size(); ++k) EXPECT_EQ(history[k].to_vector<float>(), values[k]);
}

TEST_P(Donating, AnUpdateBehindAProductIsRightInPlace) {
  // With fusion, the update of all three tensors is the epilogue of the gradient's product.
  const auto random = [](const Shape& shape, std::uint64_t seed) {
    LazyTensor t = random_normal(shape, seed, DType::f32, device());
    t.eval();
    return t.detach();
  };
  struct State {
    LazyTensor p, m, v;
  };
  const Shape shape{33, 70};
  const auto start = [&] {
    return State{random(shape, 1), random(shape, 2), square(random(shape, 3)).eval().detach()};
  };
  const LazyTensor x = random({40, 33}, 4);
  const auto step = [&](State& s, int t) {
    const LazyTensor loss = mean(square(matmul(x, s.p)));
    const AdamWUpdate update =
        adamw_update(s.p, grad(loss, s.p), s.m, s.v, {.learning_rate = 0.1, .weight_decay = 0.01, .step = t});
    s = {update.param, update.m, update.v};
    return loss;
  };
  State held = start();
  std::vector<State> history;
  for (int t = 1; t <= 5; ++t) {
    history.push_back(held);
    const LazyTensor loss = step(held, t);
    eval({loss, held.p, held.m, held.v});
  }
  EXPECT_EQ(donated(), 0U);
  State replaced = start();
  for (int t = 1; t <= 5; ++t) {
    const LazyTensor loss = step(replaced, t);
    eval({loss, replaced.p, replaced.m, replaced.v});
  }
  if (GetParam().fusion) {
    EXPECT_EQ(donated(), 15U);
  }
  EXPECT_EQ(replaced.p.to_vector<float>(), held.p.to_vector<float>());
  EXPECT_EQ(replaced.m.to_vector<float>(), held.m.to_vector<float>());
  EXPECT_EQ(replaced.v.to_vector<float>(), held.v.to_vector<float>());
}

TEST_P(Donating, SteadyStateTakesNoNewMemory) {
  Training training{leaf(1), leaf(0), leaf(0)};
  const auto step = [&] {
    const LazyTensor loss = training.step(0.01);
    eval({loss, training.p, training.m, training.v});
    return loss.item();
  };
  for (int i = 0; i < 3; ++i) step();
  const DeviceCounters before = backend(device()).counters();
  for (int i = 0; i < 5; ++i) step();
  const DeviceCounters after = backend(device()).counters();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.peak_bytes, before.peak_bytes);
  EXPECT_EQ(after.submits, before.submits + 5);
}

TEST_P(Donating, AsynchronousLoopsGetTheSameValues) {
  LazyTensor x = leaf(1);
  std::vector<LazyTensor> held;
  EvalFuture future;
  for (int i = 0; i < 200; ++i) {
    if (i % 7 == 0) held.push_back(x);
    x = x + 1.0;
    future = x.eval_async();
  }
  future.get();
  EXPECT_EQ(x.to_vector<float>(), all(201));
  for (std::size_t k = 0; k < held.size(); ++k) {
    EXPECT_EQ(held[k].to_vector<float>(), all(1 + 7 * static_cast<float>(k)));
  }
}

TEST_P(Donating, ValuesHeldByOtherThreadsNeverChange) {
  // One thread replaces a value in a loop; others take handles to it at random moments and watch them.
  std::mutex mutex;
  LazyTensor shared = leaf(0, 64);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> looks{0};
  const auto watch = [&](bool as_view) {
    while (!stop) {
      LazyTensor mine;
      {
        const std::scoped_lock lock(mutex);
        mine = as_view ? shared.detach() : shared;
      }
      const Floats first = mine.to_vector<float>();
      const LazyTensor derived = mine + 0.5;
      std::this_thread::yield();
      const Floats again = mine.to_vector<float>();
      if (first != all(first[0], 64) || again != first) ++wrong;
      if (derived.to_vector<float>() != all(first[0] + 0.5F, 64)) ++wrong;
      ++looks;
    }
  };
  std::thread handles(watch, false);
  std::thread views(watch, true);
  for (int i = 0; i < 300 || looks < 20; ++i) {
    LazyTensor next;
    {
      const std::scoped_lock lock(mutex);
      next = shared + 1.0;
      shared = next;
    }
    next.eval();
  }
  stop = true;
  handles.join();
  views.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace caldera::testing
