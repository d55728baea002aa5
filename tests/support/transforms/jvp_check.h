// Holds tangents to central differences along their direction, and to the gradients: <w, J v> = <J^T w, v>.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/autodiff/jvp.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {

inline double inner_product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Whether the push-forward of random tangents through `function` agrees with both.
inline ::testing::AssertionResult tangents_agree(const TensorFunction& function,
                                                 const std::vector<Argument>& arguments,
                                                 const GradOptions& options = {}) {
  namespace detail = gradcheck_detail;
  const detail::Values values = detail::draw(arguments, options);
  detail::Values directions, above = values, below = values;
  std::vector<LazyTensor> tangents;
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Whole numbers, so that a step along them stays a multiple of the quantum.
    directions.push_back(random_values(arguments[i].shape.numel(), 1, 3, true, options.seed + 31 + i));
    for (std::size_t k = 0; k < values[i].size(); ++k) {
      double& d = directions[i][k];
      d = std::round(d);
      above[i][k] += d * options.eps;
      below[i][k] -= d * options.eps;
    }
    tangents.push_back(cpu_tensor(directions[i], arguments[i].shape));
  }
  const std::vector<LazyTensor> inputs = detail::leaves(arguments, values);
  const auto [output, tangent] = jvp(function, inputs, tangents);
  if (tangent.shape() != output.shape() || tangent.dtype() != output.dtype()) {
    return ::testing::AssertionFailure() << "the tangent is " << tangent.to_string();
  }
  const std::vector<double> weights = random_values(output.numel(), 0.5, 1.5, true, options.seed + 77);
  const LazyTensor cotangent = astype(cpu_tensor(weights, output.shape()), output.dtype());
  const std::vector<LazyTensor> grads = pull_by_vjp(function(inputs), inputs, cotangent);
  std::vector<LazyTensor> asked = grads;
  asked.push_back(tangent);
  eval(asked);

  const std::vector<double> actual = astype(tangent, DType::f64).to_vector<double>();
  const std::vector<double> high = detail::forward(function, arguments, above);
  const std::vector<double> low = detail::forward(function, arguments, below);
  double scale = 0;
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const double expected = (high[k] - low[k]) / (2 * options.eps);
    scale += std::abs(actual[k] * weights[k]);
    // Written so that NaN fails.
    if (std::abs(actual[k] - expected) <= 10 * options.absolute + options.relative * std::abs(expected))
      continue;
    return ::testing::AssertionFailure() << "element " << k << " of " << output.shape().to_string()
                                         << ": tangent " << actual[k] << ", central difference " << expected;
  }
  double pulled = 0;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const std::vector<double> g = grads[i].to_vector<double>();
    pulled += inner_product(g, directions[i]);
    for (std::size_t k = 0; k < g.size(); ++k) scale += std::abs(g[k] * directions[i][k]);
  }
  const double pushed = inner_product(actual, weights);
  const double rounding = options.quantum > 0 ? 0x1p-22 : 1e-12;
  if (std::abs(pushed - pulled) <= rounding * (1 + scale)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "<w, J v> is " << pushed << ", <J^T w, v> is " << pulled;
}

}  // namespace caldera::testing
