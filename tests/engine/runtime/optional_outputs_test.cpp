// What the program holds of a graph, and the plan stores anyway, has its value with what was asked for: at no
// price in plans, memory that is short, donations or failures.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "engine/graph/node.h"
#include "engine/runtime/plan_cache.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class OptionalOutputsOf : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    settings().plan_cache = true;
    start_over();
  }
  void start_over() {
    clear_plan_cache();
    start_ = plan_cache_stats();
  }
  static LazyTensor random(const Shape& shape, std::uint64_t seed) {
    return random_normal(shape, seed, DType::f32, device()).eval();
  }
  std::uint64_t misses() const { return plan_cache_stats().misses - start_.misses; }
  std::uint64_t hits() const { return plan_cache_stats().hits - start_.hits; }

  /// Row-major, as the host computes it.
  static Floats product(const LazyTensor& a, const LazyTensor& b) {
    const Floats x = a.to_vector<float>(), y = b.to_vector<float>();
    const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
    Floats out(static_cast<std::size_t>(m * n));
    for (std::int64_t i = 0; i < m * n; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < k; ++j)
        sum += static_cast<double>(x[static_cast<std::size_t>(i / n * k + j)]) *
               y[static_cast<std::size_t>(j * n + i % n)];
      out[static_cast<std::size_t>(i)] = static_cast<float>(sum);
    }
    return out;
  }
  static void expect_near(const LazyTensor& got, const Floats& wanted) {
    const Floats values = got.to_vector<float>();
    ASSERT_EQ(values.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(values[i], wanted[i], 1e-4F) << i;
  }

 private:
  PlanCacheStats start_;
};
INSTANTIATE_TEST_SUITE_P(Setups, OptionalOutputsOf, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(OptionalOutputsOf, SeveralValuesAreToldApart) {
  const LazyTensor x = random({6, 5}, 1), w = random({5, 6}, 2);
  const LazyTensor a = matmul(x, w), b = matmul(a, x), c = matmul(w, a), d = matmul(b, c);
  sum(d).eval();
  for (const LazyTensor& h : {a, b, c, d}) EXPECT_TRUE(h.is_evaluated());
  expect_near(a, product(x, w));
  expect_near(b, product(a, x));
  expect_near(c, product(w, a));
  expect_near(d, product(b, c));
}

TEST_P(OptionalOutputsOf, AnotherShapeOfWhatIsStoredCounts) {
  const LazyTensor x = random({6, 5}, 1), w = random({5, 8}, 2), v = random({16, 3}, 3);
  const LazyTensor flat = reshape(matmul(x, w), {3, 16});
  sum(square(matmul(flat, v))).eval();
  EXPECT_TRUE(flat.is_evaluated());
  expect_near(flat, product(x, w));
}

TEST_P(OptionalOutputsOf, AnotherOrderOrAPartOfItDoesNot) {
  const LazyTensor x = random({6, 5}, 1), w = random({5, 6}, 2), v = random({6, 3}, 3);
  const auto two_views = [&] {
    const LazyTensor h = matmul(x, w);
    return std::pair{transpose(h), slice(h, 0, 0, 3)};
  };
  const auto [turned, part] = two_views();
  (sum(square(matmul(turned, v))) + sum(square(matmul(part, v)))).eval();
  EXPECT_FALSE(turned.is_evaluated() || part.is_evaluated());
  const Floats whole = product(x, w), got = turned.to_vector<float>();
  for (std::size_t i = 0; i < 36; ++i) ASSERT_NEAR(got[i], whole[i % 6 * 6 + i / 6], 1e-4F);
  expect_near(part, Floats(whole.begin(), whole.begin() + 18));
}

TEST_P(OptionalOutputsOf, AProductThatIsMadeInAnotherOrderCounts) {
  const LazyTensor x = random({6, 5}, 1), w = random({5, 6}, 2), v = random({6, 3}, 3);
  const LazyTensor turned = transpose(matmul(x, w));
  sum(square(matmul(turned, v))).eval();
  EXPECT_EQ(turned.is_evaluated(), GetParam().fusion) << "unfused, the product is stored as it is written";
  const Floats whole = product(x, w), got = turned.to_vector<float>();
  for (std::size_t i = 0; i < 36; ++i) ASSERT_NEAR(got[i], whole[i % 6 * 6 + i / 6], 1e-4F);
}

TEST_P(OptionalOutputsOf, TemporariesThatFuseMakeNoFurtherPlan) {
  if (!GetParam().fusion) GTEST_SKIP() << "unfused, each step stores its result, so nothing fuses";
  const LazyTensor x = random({40}, 1), y = random({40}, 2);
  start_over();
  const float wanted = sum(square(x - y)).item<float>();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sum(square(x - y)).item<float>(), wanted);
  const auto distance = [&] { return sum(square(x - y)); };
  EXPECT_EQ(distance().item<float>(), wanted) << "and now they are not held";
  EXPECT_EQ(misses(), 1U);
  EXPECT_EQ(hits(), 4U);
}

