// Holds vmap to a loop over the examples.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "engine/autodiff/vmap.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {

namespace vmap_detail {

inline constexpr std::int64_t kExamples = 3;

/// The examples along a new axis `axis` of one leaf, which may count from the end.
inline LazyTensor stacked(const std::vector<gradcheck_detail::Values>& examples, std::size_t argument,
                          const Shape& shape, int axis) {
  const int at = axis < 0 ? axis + shape.rank() + 1 : axis;
  Shape all = shape;
  all.insert(at, kExamples);
  Host host(all);
  for (std::size_t i = 0; i < host.values.size(); ++i) {
    Index index = unravel(static_cast<std::int64_t>(i), all);
    const auto example = static_cast<std::size_t>(index[static_cast<std::size_t>(at)]);
    index.erase(index.begin() + at);
    host.values[i] = examples[example][argument][ravel(index, shape)];
  }
  return cpu_tensor(host.values, all);
}

/// A way to map: the axis of each argument, and of the result.
struct Way {
  std::vector<std::optional<int>> in;
  int out = 0;
};

/// All arguments along their first and along their last axis; each alone, along one axis or another.
inline std::vector<Way> ways(const std::vector<Argument>& arguments) {
  const std::size_t count = arguments.size();
  std::vector<Way> all{{std::vector<std::optional<int>>(count, 0), 0},
                       {std::vector<std::optional<int>>(count, -1), -1}};
  for (std::size_t k = 0; count > 1 && k < count; ++k) {
    Way one{std::vector<std::optional<int>>(count), static_cast<int>(k % 2) - 1};
    one.in[k] = arguments[k].shape.rank() > 0 ? 1 : 0;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace vmap_detail

/// Whether vmap of `function` gives for every example what the function gives.
inline ::testing::AssertionResult mapped_agrees(const TensorFunction& function,
                                                const std::vector<Argument>& arguments,
                                                GradOptions options = {}) {
  namespace detail = vmap_detail;
  std::vector<gradcheck_detail::Values> examples;
  for (std::int64_t i = 0; i < detail::kExamples; ++i) {
    examples.push_back(gradcheck_detail::draw(arguments, options));
    options.seed += 1000;
  }
  std::vector<LazyTensor> asked;  // for each way, the mapped result and then each example's
  const std::vector<detail::Way> ways = detail::ways(arguments);
  for (const detail::Way& way : ways) {
    const auto mapped = [&](std::size_t k) { return way.in[k].has_value(); };
    std::vector<LazyTensor> inputs;
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      inputs.push_back(mapped(k) ? detail::stacked(examples, k, arguments[k].shape, *way.in[k])
                                 : cpu_tensor(examples[0][k], arguments[k].shape));
    }
    asked.push_back(vmap(function, way.in, way.out)(inputs));
    for (std::int64_t i = 0; i < detail::kExamples; ++i) {
      gradcheck_detail::Values values = examples[0];
      for (std::size_t k = 0; k < arguments.size(); ++k) {
        if (mapped(k)) values[k] = examples[static_cast<std::size_t>(i)][k];
      }
      asked.push_back(function(gradcheck_detail::leaves(arguments, values)));
    }
  }
  for (LazyTensor& x : asked) x = astype(x, DType::f64);
  eval(asked);
  auto next = asked.begin();
  for (const detail::Way& way : ways) {
    const LazyTensor& all = *next++;
    const Host result(all.shape(), all.to_vector<double>());
    const int at = way.out < 0 ? way.out + all.rank() : way.out;
    for (std::int64_t i = 0; i < detail::kExamples; ++i) {
      const LazyTensor& one = *next++;
      Shape expected_shape = one.shape();
      expected_shape.insert(at, detail::kExamples);
      if (all.shape() != expected_shape) {
        return ::testing::AssertionFailure()
               << "shape " << all.shape().to_string() << ", expected " << expected_shape.to_string();
      }
      const Host expected(one.shape(), one.to_vector<double>());
      for (std::size_t e = 0; e < expected.values.size(); ++e) {
        Index index = unravel(static_cast<std::int64_t>(e), one.shape());
        index.insert(index.begin() + at, i);
        const double actual = result[index];
        const double want = expected.values[e];
        const bool equal = std::isnan(want)
                               ? std::isnan(actual)
                               : actual == want || std::abs(actual - want) <= 1e-12 * (1 + std::abs(want));
        if (equal) continue;
        return ::testing::AssertionFailure()
               << "way " << &way - ways.data() << ", example " << i << ", element " << e << " of "
               << one.shape().to_string() << ": " << actual << ", alone " << want;
      }
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace caldera::testing
