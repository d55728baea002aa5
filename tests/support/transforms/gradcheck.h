// Holds gradients to central differences of the function itself, in f64 on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "tests/support/layouts.h"

namespace caldera::testing {

/// A differentiable argument: its shape, and the magnitudes its values are drawn from.
struct Argument {
  Shape shape;
  double low = 0.3;
  double high = 1.7;
  bool both_signs = true;
};

/// Only positive values, away from 0.
inline Argument positive(const Shape& shape, double low = 0.3, double high = 1.7) {
  return {shape, low, high, false};
}

/// The error of a central difference is eps^2 f'''/6 (about 1e-12) and the rounding of f over eps (about
/// 1e-10): the tolerances leave room for steep functions and long sums, and none for a wrong rule.
struct GradOptions {
  double eps = 1e-6;
  double absolute = 1e-6;
  double relative = 1e-5;
  double quantum = 0;  // values are rounded to multiples of this, so that narrower types hold them
  std::uint64_t seed = 1;
};

/// How the gradients under test are made: by default caldera::vjp.
using Pull = std::function<std::vector<LazyTensor>(
    const LazyTensor& output, std::span<const LazyTensor> inputs, const LazyTensor& cotangent)>;

inline std::vector<LazyTensor> pull_by_vjp(const LazyTensor& output, std::span<const LazyTensor> inputs,
                                           const LazyTensor& cotangent) {
  return vjp({&output, 1}, inputs, {&cotangent, 1});
}

inline LazyTensor cpu_tensor(const std::vector<double>& values, const Shape& shape) {
  return LazyTensor::from_vector(values, shape, Device::cpu());
}
inline LazyTensor vector_of(const std::vector<double>& values) {
  return cpu_tensor(values, Shape{static_cast<std::int64_t>(values.size())});
}

namespace gradcheck_detail {

using Values = std::vector<std::vector<double>>;

/// Values of the arguments, from their ranges.
inline Values draw(const std::vector<Argument>& arguments, const GradOptions& options) {
  Values values;
  for (const Argument& a : arguments) {
    values.push_back(
        random_values(a.shape.numel(), a.low, a.high, a.both_signs, options.seed * 100 + values.size()));
    for (double& v : values.back()) {
      if (options.quantum > 0) v = std::round(v / options.quantum) * options.quantum;
    }
  }
  return values;
}

inline std::vector<LazyTensor> leaves(const std::vector<Argument>& arguments, const Values& values) {
  std::vector<LazyTensor> out;
  for (std::size_t i = 0; i < arguments.size(); ++i) out.push_back(cpu_tensor(values[i], arguments[i].shape));
  return out;
}

inline std::vector<double> forward(const TensorFunction& function, const std::vector<Argument>& arguments,
                                   const Values& values) {
  return astype(function(leaves(arguments, values)), DType::f64).to_vector<double>();
}

/// d(sum(function * cotangent)) / d(values[argument][element]). Differences are taken before they are summed:
/// elements that do not change add no rounding.
inline double difference(const TensorFunction& function, const std::vector<Argument>& arguments,
                         Values values, std::size_t argument, std::size_t element,
                         const std::vector<double>& cotangent, double eps) {
  double& x = values[argument][element];
  const double middle = x;
  const double above = x = middle + eps;
  const std::vector<double> high = forward(function, arguments, values);
  const double below = x = middle - eps;
  const std::vector<double> low = forward(function, arguments, values);
  double sum = 0;
  for (std::size_t i = 0; i < cotangent.size(); ++i) sum += (high[i] - low[i]) * cotangent[i];
  return sum / (above - below);
}

}  // namespace gradcheck_detail

/// Whether the pull-back of a random cotangent through `function` agrees with central differences for every
/// element of every argument.
inline ::testing::AssertionResult gradients_agree(const TensorFunction& function,
                                                  const std::vector<Argument>& arguments,
                                                  const GradOptions& options = {},
                                                  const Pull& pull = pull_by_vjp) {
  namespace detail = gradcheck_detail;
  const detail::Values values = detail::draw(arguments, options);
  const std::vector<LazyTensor> inputs = detail::leaves(arguments, values);
  const LazyTensor output = function(inputs);
  const std::vector<double> weights = random_values(output.numel(), 0.5, 1.5, true, options.seed + 77);
  const LazyTensor cotangent = astype(cpu_tensor(weights, output.shape()), output.dtype());
  const std::vector<LazyTensor> grads = pull(output, inputs, cotangent);

  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (grads[i].shape() != inputs[i].shape() || grads[i].dtype() != DType::f64) {
      return ::testing::AssertionFailure()
             << "argument " << i << ": the gradient is " << grads[i].to_string();
    }
    const std::vector<double> actual = grads[i].to_vector<double>();
    for (std::size_t k = 0; k < actual.size(); ++k) {
      const double expected = detail::difference(function, arguments, values, i, k, weights, options.eps);
      // Written so that NaN fails.
      if (std::abs(actual[k] - expected) <= options.absolute + options.relative * std::abs(expected))
        continue;
      return ::testing::AssertionFailure()
             << "argument " << i << ", element " << k << " of " << arguments[i].shape.to_string()
             << ": gradient " << actual[k] << ", central difference " << expected;
    }
  }
  return ::testing::AssertionSuccess();
}

/// The gradients of `function` for a fixed cotangent, joined to one vector: a function to differentiate
/// again.
inline TensorFunction gradient_function(const TensorFunction& function, std::uint64_t seed = 5) {
  return [function, seed](std::span<const LazyTensor> arguments) {
    const LazyTensor output = function(arguments);
    const LazyTensor cotangent = astype(
        cpu_tensor(random_values(output.numel(), 0.5, 1.5, true, seed), output.shape()), output.dtype());
    std::vector<LazyTensor> parts;
    for (const LazyTensor& g : pull_by_vjp(output, arguments, cotangent))
      parts.push_back(reshape(g, Shape{-1}));
    return concatenate(parts);
  };
}

}  // namespace caldera::testing
