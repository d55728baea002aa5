// Distributions against their formulas, published numbers, and gradcheck.
#include "ops/distributions/distributions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "engine/caldera.h"

namespace caldera {
namespace {

LazyTensor doubles_of(const std::vector<double>& values) {
  return LazyTensor::from_vector<double>(values, {static_cast<std::int64_t>(values.size())}, Device::cpu());
}

// torch.distributions of PyTorch 2.6 in f64: Independent(Normal(mean, log_std.exp()), 1), its
// TransformedDistribution by TanhTransform, Categorical(logits=...).
const std::vector<double> kMean{0.3, -0.7, 1.2}, kLogStd{-0.5, 0.1, -1}, kPoint{0.1, -0.2, 1};

TEST(Distributions, NormalHasPyTorchsNumbers) {
  const DiagonalNormal p(doubles_of(kMean), doubles_of(kLogStd));
  EXPECT_NEAR(p.log_prob(doubles_of(kPoint)).item<double>(), -1.6613037022965595, 1e-14);
  EXPECT_NEAR(p.entropy().item<double>(), 2.856815599614018, 1e-14);
  const TanhNormal squashed(doubles_of(kMean), doubles_of(kLogStd));
  EXPECT_NEAR(squashed.log_prob_before(doubles_of(kPoint)).item<double>(), -0.744022520007198, 1e-14);
  EXPECT_NEAR(squashed.log_prob(tanh(doubles_of(kPoint))).item<double>(), -0.744022520007198, 1e-12);
  const Normal one(LazyTensor::full({}, 0.5, DType::f64, Device::cpu()),
                   LazyTensor::full({}, 2.0, DType::f64, Device::cpu()));
  EXPECT_NEAR(one.cdf(LazyTensor(1.5)).item<double>(), 0.5 * std::erfc(-0.5 / std::numbers::sqrt2), 1e-15);
}

TEST(Distributions, CategoricalHasPyTorchsNumbers) {
  const Categorical p(doubles_of({1, 2, -0.5, 0.25}));
  EXPECT_NEAR(p.entropy().item<double>(), 1.0249636917571192, 1e-14);
  EXPECT_NEAR(p.log_prob(LazyTensor::from_vector<int>({2}, {}, Device::cpu())).item<double>(),
              -2.984731134701968, 1e-14);
  EXPECT_EQ(p.mode().item<int>(), 1);
}

TEST(Distributions, DivergencesAreTheirSums) {
  const Categorical p(doubles_of({1, 2, -0.5})), q(doubles_of({0.2, -1, 0.3}));
  const auto a = p.probs().to_vector<double>(), b = q.probs().to_vector<double>();
  double want = 0;
  for (std::size_t i = 0; i < 3; ++i) want += a[i] * std::log(a[i] / b[i]);
  EXPECT_NEAR(kl_divergence(p, q).item<double>(), want, 1e-14);

  const double x = 1 / (1 + std::exp(-0.7)), y = 1 / (1 + std::exp(0.4));
  EXPECT_NEAR(kl_divergence(Bernoulli(doubles_of({0.7})), Bernoulli(doubles_of({-0.4}))).item<double>(),
              x * std::log(x / y) + (1 - x) * std::log((1 - x) / (1 - y)), 1e-14);
  EXPECT_NEAR(Bernoulli(doubles_of({0.7})).entropy().item<double>(),
              -x * std::log(x) - (1 - x) * std::log(1 - x), 1e-14);

  // By the midpoint rule over twelve deviations.
  const Normal f(doubles_of({0.3}), doubles_of({0.8})), g(doubles_of({-0.4}), doubles_of({1.5}));
  std::vector<double> at;
  for (int i = 0; i < 20000; ++i) at.push_back(0.3 + 0.8 * (-12 + (i + 0.5) * 24 / 20000));
  const LazyTensor points = doubles_of(at);
  const LazyTensor integrand = exp(f.log_prob(points)) * (f.log_prob(points) - g.log_prob(points));
  EXPECT_NEAR(kl_divergence(f, g).item<double>(), sum(integrand).item<double>() * 0.8 * 24 / 20000, 1e-9);

  const Uniform narrow(doubles_of({0.5}), doubles_of({1.0})), wide(doubles_of({0.0}), doubles_of({2.0}));
  EXPECT_NEAR(kl_divergence(narrow, wide).item<double>(), std::log(4), 1e-14);
  EXPECT_TRUE(std::isinf(kl_divergence(wide, narrow).item<double>()));
  EXPECT_TRUE(std::isinf(narrow.log_prob(doubles_of({1.0})).item<double>()));
}

TEST(Distributions, GradientsAreThoseOfDifferences) {
  using testing::gradcheck;
  const auto check = [](const char* what, const TensorFunction& f, std::vector<LazyTensor> at) {
    const auto result = gradcheck(f, at);
    EXPECT_TRUE(result.passed) << what << ": " << result.message;
  };
  const std::vector<LazyTensor> normal{doubles_of(kMean), doubles_of(kLogStd), doubles_of(kPoint)};
  const auto noise = doubles_of({0.3, -1.1, 0.7});
  check(
      "log_prob", [](auto a) { return DiagonalNormal(a[0], a[1]).log_prob(a[2]); }, normal);
  check("entropy", [](auto a) { return DiagonalNormal(a[0], a[1]).entropy(); }, {normal[0], normal[1]});
  check(
      "squashed", [](auto a) { return TanhNormal(a[0], a[1]).log_prob_before(a[2]); }, normal);
  check(
      "squashed value", [](auto a) { return TanhNormal(a[0], a[1]).log_prob(tanh(a[2])); }, normal);
  check("rsample", [&](auto a) { return TanhNormal(a[0], a[1]).rsample(noise).value; },
        {normal[0], normal[1]});
  check(
      "divergence",
      [](auto a) { return kl_divergence(DiagonalNormal(a[0], a[1]), DiagonalNormal(a[2], a[0])); }, normal);
  check(
      "numbers", [](auto a) { return Normal(a[0], exp(a[1])).log_prob(a[2]); }, normal);
  check(
      "cdf", [](auto a) { return Normal(a[0], exp(a[1])).cdf(a[2]); }, normal);
  const auto labels = LazyTensor::from_vector<int>({2}, {}, Device::cpu());
  check("categorical", [&](auto a) { return Categorical(a[0]).log_prob(labels); }, {normal[0]});
  check("categorical entropy", [](auto a) { return Categorical(a[0]).entropy(); }, {normal[0]});
  check("categorical divergence", [](auto a) { return kl_divergence(Categorical(a[0]), Categorical(a[1])); },
        {normal[0], normal[1]});
  check("bernoulli", [](auto a) { return Bernoulli(a[0]).log_prob(LazyTensor(1.0)); }, {normal[0]});
  check("bernoulli entropy", [](auto a) { return Bernoulli(a[0]).entropy(); }, {normal[0]});
  check("uniform", [](auto a) { return Uniform(a[0] - 2.0, a[0] + exp(a[1])).log_prob(a[0]); },
        {normal[0], normal[1]});
}

TEST(Distributions, DrawsHaveTheirMoments) {
  // Of 20,000 draws: the bounds are four to eight standard errors, and the seeds are fixed.
  const auto large = [](double value) { return LazyTensor::full({20000}, value, DType::f64, Device::cpu()); };
  const LazyTensor x = Normal(large(1.5), large(0.5)).sample(1);
  EXPECT_NEAR(mean(x).item<double>(), 1.5, 0.02);
  EXPECT_NEAR(std(x).item<double>(), 0.5, 0.02);
  EXPECT_NEAR(mean(Uniform(large(-1), large(2)).sample(2)).item<double>(), 0.5, 0.03);
  EXPECT_NEAR(mean(astype(Bernoulli(large(0.7)).sample(3), DType::f64)).item<double>(),
              1 / (1 + std::exp(-0.7)), 0.015);
  const LazyTensor logits = broadcast_to(doubles_of({1, 2, -0.5, 0.25}), {20000, 4});
  const Categorical choice(logits);
  const double want = std::exp(2) / (std::exp(1) + std::exp(2) + std::exp(-0.5) + std::exp(0.25));
  for (const LazyTensor& drawn :
       {choice.sample(4), choice.sample(random_uniform({20000, 4}, 5, DType::f64, Device::cpu()))})
    EXPECT_NEAR(mean(astype(drawn == 1, DType::f64)).item<double>(), want, 0.015);
  const LazyTensor squashed = TanhNormal(broadcast_to(doubles_of({3}), {1000, 1}), doubles_of({1})).sample(6);
  EXPECT_LE(max(abs(squashed)).item<double>(), 1);
  EXPECT_GT(max(squashed).item<double>(), 0.99);
}

TEST(Distributions, RefuseWhatIsNoParameter) {
  EXPECT_THROW(Categorical(LazyTensor::from_vector<int>({1, 2}, {2})), DTypeError);
  EXPECT_THROW(Normal(LazyTensor(), LazyTensor::ones({2})), ValueError);
  EXPECT_THROW(Normal(LazyTensor::zeros({3}), LazyTensor::ones({2})), ShapeError);
  EXPECT_THROW(DiagonalNormal(LazyTensor::zeros({}), LazyTensor::zeros({})), ShapeError);
}

}  // namespace
}  // namespace caldera
