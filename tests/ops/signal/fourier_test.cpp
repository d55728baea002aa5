// Precision of transforms of every kind of length, against sums in long double; complex arithmetic against
// std::complex.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/caldera.h"
#include "ops/signal/root_tables.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Wide = std::complex<long double>;
using Complex = std::complex<double>;

/// Numbers between -1 and 1 that every type holds.
std::vector<double> noise(std::int64_t count, std::int64_t seed) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<double>((i * 7919 + seed * 104729 + i * i % 977 * 31) % 513 - 256) / 256);
  return out;
}

/// The sum of x[j] exp(direction 2 pi i j k / n).
Wide bin_of(const std::vector<double>& real, const std::vector<double>& imag, std::int64_t k, int direction) {
  const auto n = static_cast<std::int64_t>(real.size());
  Wide total = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const long double angle = 2 * std::numbers::pi_v<long double> * static_cast<long double>(j * k % n) / n;
    total += Wide(real[static_cast<std::size_t>(j)], imag[static_cast<std::size_t>(j)]) *
             Wide(std::cos(angle), direction * std::sin(angle));
  }
  return total;
}

/// The root of the mean square error of some of the elements, over that of the result.
double error_of(const ComplexTensor& y, const std::vector<double>& real, const std::vector<double>& imag,
                int direction) {
  const std::vector<double> a = astype(y.real(), DType::f64).to_vector<double>(),
                            b = astype(y.imag(), DType::f64).to_vector<double>();
  const auto n = static_cast<std::int64_t>(real.size());
  long double norm = 0, squares = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < real.size(); ++i) norm += real[i] * real[i] + imag[i] * imag[i];
  for (std::int64_t k = 0; k < n; k += std::max<std::int64_t>(1, n / 23)) {
    const auto i = static_cast<std::size_t>(k);
    squares += std::norm(Wide(a[i], b[i]) - bin_of(real, imag, k, direction));
    ++count;
  }
  return static_cast<double>(std::sqrt(squares / static_cast<long double>(count) / norm));
}

class Fourier : public OpTest {};

