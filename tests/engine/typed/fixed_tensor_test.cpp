// Small tensors on the stack: constants of the compiler, and products against plain loops.
#include "engine/typed/fixed_tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace caldera {
namespace {

using M2 = FixedTensor<double, 2, 2>;
using M3 = FixedTensor<double, 3, 3>;
using M4 = FixedTensor<double, 4, 4>;

constexpr M3 kMatrix{2, 0, 1, 1, 3, 2, 1, 1, 1};
static_assert(determinant(kMatrix) == 0);
constexpr M3 kRegular{2, 0, 0, 1, 4, 0, 1, 1, 0.5};
static_assert(determinant(kRegular) == 4);
static_assert(matmul(kRegular, inverse(kRegular)) == fixed_identity<double, 3>());
static_assert(matmul(kMatrix, fixed_identity<double, 3>()) == kMatrix);
static_assert(transpose(kMatrix)(0, 1) == 1 && transpose(transpose(kMatrix)) == kMatrix);
static_assert(inverse(M2{2, 0, 0, 4}) == M2{0.5, 0, 0, 0.25});
constexpr M4 kShear{1, 2, 0, 0, 0, 1, 0, 0, 0, 0, 1, 4, 0, 0, 0, 2};
static_assert(determinant(kShear) == 2);
static_assert(matmul(inverse(kShear), kShear) == fixed_identity<double, 4>());
static_assert(norm(FixedTensor<double, 2>{3, 4}) == 5);
static_assert(norm_1(FixedTensor<float, 3>{-1, 2, -3}) == 6 &&
              norm_max(FixedTensor<float, 3>{-1, 2, -3}) == 3);
static_assert(dot(FixedTensor<int, 3>{1, 2, 3}, FixedTensor<int, 3>{4, 5, 6}) == 32);
static_assert(cross(FixedTensor<int, 3>{1, 0, 0}, FixedTensor<int, 3>{0, 1, 0}) ==
              FixedTensor<int, 3>{0, 0, 1});
static_assert(trace(kMatrix) == 6 && sum(kMatrix) == 12);
static_assert(matmul(FixedTensor<int, 2, 3>{1, 2, 3, 4, 5, 6}, FixedTensor<int, 3>{1, 0, 1}) ==
              FixedTensor<int, 2>{4, 10});
static_assert(FixedTensor<int, 2, 2, 2>{0, 1, 2, 3, 4, 5, 6, 7}(1, 0, 1) == 5);
static_assert((kMatrix + kMatrix) * 0.5 == kMatrix && kMatrix - kMatrix == M3());

template <class T, std::size_t R, std::size_t K, std::size_t C>
void expect_products() {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  FixedTensor<T, R, K> a;
  FixedTensor<T, K, C> b;
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<T>(uniform(random));
  for (std::size_t i = 0; i < b.size(); ++i) b.data()[i] = static_cast<T>(uniform(random));
  FixedTensor<T, R, C> got = FixedTensor<T, R, C>::filled(9);
  got = matmul(a, b);
  for (std::size_t i = 0; i < R; ++i)
    for (std::size_t j = 0; j < C; ++j) {
      double want = 0;
      for (std::size_t k = 0; k < K; ++k) want += static_cast<double>(a(i, k)) * static_cast<double>(b(k, j));
      EXPECT_NEAR(got(i, j), want, sizeof(T) == 4 ? 1e-6 : 1e-15 * K) << R << K << C << i << j;
    }
}

TEST(FixedTensors, ProductsAreTheLoops) {
  expect_products<float, 2, 2, 2>();
  expect_products<float, 3, 3, 3>();
  expect_products<double, 3, 3, 3>();
  expect_products<float, 4, 4, 4>();
  expect_products<double, 4, 4, 4>();
  expect_products<std::int32_t, 3, 3, 3>();
  expect_products<std::int32_t, 4, 4, 4>();
  expect_products<double, 5, 2, 7>();
  expect_products<float, 1, 9, 5>();
  expect_products<float, 8, 8, 8>();
  expect_products<double, 8, 8, 8>();
}

// Products that are made of products, as their results lie.
TEST(FixedTensors, ProductsOfProductsAreTheLoops) {
  const FixedTensor<float, 3, 3> f{0, 1, 0, 0, 0, 1, 1, 0, 0};
  const FixedTensor<double, 3, 3> d{0, 1, 0, 0, 0, 1, 1, 0, 0};
  const FixedTensor<float, 4, 4> g{0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0};
  EXPECT_EQ(matmul(f, matmul(f, f)), (fixed_identity<float, 3>()));
  EXPECT_EQ(matmul(d, matmul(d, d)), (fixed_identity<double, 3>()));
  EXPECT_EQ(matmul(matmul(g, g), matmul(g, g)), (fixed_identity<float, 4>()));
}

// Whose determinants are beyond the numbers of their type.
template <class T>
void expect_inverse_of(T size) {
  FixedTensor<T, 3, 3> a{2, 0, 1, 1, 3, 2, 1, 1, 4};
  const FixedTensor<T, 3, 3> plain = inverse(a), scaled = inverse(a * size) * size;
  for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(scaled.data()[i], plain.data()[i], 1e-6) << size << i;
  EXPECT_THROW(inverse(FixedTensor<T, 2, 2>{1, 2, 2, 4} * size), ValueError) << size;
  const FixedTensor<T, 2, 2> small = inverse(FixedTensor<T, 2, 2>{size, 0, 0, 2 * size});
  EXPECT_NEAR(small(1, 1) * size, 0.5, 1e-6) << size;
}

TEST(FixedTensors, InversesOfSmallAndLargeNumbersAre) {
  for (const float size : {1e-25F, 1e-14F, 1e13F, 1e25F}) expect_inverse_of(size);
  for (const double size : {1e-200, 1e-120, 1e110, 1e200}) expect_inverse_of(size);
  FixedTensor<float, 4, 4> tiny = fixed_identity<float, 4>() * 1e-39F;  // 1 over it is infinite
  EXPECT_THROW(inverse(FixedTensor<float, 3, 3>()), ValueError);
  tiny(0, 0) = 1;
  EXPECT_EQ(inverse(tiny)(0, 0), 1);
}

template <std::size_t N>
void expect_inverse() {
  std::mt19937 random(N);
  std::normal_distribution<double> normal;
  FixedTensor<double, N, N> a;
  for (std::size_t i = 0; i < a.size(); ++i) a.data()[i] = normal(random);
  EXPECT_LT(norm_max(matmul(a, inverse(a)) - fixed_identity<double, N>()), 1e-12) << N;
  EXPECT_NEAR(determinant(a) * determinant(inverse(a)), 1, 1e-12) << N;
}

TEST(FixedTensors, InversesAre) {
  expect_inverse<1>();
  expect_inverse<2>();
  expect_inverse<3>();
  expect_inverse<4>();
  expect_inverse<7>();
  EXPECT_THROW(inverse(kMatrix), ValueError);
  EXPECT_THROW(inverse(M4()), ValueError);
  EXPECT_THROW((FixedTensor<float, 2>(std::span<const float>())), ShapeError);
}

}  // namespace
}  // namespace caldera
