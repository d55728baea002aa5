// What the tests of the eager API measure with: plain loops in double, and random data without zeros.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "eager/v1.h"

namespace caldera::v1::oracle {

/// Uniform on [-1, 1] without a neighbourhood of 0, which would hide errors.
inline std::vector<float> random_values(std::int64_t count, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> size(0.1F, 1.0F);
  std::bernoulli_distribution sign(0.5);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = sign(generator) ? size(generator) : -size(generator);
  return values;
}

inline Tensor random_tensor(const Shape& shape, std::uint32_t seed, const Device& device) {
  return Tensor(random_values(shape.numel(), seed), shape, device);
}

inline std::vector<double> doubles(const Tensor& tensor) {
  const std::vector<float> values = tensor.to_vector<float>();
  return {values.begin(), values.end()};
}

/// (rows, inner) times (inner, columns).
inline std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b,
                                   std::size_t rows, std::size_t inner, std::size_t columns) {
  std::vector<double> out(rows * columns, 0.0);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < columns; ++j) out[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  return out;
}

/// |actual - expected| <= tolerance * max(1, |expected|), element by element; the first failure is reported.
inline void expect_close(const std::vector<double>& actual, const std::vector<double>& expected,
                         double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_LE(std::abs(actual[i] - expected[i]), tolerance * std::max(1.0, std::abs(expected[i])))
        << "element " << i << ": " << actual[i] << ", expected " << expected[i];
}
inline void expect_close(const Tensor& actual, const std::vector<double>& expected, double tolerance) {
  expect_close(doubles(actual), expected, tolerance);
}

}  // namespace caldera::v1::oracle