INSTANTIATE_TEST_SUITE_P(Devices, Fourier, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(Fourier, IsExactForEveryKindOfLength) {
  // Short ones, powers, mixed factors, primes below and above the direct ones, products of such.
  for (const std::int64_t n :
       {1, 2, 3, 7, 64, 97, 128, 251, 257, 360, 512, 1000, 1009, 2048, 2 * 1009, 4099}) {
    SCOPED_TRACE(n);
    const std::vector<double> real = noise(n, 1), imag = noise(n, 2);
    for (const DType type : {DType::f64, DType::f32}) {
      const double allowed = type == DType::f64 ? 1e-12 : 1e-6;
      const ComplexTensor x{astype(LazyTensor::from_vector(real, {n}), type),
                            astype(LazyTensor::from_vector(imag, {n}), type)};
      EXPECT_LT(error_of(fft(x), real, imag, -1), allowed) << name(type);
      EXPECT_LT(error_of(ifft(x, {}, -1, FourierNorm::forward), real, imag, 1), allowed) << name(type);
    }
  }
}

TEST_P(Fourier, OfManyRowsIsThatOfEach) {
  // So many that stages are computed in halves and quarters; primes by those of one less, and by chirps.
  for (const std::int64_t n : {1024, 4096, 1000, 1600, 521, 1009, 4099}) {
    SCOPED_TRACE(n);
    const std::int64_t rows = 20000 / n + 2;
    const std::vector<double> real = noise(rows * n, 3), imag = noise(rows * n, 4);
    const ComplexTensor x{astype(LazyTensor::from_vector(real, {rows, n}), DType::f32),
                          astype(LazyTensor::from_vector(imag, {rows, n}), DType::f32)};
    const ComplexTensor ahead = fft(x), back = ifft(x, {}, -1, FourierNorm::forward);
    for (const std::int64_t row : {std::int64_t{0}, rows / 2, rows - 1}) {
      const auto part = [&](const std::vector<double>& all) {
        return std::vector<double>(all.begin() + row * n, all.begin() + (row + 1) * n);
      };
      const auto of_row = [&](const ComplexTensor& y) {
        return ComplexTensor(y.slice(0, row, row + 1).reshape({n}));
      };
      EXPECT_LT(error_of(of_row(ahead), part(real), part(imag), -1), 1e-6) << row;
      EXPECT_LT(error_of(of_row(back), part(real), part(imag), 1), 1e-6) << row;
    }
  }
}

TEST_P(Fourier, OfRealNumbersIsHalfOfTheWhole) {
  // Direct, by half the length, odd ones, a prime; the imaginary parts of the ends do not count.
  for (const std::int64_t n : {1, 2, 3, 64, 97, 98, 128, 225, 1000, 2 * 257, 521}) {
    SCOPED_TRACE(n);
    const std::vector<double> given = noise(n, 1), zeros(given.size(), 0);
    const std::size_t half = given.size() / 2;
    for (const DType type : {DType::f64, DType::f32}) {
      const double allowed = (type == DType::f64 ? 1e-14 : 4e-6) * std::sqrt(static_cast<double>(n) + 20);
      ComplexTensor y = rfft(astype(LazyTensor::from_vector(given, {n}), type));
      std::vector<double> real = astype(y.real(), DType::f64).to_vector<double>(),
                          imag = astype(y.imag(), DType::f64).to_vector<double>();
      ASSERT_EQ(real.size(), half + 1);
      for (std::size_t k = 0; k <= half; ++k) {
        const Wide expected = bin_of(given, zeros, static_cast<std::int64_t>(k), -1);
        ASSERT_LT(std::abs(Wide(real[k], imag[k]) - expected), allowed) << k << " " << name(type);
      }
      imag[0] += 3;
      if (n % 2 == 0) imag[half] -= 2;
      y = {astype(LazyTensor::from_vector(real, {n / 2 + 1}), type),
           astype(LazyTensor::from_vector(imag, {n / 2 + 1}), type)};
      const std::vector<double> back = astype(irfft(y, n), DType::f64).to_vector<double>();
      for (std::size_t i = 0; i < given.size(); ++i) ASSERT_NEAR(back[i], given[i], allowed) << i;
    }
  }
}

TEST(FourierLong, IsExactForLongSignals) {
  for (const std::int64_t n :
       {std::int64_t{1} << 16, std::int64_t{3 * 5 * 7 * 11 * 13}, std::int64_t{30011}, std::int64_t{65537}}) {
    SCOPED_TRACE(n);
    const std::vector<double> real = noise(n, 3), imag = noise(n, 4);
    const ComplexTensor x{LazyTensor::from_vector(real, {n}), LazyTensor::from_vector(imag, {n})};
    EXPECT_LT(error_of(fft(x), real, imag, -1), 1e-12);
    EXPECT_LT(error_of(fft(astype(x, DType::f32)), real, imag, -1), 1e-6);
  }
}

TEST(FourierLong, ComesBack) {
  for (const std::int64_t n : {6, 7, 96, 521}) {
    const std::vector<double> given = noise(2 * n, 5);
    const LazyTensor x = LazyTensor::from_vector(given, {2, n});
    const std::vector<double> back = irfft(rfft(x), n).to_vector<double>();
    for (std::size_t i = 0; i < given.size(); ++i) ASSERT_NEAR(back[i], given[i], 1e-13);
  }
}

TEST(ShortTime, ComesBackFromHannWindows) {
  const std::vector<double> given = noise(400, 6);
  const StftOptions options{.n_fft = 64, .hop_length = 16, .window = hann_window(64, true, DType::f64)};
  const std::vector<double> back =
      istft(stft(LazyTensor::from_vector(given, {400}), options), options, 400).to_vector<double>();
  ASSERT_EQ(back.size(), given.size());
  for (std::size_t i = 0; i < given.size(); ++i) ASSERT_NEAR(back[i], given[i], 1e-13);
}

/// Complex numbers of both parts of noise, and the tensor of them.
struct Numbers {
  std::vector<Complex> values;
  ComplexTensor tensor;

  Numbers(std::int64_t count, std::int64_t seed) {
    const std::vector<double> real = noise(count, seed), imag = noise(count, seed + 50);
    for (std::size_t i = 0; i < real.size(); ++i) values.emplace_back(real[i], imag[i]);
    tensor = {LazyTensor::from_vector(real, {count}), LazyTensor::from_vector(imag, {count})};
  }
};

void expect_same(const ComplexTensor& actual, const std::vector<Complex>& expected) {
  const std::vector<double> a = actual.real().to_vector<double>(), b = actual.imag().to_vector<double>();
  ASSERT_EQ(a.size(), expected.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_LT(std::abs(Complex(a[i], b[i]) - expected[i]), 1e-13 * (1 + std::abs(expected[i]))) << i;
}

TEST(ComplexTensors, ComputeAsStdComplexDoes) {
  const Numbers x(40, 7), y(40, 8);
  const Complex c(0.5, -2);
  const auto each = [&](const auto& f) {
    std::vector<Complex> out;
    for (std::size_t i = 0; i < x.values.size(); ++i) out.push_back(f(x.values[i], y.values[i]));
    return out;
  };
  expect_same(x.tensor + y.tensor, each([](Complex a, Complex b) { return a + b; }));
  expect_same(x.tensor - y.tensor, each([](Complex a, Complex b) { return a - b; }));
  expect_same(x.tensor * y.tensor, each([](Complex a, Complex b) { return a * b; }));
  expect_same(x.tensor / y.tensor, each([](Complex a, Complex b) { return a / b; }));
  expect_same(exp(x.tensor), each([](Complex a, Complex) { return std::exp(a); }));
  expect_same(log(x.tensor), each([](Complex a, Complex) { return std::log(a); }));
  expect_same(-conj(x.tensor), each([](Complex a, Complex) { return -std::conj(a); }));
  expect_same(x.tensor * c, each([&](Complex a, Complex) { return a * c; }));
  expect_same(2.0 - x.tensor * 3.0, each([](Complex a, Complex) { return 2.0 - a * 3.0; }));
  expect_same(1.0 / x.tensor, each([](Complex a, Complex) { return 1.0 / a; }));
  expect_same(ComplexTensor(abs(x.tensor)), each([](Complex a, Complex) { return Complex(std::abs(a)); }));
  expect_same(ComplexTensor(angle(x.tensor)), each([](Complex a, Complex) { return Complex(std::arg(a)); }));
  expect_same(sum(x.tensor, {}, true) + zeros({1}, DType::f64),
              {std::accumulate(x.values.begin(), x.values.end(), Complex())});
}

TEST(ComplexTensors, DivideLargeAndSmallNumbers) {
  const auto one = [](double real, double imag) {
    return ComplexTensor(LazyTensor::from_vector<double>({real}, {1}),
                         LazyTensor::from_vector<double>({imag}, {1}));
  };
  expect_same(one(1e300, 1e300) / one(1e300, -1e300), {Complex(0, 1)});
  expect_same(one(1e-300, 0) / one(0, 1e-300), {Complex(0, -1)});
}

TEST(ComplexTensors, MultiplyMatrices) {
  const Numbers x(6, 9), y(12, 10);
  std::vector<Complex> expected;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      Complex total = 0;
      for (std::size_t k = 0; k < 3; ++k) total += x.values[i * 3 + k] * y.values[k * 4 + j];
      expected.push_back(total);
    }
  }
  const ComplexTensor product = matmul(reshape(x.tensor, {2, 3}), reshape(y.tensor, {3, 4}));
  EXPECT_EQ(product.shape(), (Shape{2, 4}));
  expect_same(product, expected);
  expect_same(transpose(product), {expected[0], expected[4], expected[1], expected[5], expected[2],
                                   expected[6], expected[3], expected[7]});
  expect_same(slice(product, 0, 1, 2), {expected[4], expected[5], expected[6], expected[7]});
}

