// Products of a few rows with weights that are read row by row, beside sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/cpu/products/row_dots.h"
#include "engine/device/cpu_threads.h"
#include "ops/ops.h"
#include "tests/support/instruction_sets.h"

namespace caldera::testing {
namespace {

/// Numbers in [-1, 1) that f16 and bf16 have exactly: multiples of 1/64.
std::vector<float> coarse_numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    numbers.push_back(static_cast<float>(static_cast<std::int64_t>((seed >> 40) % 128) - 64) / 64);
  }
  return numbers;
}

/// The numbers in memory as the type has them.
std::vector<std::byte> stored(const std::vector<float>& numbers, DType type) {
  const LazyTensor x =
      astype(LazyTensor::from_vector(numbers, Shape{std::ssize(numbers)}, Device::cpu()), type);
  std::vector<std::byte> bytes(numbers.size() * size_of(type));
  x.copy_to_host(bytes.data());
  return bytes;
}

void check_row_dots(const char* instruction_set) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t k : {1, 3, 16, 17, 63, 64, 65, 200}) {
      for (std::int64_t m = 1; m <= cpu::kMostDotRows; ++m) {
        const std::int64_t n = 5, a_m = k + 2, b_n = k + 3, c_m = n + 1;
        const std::vector<float> a = coarse_numbers(m * a_m, 1), b = coarse_numbers(n * b_n, 2);
        const std::vector<std::byte> weights = stored(b, type);
        std::vector<float> c = coarse_numbers(m * c_m, 3);
        const std::vector<float> before = c;
        const cpu::RowDots work{.m = m,
                                .n = n,
                                .k = k,
                                .a = a.data(),
                                .a_m = a_m,
                                .b = weights.data(),
                                .b_n = b_n,
                                .c = c.data(),
                                .c_m = c_m,
                                .alpha = 0.5F,
                                .add = m % 2 == 1};
        cpu::find_row_dots(type)(work, 1, 4);
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < c_m; ++j) {
            const auto at = static_cast<std::size_t>(i * c_m + j);
            double sum = 0;
            for (std::int64_t p = 0; p < k; ++p)
              sum += static_cast<double>(a[static_cast<std::size_t>(i * a_m + p)]) *
                     static_cast<double>(b[static_cast<std::size_t>(j < n ? j * b_n + p : 0)]);
            const bool is_computed = j >= 1 && j < 4;
            const double kept = work.add || !is_computed ? static_cast<double>(before[at]) : 0;
            // Products and sums of multiples of 1/4096 below 2^12 are exact in f32.
            ASSERT_EQ(static_cast<double>(c[at]), is_computed ? 0.5 * sum + kept : kept)
                << instruction_set << ", " << name(type) << ", m " << m << ", k " << k << ", " << i << ", "
                << j;
          }
        }
      }
    }
  }
}

/// Rows of B along n: the same sums.
void check_row_sums(const char* instruction_set) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t k : {1, 7, 8, 33}) {
      for (const std::int64_t n : {2, 16, 17, 40, 700, 4100}) {
        for (const std::int64_t m : {1, 2, 3, 8}) {
          const std::int64_t b_k = n + 3;
          const std::vector<float> a = coarse_numbers(m * k, 1), b = coarse_numbers(k * b_k, 2);
          const std::vector<std::byte> weights = stored(b, type);
          std::vector<float> c = coarse_numbers(m * n, 3);
          const std::vector<float> before = c;
          const cpu::RowDots work{.m = m,
                                  .n = n,
                                  .k = k,
                                  .a = a.data(),
                                  .a_m = k,
                                  .b = weights.data(),
                                  .b_n = 1,
                                  .b_k = b_k,
                                  .c = c.data(),
                                  .c_m = n,
                                  .alpha = 0.5F,
                                  .add = m % 2 == 1};
          cpu::find_row_dots(type)(work, 1, n);
          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
              const auto at = static_cast<std::size_t>(i * n + j);
              double sum = 0;
              for (std::int64_t p = 0; p < k; ++p)
                sum += static_cast<double>(a[static_cast<std::size_t>(i * k + p)]) *
                       static_cast<double>(b[static_cast<std::size_t>(p * b_k + j)]);
              const double kept = work.add || j == 0 ? static_cast<double>(before[at]) : 0;
              ASSERT_EQ(static_cast<double>(c[at]), j == 0 ? kept : 0.5 * sum + kept)
                  << instruction_set << ", " << name(type) << ", " << m << " x " << k << " x " << n << ", "
                  << i << ", " << j;
            }
          }
        }
      }
    }
  }
}