TEST_P(OptionalOutputsOf, ALoopHasAPlanWithThemAndOneWithout) {
  const LazyTensor x = random({6, 5}, 1), w = random({5, 6}, 2);
  start_over();
  for (int i = 0; i < 6; ++i) {
    LazyTensor h = matmul(x, w);
    const LazyTensor loss = sum(square(matmul(h, h)));
    if (i % 2 == 1) h = x;
    loss.eval();
  }
  EXPECT_EQ(misses(), 2U);
  EXPECT_EQ(hits(), 4U);
}

TEST_P(OptionalOutputsOf, AreThereWithAFuture) {
  const LazyTensor x = random({6, 5}, 1), w = random({5, 6}, 2);
  const LazyTensor h = matmul(x, w), loss = sum(square(matmul(h, h)));
  const EvalFuture future = loss.eval_async();
  expect_near(h, product(x, w));
  future.get();
}

TEST_P(OptionalOutputsOf, TakeNoMemoryThatIsShort) {
  constexpr std::uint64_t kMiB = 1 << 20;
  const LazyTensor x = ones({2048, 8}, DType::f32, device()).eval();
  const LazyTensor w = ones({8, 2048}, DType::f32, device()).eval();
  const LazyTensor v = ones({2048, 4}, DType::f32, device()).eval();
  const auto read_with_h = [&] {
    const LazyTensor h = matmul(x, w);  // 16 MiB
    EXPECT_EQ(sum(matmul(h, v)).item<float>(), 8.0F * 2048 * 2048 * 4);
    return h.is_evaluated();
  };
  synchronize();
  trim();
  set_memory_limit(device(), backend(device()).counters().reserved_bytes + 24 * kMiB);
  EXPECT_FALSE(read_with_h());
  EXPECT_LE(backend(device()).counters().reserved_peak_bytes, backend(device()).counters().limit_bytes);
  set_memory_limit(device(), 0);
  EXPECT_TRUE(read_with_h());
}

TEST_P(OptionalOutputsOf, StayOnceTheyAreAskedFor) {
  const LazyTensor x = random({6, 5}, 1), w = random({5, 6}, 2);
  for (const bool is_asked_for : {false, true}) {
    LazyTensor a = matmul(x, w);
    sum(matmul(a, x)).eval();
    ASSERT_TRUE(a.is_evaluated());
    if (is_asked_for) a.eval();
    const LazyTensor b = a + 1.0;
    const Node& node = a.node();
    a = LazyTensor();  // b reads it
    random({2}, 3);
    EXPECT_EQ(node.has_value(), is_asked_for);
    expect_near(b - 1.0, product(x, w));
  }
}

TEST_P(OptionalOutputsOf, TakeNothingFromDonations) {
  const LazyTensor x = random({6, 5}, 1), w = random({5, 6}, 2);
  std::uint64_t alone = 0;
  for (const bool holds : {false, true}) {
    LazyTensor state = random({6, 6}, 3) * 2.0;
    state.eval();
    LazyTensor h = matmul(x, w);
    const LazyTensor next = state * 0.5 + matmul(h, h);
    if (!holds) h = x;
    state = x;
    const std::uint64_t before = donation_stats().buffers;
    next.eval();
    const std::uint64_t donated = donation_stats().buffers - before;
    if (!holds) alone = donated;
    EXPECT_EQ(donated, alone);
    EXPECT_EQ(donated, GetParam().fusion ? 1U : 0U) << "unfused, the state is read by a step of its own";
    EXPECT_TRUE(h.is_evaluated());
  }
}

TEST_P(OptionalOutputsOf, FailAloneWithWhatTheyNeed) {
  if (device().kind != DeviceKind::cpu) {
    GTEST_SKIP() << "cholesky of a GPU's tensor is computed by the CPU (docs/guide/operations.md), and "
                    "graphs that cross "
                    "devices keep nothing that was not asked for (docs/records/decisions/engine.md)";
  }
  const LazyTensor x = random({6, 6}, 1), bad = (eye(6, {}, 0, DType::f32, device()) * -1.0).eval();
  const LazyTensor h = matmul(x, x), out = sum(matmul(h, x));
  const LazyTensor lost = matmul(cholesky(bad), x), failed = sum(matmul(lost, x));
  EXPECT_THROW(eval({out, failed}), ValueError);
  EXPECT_TRUE(h.is_evaluated());
  expect_near(h, product(x, x));
  EXPECT_FALSE(lost.is_evaluated());
  EXPECT_THROW(lost.eval(), ValueError);
}

}  // namespace
}  // namespace caldera::testing
