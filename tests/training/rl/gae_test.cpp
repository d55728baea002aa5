// Advantages against published numbers and a plain loop.
#include "training/rl/ppo/gae.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/base/error.h"
#include "engine/caldera.h"

namespace caldera::rl {
namespace {

LazyTensor column_of(const std::vector<double>& values) {
  return LazyTensor::from_vector<double>(values, {static_cast<std::int64_t>(values.size()), 1},
                                         Device::cpu());
}

std::vector<double> one_reward_at_the_end(double terminated) {
  const std::vector<double> half(8, 0.5), rewards{0, 0, 0, 0, 0, 0, 0, 1}, last{0, 0, 0, 0, 0, 0, 0, 1};
  std::vector<double> ends(8);
  ends.back() = terminated;
  return generalized_advantages(
             {column_of(rewards), column_of(half), column_of(half), column_of(ends), column_of(last)}, 0.99,
             0.95)
      .to_vector<double>();
}

TEST(Gae, HasThePublishedNumbers) {
  const std::vector<double> want{0.296111526, 0.320161113, 0.345732177, 0.372920975,
                                 0.401829851, 0.432567625, 0.46525,     0.5};
  const std::vector<double> got = one_reward_at_the_end(1);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(got[i], want[i], 5e-10);
  // Truncated: the value behind the end counts.
  const std::vector<double> truncated = one_reward_at_the_end(0);
  EXPECT_NEAR(truncated[0], 0.618305044, 5e-10);
  EXPECT_NEAR(truncated[6], 0.9307975, 5e-10);
  EXPECT_NEAR(truncated[7], 0.995, 5e-10);
}

TEST(Gae, IsThePlainLoop) {
  const std::size_t steps = 13, count = 3;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> r(steps * count), v(r), n(r), t(r), e(r), want(r);
  for (std::size_t i = 0; i < r.size(); ++i) {
    r[i] = uniform(random), v[i] = uniform(random), n[i] = uniform(random);
    t[i] = uniform(random) > 0.7 ? 1 : 0;
    e[i] = t[i] > 0 || uniform(random) > 0.7 ? 1 : 0;
  }
  for (std::size_t k = 0; k < count; ++k) {
    double next = 0;
    for (std::size_t s = steps; s-- > 0;) {
      const std::size_t i = s * count + k;
      next = r[i] + 0.9 * n[i] * (1 - t[i]) - v[i] + 0.9 * 0.7 * (1 - e[i]) * next;
      want[i] = next;
    }
  }
  const auto grid = [&](const std::vector<double>& x) {
    return LazyTensor::from_vector<double>(x, {steps, count}, Device::cpu());
  };
  const auto got =
      generalized_advantages({grid(r), grid(v), grid(n), grid(t), grid(e)}, 0.9, 0.7).to_vector<double>();
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-13) << i;
}

TEST(Gae, NStepReturnsEndWithTheEpisode) {
  const std::vector<double> rewards{1, 2, 3, 4}, values{10, 20, 30, 40};
  const std::vector<unsigned char> terminated{0, 1, 0, 0}, ended{0, 1, 0, 1};
  const auto got = n_step_returns(rewards, values, terminated, ended, 0.5, 2);
  EXPECT_EQ(got, (std::vector<double>{1 + 0.5 * 2, 2, 3 + 0.5 * 4 + 0.25 * 40, 4 + 0.5 * 40}));
  EXPECT_THROW(n_step_returns(rewards, values, terminated, ended, 0.5, 0), ValueError);
}

}  // namespace
}  // namespace caldera::rl