TEST(CpuRowDots, AreExactOfEachInstructionSet) { with_each_instruction_set(check_row_dots); }
TEST(CpuRowDots, AreExactWhereRowsOfTheMatrixLieAcrossTheSums) { with_each_instruction_set(check_row_sums); }

TEST(CpuRowDots, HaveNoOtherTypes) {
  EXPECT_EQ(cpu::find_row_dots(DType::f64), nullptr);
  EXPECT_EQ(cpu::find_row_dots(DType::i32), nullptr);
}

/// x w^T with what stands around it in a model: types of 16 bits on both sides, a bias, a batch, a factor.
TEST(CpuRowDots, AreWhatProductsOfFewRowsAre) {
  for (const DType of_x : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType of_w : {DType::f32, DType::f16, DType::bf16}) {
      for (const std::int64_t m : {1, 2, 7, 8, 9}) {
        const std::int64_t n = 37, k = 129;
        const std::vector<float> x = coarse_numbers(m * k, 4), w = coarse_numbers(n * k, 5);
        const std::vector<float> bias = coarse_numbers(n, 6);
        const auto tensor = [](const std::vector<float>& values, const Shape& shape, DType type) {
          return astype(LazyTensor::from_vector(values, shape, Device::cpu()), type);
        };
        const LazyTensor y = astype(tensor(x, Shape{m, k}, of_x), DType::f32);
        const LazyTensor weights = tensor(w, Shape{n, k}, of_w);
        const std::vector<float> got = (matmul(y, permute_dims(astype(weights, DType::f32), {1, 0})) * 0.25F +
                                        tensor(bias, Shape{n}, DType::f32))
                                           .to_vector<float>();
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t p = 0; p < k; ++p)
              sum += static_cast<double>(x[static_cast<std::size_t>(i * k + p)]) *
                     static_cast<double>(w[static_cast<std::size_t>(j * k + p)]);
            ASSERT_EQ(static_cast<double>(got[static_cast<std::size_t>(i * n + j)]),
                      0.25 * sum + static_cast<double>(bias[static_cast<std::size_t>(j)]))
                << name(of_x) << " " << name(of_w) << ", m " << m << ", " << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(CpuRowDots, HaveTheSameBitsWithAnyNumberOfThreads) {
  const int before = cpu_threads();
  const std::int64_t n = 2048, k = 1024;
  const LazyTensor x = random_normal(Shape{1, k}), w = random_normal(Shape{n, k});
  eval({x, w});
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 3}) {
    set_cpu_threads(threads);
    results.push_back(matmul(x, permute_dims(w, {1, 0})).to_vector<float>());
  }
  set_cpu_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(CpuRowDots, LetNanAndInfinitiesThrough) {
  std::vector<float> x(32, 0.0F), w(64, 1.0F);
  w[5] = std::nanf("");
  w[40] = INFINITY;  // 0 * inf is NaN
  const std::vector<float> got =
      matmul(LazyTensor::from_vector(x, Shape{1, 32}, Device::cpu()),
             permute_dims(LazyTensor::from_vector(w, Shape{2, 32}, Device::cpu()), {1, 0}))
          .to_vector<float>();
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_TRUE(std::isnan(got[1]));
}

}  // namespace
}  // namespace caldera::testing
