// Oracles for the training tests: plain loops in double precision that do not use the engine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera::testing {

using Doubles = std::vector<double>;

inline std::size_t to_size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// `count` values on [low, high), none of them 0.
inline Doubles random_doubles(std::int64_t count, std::uint64_t seed, double low = -1, double high = 1) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> draw(low, high);
  Doubles values(to_size(count));
  for (double& v : values) v = draw(engine);
  return values;
}

inline LazyTensor make_tensor(const Doubles& values, const Shape& shape, DType dtype, Device device) {
  if (dtype == DType::f64) return LazyTensor::from_vector(values, shape, device);
  return LazyTensor::from_vector(std::vector<float>(values.begin(), values.end()), shape, device);
}

inline Doubles to_doubles(const LazyTensor& t) {
  if (t.dtype() == DType::f64) return t.to_vector<double>();
  const std::vector<float> values = t.to_vector<float>();
  return {values.begin(), values.end()};
}

/// Error relative to the larger of 1 and the expected magnitude.
inline void expect_close(const LazyTensor& actual, const Doubles& expected, double tolerance,
                         const std::string& what = {}) {
  const Doubles values = to_doubles(actual);
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i])))
        << what << " at " << i;
}

/// x (rows, in) times W^T (out, in), plus bias if any.
inline Doubles linear_reference(const Doubles& x, const Doubles& weight, const Doubles& bias, std::int64_t in,
                                std::int64_t out) {
  const std::size_t n = to_size(in);
  const std::size_t m = to_size(out);
  const std::size_t rows = x.size() / n;
  Doubles y(rows * m);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < m; ++o) {
      double total = bias.empty() ? 0 : bias[o];
      for (std::size_t i = 0; i < n; ++i) total += x[r * n + i] * weight[o * n + i];
      y[r * m + o] = total;
    }
  return y;
}

inline Doubles rms_norm_reference(const Doubles& x, const Doubles& weight, double eps) {
  const std::size_t n = weight.size();
  Doubles y(x.size());
  for (std::size_t r = 0; r < x.size() / n; ++r) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) squares += x[r * n + i] * x[r * n + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
    for (std::size_t i = 0; i < n; ++i) y[r * n + i] = x[r * n + i] * scale * weight[i];
  }
  return y;
}

/// Turns the pair (i, i + d/2) of every row by position * theta^(-2i/d). x is (..., length, dim).
inline Doubles rotary_reference(const Doubles& x, std::int64_t length, std::int64_t dim, double theta,
                                std::int64_t offset) {
  const std::size_t d = to_size(dim);
  Doubles y(x.size());
  for (std::size_t r = 0; r < x.size() / d; ++r) {
    const auto position = static_cast<double>(static_cast<std::int64_t>(r) % length + offset);
    for (std::size_t i = 0; i < d / 2; ++i) {
      const double angle =
          position * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
      const double a = x[r * d + i];
      const double b = x[r * d + i + d / 2];
      y[r * d + i] = a * std::cos(angle) - b * std::sin(angle);
      y[r * d + i + d / 2] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
  return y;
}

struct AttentionSizes {
  std::int64_t batch, heads, kv_heads, queries, keys, dim;
};

/// Query i of q (B, H, T, D) looks at keys 0 to i + offset of k, v (B, K, S, D).
inline Doubles attention_reference(const Doubles& q, const Doubles& k, const Doubles& v,
                                   const AttentionSizes& s, std::int64_t offset) {
  Doubles out(q.size(), 0);
  const double scale = 1 / std::sqrt(static_cast<double>(s.dim));
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t t = 0; t < s.queries; ++t) {
        const std::int64_t kv = b * s.kv_heads + h / (s.heads / s.kv_heads);
        const std::size_t row = to_size(((b * s.heads + h) * s.queries + t) * s.dim);
        const std::int64_t visible = std::min(s.keys, t + offset + 1);
        Doubles p(to_size(visible));
        double highest = -1e300;
        for (std::int64_t j = 0; j < visible; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < s.dim; ++d)
            score += q[row + to_size(d)] * k[to_size((kv * s.keys + j) * s.dim + d)];
          p[to_size(j)] = score * scale;
          highest = std::max(highest, p[to_size(j)]);
        }
        double total = 0;
        for (double& e : p) total += e = std::exp(e - highest);
        for (std::int64_t j = 0; j < visible; ++j)
          for (std::int64_t d = 0; d < s.dim; ++d)
            out[row + to_size(d)] += p[to_size(j)] / total * v[to_size((kv * s.keys + j) * s.dim + d)];
      }
  return out;
}

/// (a, b, c, d) to (a, c, b, d).
inline Doubles swap_middle(const Doubles& x, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  Doubles y(x.size());
  for (std::int64_t i = 0; i < a; ++i)
    for (std::int64_t j = 0; j < b; ++j)
      for (std::int64_t k = 0; k < c; ++k)
        for (std::int64_t l = 0; l < d; ++l)
          y[to_size(((i * c + k) * b + j) * d + l)] = x[to_size(((i * b + j) * c + k) * d + l)];
  return y;
}

inline double silu_reference(double x) { return x / (1 + std::exp(-x)); }

/// -log softmax(logits)[target] of every row.
inline Doubles nll_reference(const Doubles& logits, const std::vector<std::int32_t>& targets,
                             std::int64_t classes) {
  const std::size_t n = to_size(classes);
  Doubles losses;
  for (std::size_t r = 0; r < targets.size(); ++r) {
    double total = 0;
    for (std::size_t c = 0; c < n; ++c) total += std::exp(logits[r * n + c]);
    const bool inside = targets[r] >= 0 && targets[r] < classes;
    losses.push_back(std::log(total) - (inside ? logits[r * n + to_size(targets[r])] : 0));
  }
  return losses;
}

/// A scalar function of f64 tensors, its inputs, and central differences of it on the CPU.
using ScalarFunction = std::function<LazyTensor(std::span<const LazyTensor>)>;

inline void check_gradients(const ScalarFunction& f, const std::vector<Doubles>& values,
                            const std::vector<Shape>& shapes, double tolerance = 1e-6) {
  constexpr double kStep = 1e-5;
  const auto tensors = [&](const std::vector<Doubles>& from) {
    std::vector<LazyTensor> list;
    for (std::size_t i = 0; i < from.size(); ++i)
      list.push_back(make_tensor(from[i], shapes[i], DType::f64, Device::cpu()));
    return list;
  };
  const std::vector<LazyTensor> inputs = tensors(values);
  const std::vector<LazyTensor> grads = grad(f(inputs), inputs);
  ASSERT_EQ(grads.size(), inputs.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(grads[i].shape(), shapes[i]) << "gradient of input " << i;
    Doubles expected(values[i].size());
    // Every element of a small input, a sample of a large one.
    const std::size_t stride = std::max<std::size_t>(1, values[i].size() / 40);
    Doubles actual = to_doubles(grads[i]);
    for (std::size_t j = 0; j < values[i].size(); j += stride) {
      const auto at = [&](double delta) {
        std::vector<Doubles> moved = values;
        moved[i][j] += delta;
        return f(tensors(moved)).item<double>();
      };
      const double difference = (at(kStep) - at(-kStep)) / (2 * kStep);
      ASSERT_NEAR(actual[j], difference, tolerance * std::max(1.0, std::abs(difference)))
          << "input " << i << " at " << j;
    }
  }
}

}  // namespace caldera::testing
