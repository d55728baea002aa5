// Softmax as people write it, and what only looks like it: values and gradients against formulas in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "ops/ops.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class SoftmaxForms : public EngineTest {};

INSTANTIATE_TEST_SUITE_P(Devices, SoftmaxForms, ::testing::ValuesIn(engine_setups()), engine_setup_name);

constexpr std::int64_t kSize = 5;  // square: a wrong axis has fitting extents

std::vector<float> numbers(std::int64_t count, double start) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<float>(1.5 * std::sin(start + 1.7 * static_cast<double>(i))));
  }
  return out;
}

using Form = std::function<LazyTensor(const LazyTensor&)>;
using Formula = std::function<std::vector<double>(const std::vector<double>&)>;

/// exp(x) over its sums along the last axis; the sums are those of row r, or, wrongly broadcast, of row c.
std::vector<double> quotient(const std::vector<double>& x, bool by_column) {
  std::vector<double> totals(kSize, 0), out;
  for (std::size_t r = 0; r < kSize; ++r) {
    for (std::size_t c = 0; c < kSize; ++c) totals[r] += std::exp(x[r * kSize + c]);
  }
  for (std::size_t r = 0; r < kSize; ++r) {
    for (std::size_t c = 0; c < kSize; ++c) {
      out.push_back(std::exp(x[r * kSize + c]) / totals[by_column ? c : r]);
    }
  }
  return out;
}

void check(Device device, const Form& form, const Formula& formula) {
  const std::vector<float> xs = numbers(kSize * kSize, 0.3), gs = numbers(kSize * kSize, 2.1);
  const LazyTensor x = LazyTensor::from_vector(xs, {kSize, kSize}, device);
  const LazyTensor g = LazyTensor::from_vector(gs, {kSize, kSize}, device);
  const LazyTensor y = form(x);
  const std::vector<float> gradient = grad(sum(y * g), x).to_vector<float>();
  const std::vector<float> value = y.to_vector<float>();

  const std::vector<double> at(xs.begin(), xs.end());
  const std::vector<double> wanted = formula(at);
  const auto loss = [&](const std::vector<double>& point) {
    double total = 0;
    const std::vector<double> out = formula(point);
    for (std::size_t i = 0; i < out.size(); ++i) total += out[i] * static_cast<double>(gs[i]);
    return total;
  };
  for (std::size_t i = 0; i < value.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(value[i]), wanted[i], 1e-6) << i;
    constexpr double kStep = 1e-5;
    std::vector<double> up = at, down = at;
    up[i] += kStep;
    down[i] -= kStep;
    EXPECT_NEAR(static_cast<double>(gradient[i]), (loss(up) - loss(down)) / (2 * kStep), 2e-6) << i;
  }
}

TEST_P(SoftmaxForms, ByHand) {
  const auto formula = [](const std::vector<double>& x) { return quotient(x, false); };
  const Form forms[] = {
      [](const LazyTensor& x) { return exp(x) / sum(exp(x), -1, true); },
      [](const LazyTensor& x) {
        return exp(x - max(x, -1, true)) / sum(exp(x - max(x, -1, true)), -1, true);
      },
      [](const LazyTensor& x) {
        const LazyTensor e = exp(x - stop_gradient(max(x, -1, true)));
        return e / expand_dims(sum(e, -1), -1);
      },
      [](const LazyTensor& x) { return exp(x - log(sum(exp(x), -1, true))); },
      [](const LazyTensor& x) { return softmax(x); },
      [](const LazyTensor& x) { return transpose(softmax(transpose(x), 0)); },
  };
  for (const Form& form : forms) check(device(), form, formula);
}

TEST_P(SoftmaxForms, SumsThatMeetTheWrongAxis) {
  check(
      device(), [](const LazyTensor& x) { return exp(x) / sum(exp(x), -1); },
      [](const std::vector<double>& x) { return quotient(x, true); });
}

TEST_P(SoftmaxForms, AttentionWithSumsThatMeetTheWrongAxis) {
  // The scores are x times the identity, and so are the values: what is left is the quotient.
  std::vector<float> ones(kSize * kSize, 0);
  for (std::size_t i = 0; i < kSize; ++i) ones[i * kSize + i] = 1;
  const LazyTensor identity = LazyTensor::from_vector(ones, {kSize, kSize}, device());
  for (bool keep : {true, false}) {
    check(
        device(),
        [&](const LazyTensor& x) {
          const LazyTensor e = exp(matmul(x, identity));
          return matmul(e / sum(e, -1, keep), identity);
        },
        [&](const std::vector<double>& x) { return quotient(x, !keep); });
  }
}

}  // namespace
}  // namespace caldera::testing
