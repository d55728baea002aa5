// LU factors, eigenvalues and exponentials by what defines them, at matrices that are singular, empty or not
// finite, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/caldera.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class GeneralMatrices : public OpTest {
 protected:
  LazyTensor matrix(const Shape& shape, const std::vector<double>& values, DType type = DType::f64) const {
    return upload(Host(shape, values), type, device());
  }
  static void expect_equal(const LazyTensor& a, const LazyTensor& b, double error = 1e-12) {
    const std::vector<double> x = download(a), y = download(b);
    ASSERT_EQ(a.shape(), b.shape());
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], error * (1 + std::abs(y[i])));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, GeneralMatrices, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(GeneralMatrices, LuFactorsMultiplyToTheMatrix) {
  for (const Shape& shape :
       {Shape{4, 4}, Shape{6, 3}, Shape{3, 6}, Shape{2, 5, 5}, Shape{3, 0}, Shape{1, 1}}) {
    const LazyTensor x = matrix(shape, random_values(shape.numel(), -2, 2, true, 3));
    const auto [p, l, u] = lu(x);
    expect_equal(matmul(p, matmul(l, u)), x);
    expect_equal(tril(l), l, 0);
    expect_equal(triu(u), u, 0);
    for (const double value : download(l)) EXPECT_LE(std::abs(value), 1);
  }
  // A singular matrix has factors too, and no solution.
  const LazyTensor singular = matrix({2, 2}, {1, 2, 2, 4});
  const auto [p, l, u] = lu(singular);
  expect_equal(matmul(p, matmul(l, u)), singular);
  const auto [factors, pivots] = lu_factor(singular);
  EXPECT_EQ(download(pivots), (std::vector<double>{2, 2}));
  EXPECT_THROW(lu_solve(factors, pivots, matrix({2, 1}, {1, 1})).eval(), ValueError);
  const auto [of_nan, unused] = lu_factor(matrix({2, 2}, {1, std::nan(""), 0, 1}));
  EXPECT_TRUE(std::isnan(download(of_nan)[0]));
}

TEST_P(GeneralMatrices, LuSolveIsSolve) {
  const LazyTensor a = matrix({2, 3, 3}, random_values(18, -2, 2, true, 5)),
                   b = matrix({2, 3, 2}, random_values(12, -1, 1, true, 6));
  const auto [factors, pivots] = lu_factor(a);
  expect_equal(lu_solve(factors, pivots, b), solve(a, b), 1e-11);
  expect_equal(lu_solve(factors, pivots, b, true, true), solve(transpose(a), b), 1e-11);
  expect_equal(lu_solve(factors, pivots, transpose(b), false), solve(a, transpose(b), false), 1e-11);
  expect_equal(matmul(solve(a, transpose(b), false), a), transpose(b), 1e-11);
  EXPECT_MENTIONS(message_of<ValueError>([&] { lu_solve(factors, full_like(pivots, 4), b).eval(); }),
                  "pivot 4");
  // The gradient through factors and solution is that of solve.
  const auto through = [&](const LazyTensor& x) {
    const auto [own, rows] = lu_factor(x);
    return sum(square(lu_solve(own, rows, b)));
  };
  expect_equal(grad(through(a), a), grad(sum(square(solve(a, b))), a), 1e-9);
}

TEST_P(GeneralMatrices, EigenvectorsAreScaledByEigenvalues) {
  const LazyTensor x = matrix({2, 4, 4}, random_values(32, -2, 2, true, 8));
  const auto [wr, wi, vr, vi] = eig(x);
  const LazyTensor r = expand_dims(wr, -2), i = expand_dims(wi, -2);
  expect_equal(matmul(x, vr), vr * r - vi * i, 1e-11);
  expect_equal(matmul(x, vi), vr * i + vi * r, 1e-11);
  expect_equal(sum(square(vr) + square(vi), -2), ones_like(wr));
  expect_equal(eigvals(x).real, wr);
  expect_equal(sum(wr, -1), trace(x), 1e-11);
  const auto [cosine, sine] = eigvals(matrix({2, 2}, {0.6, -0.8, 0.8, 0.6}));
  expect_equal(cosine, matrix({2}, {0.6, 0.6}));
  expect_equal(sine, matrix({2}, {-0.8, 0.8}));
  EXPECT_TRUE(std::isnan(download(eigvals(matrix({2, 2}, {1, std::nan(""), 0, 1})).imag)[0]));
  EXPECT_EQ(eig(matrix({0, 0}, {})).vectors_real.shape(), (Shape{0, 0}));
}

