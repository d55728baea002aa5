// Products that the device's threads share, beside sums in double, for any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <tuple>
#include <type_traits>
#include <vector>

#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/products/shared_gemm.h"
#include "engine/device/cpu_threads.h"

namespace caldera::cpu {
namespace {

template <class T>
std::vector<T> normal_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (T& x : numbers) x = static_cast<T>(normal(engine));
  return numbers;
}

class SharedProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!openblas().available())
      GTEST_SKIP() << "no OpenBLAS was found, or CALDERA_BLAS=0 asks for none: the engine's own kernels do "
                      "the products";
  }
  void TearDown() override { set_cpu_threads(before_); }
  int before_ = cpu_threads();
};

template <class T>
void check_gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool a_turned, bool b_turned) {
  const std::vector<T> a = normal_numbers<T>(m * k, 1), b = normal_numbers<T>(k * n, 2);
  const BlasMatrix<T> left{a.data(), a_turned ? m : k, a_turned};
  const BlasMatrix<T> right{b.data(), b_turned ? k : n, b_turned};
  const auto at = [](const BlasMatrix<T>& x, std::int64_t i, std::int64_t j) {
    return static_cast<double>(x.data[x.transposed ? j * x.leading + i : i * x.leading + j]);
  };
  for (const bool add : {false, true}) {
    const std::vector<T> base = normal_numbers<T>(m * (n + 3), 3);
    std::vector<T> first;
    for (const int threads : {1, 2, 3, 5}) {
      set_cpu_threads(threads);
      std::vector<T> c = base;
      shared_gemm<T>(m, n, k, T(0.5), left, right, add, c.data(), n + 3);
      if (first.empty()) first = c;
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n + 3; ++j) {
          const auto e = static_cast<std::size_t>(i * (n + 3) + j);
          if (j >= n) {
            ASSERT_EQ(c[e], base[e]) << "beside the result";
            continue;
          }
          double sum = 0, size = 1;
          for (std::int64_t p = 0; p < k; ++p) {
            sum += at(left, i, p) * at(right, p, j);
            size += std::abs(at(left, i, p) * at(right, p, j));
          }
          const double expected = 0.5 * sum + (add ? static_cast<double>(base[e]) : 0);
          const double unit = std::is_same_v<T, float> ? 6e-8 : 1.2e-16;
          ASSERT_NEAR(static_cast<double>(c[e]), expected, 8 * unit * size)
              << m << " " << n << " " << k << " at " << i << ", " << j;
          ASSERT_NEAR(static_cast<double>(c[e]), static_cast<double>(first[e]), 8 * unit * size);
        }
    }
  }
}

TEST_F(SharedProducts, GemmOfAllShapes) {
  // Many rows, few rows, few columns and few terms; none of them whole multiples of a kernel's.
  const std::tuple<int, int, int> shapes[] = {{611, 67, 129}, {33, 701, 97}, {515, 16, 256}, {515, 250, 16},
                                              {100, 3, 2049}, {1, 700, 99},  {700, 1, 99},   {2, 2, 1}};
  for (const auto& [m, n, k] : shapes)
    for (const bool a_turned : {false, true})
      for (const bool b_turned : {false, true}) check_gemm<float>(m, n, k, a_turned, b_turned);
  check_gemm<double>(211, 67, 129, false, true);
  check_gemm<double>(33, 301, 97, true, false);
}

TEST_F(SharedProducts, GemvOfAllShapes) {
  const std::int64_t rows = 1003, k = 517;
  const std::vector<float> a = normal_numbers<float>(rows * k, 1), x = normal_numbers<float>(2 * k, 2);
  for (const bool turned : {false, true})
    for (const bool add : {false, true})
      for (const int threads : {1, 3}) {
        set_cpu_threads(threads);
        std::vector<float> y = normal_numbers<float>(3 * rows, 3);
        const std::vector<float> base = y;
        const BlasMatrix<float> matrix{a.data(), turned ? rows : k, turned};
        shared_gemv<float>(rows, k, 1, matrix, x.data(), 2, add, y.data(), 3);
        for (std::int64_t i = 0; i < rows; ++i) {
          const auto e = static_cast<std::size_t>(3 * i);
          double sum = add ? static_cast<double>(base[e]) : 0;
          for (std::int64_t p = 0; p < k; ++p)
            sum += static_cast<double>(a[static_cast<std::size_t>(turned ? p * rows + i : i * k + p)]) *
                   static_cast<double>(x[static_cast<std::size_t>(2 * p)]);
          ASSERT_NEAR(static_cast<double>(y[e]), sum, 3e-4) << i;
          ASSERT_EQ(y[e + 1], base[e + 1]);
        }
      }
}

}  // namespace
}  // namespace caldera::cpu