TEST(ComplexTensors, HaveTheSlopesOfTheirParts) {
  // |z|^4 = (a^2 + b^2)^2 has the slopes 4 |z|^2 a and 4 |z|^2 b.
  const Numbers x(5, 11);
  const LazyTensor re = x.tensor.real(), im = x.tensor.imag();
  const ComplexTensor z{re, im}, squared = z * conj(z);
  const std::vector<LazyTensor> slopes = grad(sum(real(squared * squared)), {re, im});
  const std::vector<double> a = slopes[0].to_vector<double>(), b = slopes[1].to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], 4 * std::norm(x.values[i]) * x.values[i].real(), 1e-14);
    EXPECT_NEAR(b[i], 4 * std::norm(x.values[i]) * x.values[i].imag(), 1e-14);
  }
}

TEST(FourierFrequencies, AreThoseOfTheirFormulaInTheirType) {
  for (const std::int64_t n : {1, 2, 3, 8, 11}) {
    SCOPED_TRACE(n);
    const double width = 0.3 * static_cast<double>(n);
    const std::vector<double> all = fftfreq(n, 0.3, DType::f64).to_vector<double>(),
                              half = rfftfreq(n, 0.3, DType::f64).to_vector<double>();
    ASSERT_EQ(static_cast<std::int64_t>(all.size()), n);
    ASSERT_EQ(static_cast<std::int64_t>(half.size()), n / 2 + 1);
    for (std::int64_t i = 0; i < n; ++i)
      EXPECT_DOUBLE_EQ(all[static_cast<std::size_t>(i)], static_cast<double>(2 * i < n ? i : i - n) / width);
    for (std::int64_t i = 0; i <= n / 2; ++i)
      EXPECT_DOUBLE_EQ(half[static_cast<std::size_t>(i)], static_cast<double>(i) / width);
  }
  EXPECT_THROW(fftfreq(0), ValueError);
  EXPECT_THROW(rfftfreq(std::int64_t{1} << 31), ValueError);
}

TEST(RootTables, OfAMillionElementsAreKept) {
  const LazyTensor like = zeros({1}, DType::f32);
  const Shape shape{2, 1 << 20};
  static std::int64_t own = 0;  // tests are run twice in one process, which keeps the table
  const ops::TableNumbers numbers{3, 5, 7, ++own};
  int made = 0;
  for (const int times : {1, 2}) {
    const LazyTensor table = ops::root_table(ops::RootTable::filter, numbers, shape, like, [&] {
      ++made;
      return std::vector<double>(static_cast<std::size_t>(shape.numel()), 0.5);
    });
    EXPECT_EQ(table.shape(), shape) << times;
  }
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace caldera::testing