TEST_P(GeneralMatrices, ExponentialsThatAreKnown) {
  const double angle = 2;
  const LazyTensor quarter = matrix({2, 2}, {0, -angle, angle, 0});
  const LazyTensor rotation =
      matrix({2, 2}, {std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)});
  expect_equal(matrix_exp(quarter), rotation);
  expect_equal(matrix_exp(matrix({2, 2}, {0, 7, 0, 0})), matrix({2, 2}, {1, 7, 0, 1}));
  // Squared often; far apart; and without a norm.
  expect_equal(matrix_exp(quarter * 64), matrix_power(rotation, 64), 1e-11);
  expect_equal(matrix_exp(matrix({2, 2}, {50, 0, 0, -50})),
               matrix({2, 2}, {std::exp(50), 0, 0, std::exp(-50)}), 1e-12);
  expect_equal(matrix_exp(zeros_like(quarter)), matrix({2, 2}, {1, 0, 0, 1}));
  EXPECT_TRUE(std::isnan(download(matrix_exp(matrix({1, 1}, {std::numeric_limits<double>::infinity()})))[0]));
  // d exp(t a) / dt at t = 1 is a exp(a).
  const LazyTensor t = matrix({}, {1});
  const LazyTensor along = grad(sum(matrix_exp(quarter * t) * matrix({2, 2}, {1, 2, 3, 4})), t);
  expect_equal(along, sum(matmul(quarter, rotation) * matrix({2, 2}, {1, 2, 3, 4})), 1e-11);
}

TEST_P(GeneralMatrices, SystemsByFactorsAndOfTensors) {
  const LazyTensor a = matrix({2, 2}, {4, 2, 2, 3}), b = matrix({2, 1}, {2, 5});
  const LazyTensor l = cholesky(a);
  expect_equal(cholesky_solve(b, l), solve(a, b));
  expect_equal(cholesky_solve(b, transpose(l), true), solve(a, b));
  expect_equal(cholesky_inverse(l), inv(a));
  expect_equal(multi_dot({b, transpose(b), a, squeeze(b, 1)}),
               matmul(matmul(matmul(b, transpose(b)), a), squeeze(b, 1)));
  const LazyTensor x = matrix({2, 3, 6}, random_values(36, -2, 2, true, 9));
  const LazyTensor one = tensordot(tensorinv(x), x, 2);
  expect_equal(one, eye(6, 6, 0, DType::f64, device()), 1e-10);
  const LazyTensor y = matrix({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_equal(tensordot(x, tensorsolve(x, y), 1), y, 1e-10);
  // Singular values 4 and 1/2: an absolute tolerance of 1 leaves the first.
  const LazyTensor d = matrix({2, 2}, {4, 0, 0, 0.5});
  expect_equal(pinv(d, {}, 1.0), matrix({2, 2}, {0.25, 0, 0, 0}));
  expect_equal(pinv(d, 0.0, 0.25), matrix({2, 2}, {0.25, 0, 0, 2}));
  EXPECT_EQ(download(matrix_rank(d, {}, 1.0)), (std::vector<double>{1}));
  EXPECT_EQ(download(matrix_rank(d, 0.25)), (std::vector<double>{1}));
  // The diagonal of unit triangles is not read.
  const LazyTensor unit = matrix({2, 2}, {9, 7, 3, 9});
  expect_equal(solve_triangular(unit, b, false, true, true), matrix({2, 1}, {2, -1}));
  expect_equal(solve_triangular(unit, b, true, true, true), matrix({2, 1}, {-33, 5}));
}

}  // namespace
}  // namespace caldera::testing
