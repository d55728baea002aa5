#include "ops/signal/dft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <functional>
#include <numbers>
#include <utility>
#include <vector>

#include "engine/graph/data_leaf.h"
#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/creation.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/shape/joining.h"

namespace caldera::ops {
namespace {

using Complex = std::complex<double>;

constexpr std::int64_t kRadix = 64;        // factors are made up to it of smaller primes
constexpr std::int64_t kLargest = 256;     // the largest prime whose transform is a product with a matrix
constexpr std::int64_t kWholeTable = 256;  // longer rows of powers are products of two tables

/// exp(2 pi i numerator / denominator).
Complex unit(std::int64_t numerator, std::int64_t denominator) {
  std::int64_t left = numerator % denominator;
  if (left < 0) left += denominator;
  const std::int64_t quarter = 4 * left / denominator, rest = 4 * left - quarter * denominator;
  const bool beyond = 2 * rest > denominator;
  const double angle = std::numbers::pi / 2 * static_cast<double>(beyond ? denominator - rest : rest) /
                       static_cast<double>(denominator);
  double c = std::cos(angle), s = std::sin(angle);
  if (beyond) std::swap(c, s);
  for (std::int64_t i = 0; i < quarter; ++i) c = -std::exchange(s, c);
  return {c, s};
}

/// exp(direction 2 pi i j / n) for j = 0 ... n - 1.
std::vector<Complex> roots_of(std::int64_t n, int direction) {
  std::vector<Complex> roots;
  roots.reserve(static_cast<std::size_t>(n));
  for (std::int64_t j = 0; j < n; ++j) roots.push_back(unit(direction * j, n));
  return roots;
}

LazyTensor leaf(const std::vector<double>& values, const Shape& shape, const LazyTensor& like) {
  if (like.dtype() == DType::f64) return host_leaf<double>(values, shape, like.device());
  return host_leaf<float>(std::vector<float>(values.begin(), values.end()), shape, like.device());
}

/// Complex numbers of a table, (2, shape...).
LazyTensor table(const Shape& shape, const LazyTensor& like,
                 const std::function<Complex(std::int64_t)>& value) {
  const std::int64_t n = shape.numel();
  std::vector<double> values(static_cast<std::size_t>(2 * n));
  for (std::int64_t i = 0; i < n; ++i) {
    const Complex own = value(i);
    values[static_cast<std::size_t>(i)] = own.real();
    values[static_cast<std::size_t>(n + i)] = own.imag();
  }
  Shape whole = shape;
  whole.insert(0, 2);
  return leaf(values, whole, like);
}

struct Parts {
  LazyTensor real, imag;
};
/// Both parts of an axis of 2.
Parts parts_of(const LazyTensor& x, int axis) {
  return {squeeze(slice(x, axis, 0, 1), axis), squeeze(slice(x, axis, 1, 2), axis)};
}
Parts product(const Parts& a, const Parts& b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}

/// The real matrix (2 n, parts n) of a transform.
LazyTensor matrix(std::int64_t n, std::int64_t parts, int direction, double scale, const LazyTensor& like) {
  std::vector<double> values(static_cast<std::size_t>(2 * n * parts * n));
  const std::vector<Complex> roots = roots_of(n, direction);
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t j = 0; j < n; ++j) {
      const Complex w = roots[static_cast<std::size_t>(j * k % n)] * scale;
      const auto at = [&](std::int64_t row, std::int64_t column) -> double& {
        return values[static_cast<std::size_t>((row * n + k) * parts * n + column * n + j)];
      };
      at(0, 0) = w.real();
      at(1, 0) = w.imag();
      if (parts == 1) continue;
      at(0, 1) = -w.imag();
      at(1, 1) = w.real();
    }
  }
  return leaf(values, Shape{2 * n, parts * n}, like);
}

/// Factors whose product is n; what primes above kLargest make is the last one.
std::vector<std::int64_t> factors_of(std::int64_t n) {
  std::vector<std::int64_t> primes;
  std::int64_t large = 1, left = n;
  const auto take = [&](std::int64_t p) {
    if (p > kLargest)
      large *= p;
    else
      primes.push_back(p);
  };
  for (std::int64_t p = 2; p * p <= left; ++p) {
    for (; left % p == 0; left /= p) take(p);
  }
  if (left > 1) take(left);
  std::ranges::sort(primes, std::greater<>());
  const double small = static_cast<double>(n) / static_cast<double>(large);
  const auto count = static_cast<std::size_t>(std::ceil(std::log2(small) / std::log2(kRadix) - 1e-9));
  std::vector<std::int64_t> factors(count, 1);
  for (const std::int64_t p : primes) {
    const auto least = std::ranges::min_element(factors);
    if (least != factors.end() && (*least == 1 || *least * p <= kRadix))
      *least *= p;
    else
      factors.push_back(p);
  }
  std::erase(factors, 1);
  std::ranges::sort(factors, std::greater<>());
  if (large > 1) factors.push_back(large);
  return factors;
}

/// The divisor nearest to its square root from below.
std::int64_t near_root(std::int64_t n) {
  std::int64_t best = 1;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d == 0) best = d;
  }
  return best;
}

/// (rows, 2, n1, n2) times exp(direction 2 pi i k j / (n1 n2)), as (rows, n1, 2, n2).
LazyTensor twiddled(const LazyTensor& x, std::int64_t n1, std::int64_t n2, int direction) {
  const std::int64_t rows = x.shape(0), n = n1 * n2, step = n2 > kWholeTable ? near_root(n2) : 1;
  const auto power = [&](std::int64_t k, std::int64_t j) { return unit(direction * (k * j), n); };
  if (step == 1) {
    const Parts roots =
        parts_of(table(Shape{n1, n2}, x, [&](std::int64_t i) { return power(i / n2, i % n2); }), 0);
    const Parts y = product(parts_of(x, 1), roots);
    return stack({y.real, y.imag}, 2);
  }
  // j = a step + b: two small tables.
  const std::int64_t count = n2 / step;
  const Parts far = parts_of(
      table(Shape{n1, count, 1}, x, [&](std::int64_t i) { return power(i / count, i % count * step); }), 0);
  const Parts near =
      parts_of(table(Shape{n1, 1, step}, x, [&](std::int64_t i) { return power(i / step, i % step); }), 0);
  const Parts y = product(parts_of(reshape(x, Shape{rows, 2, n1, count, step}), 1), product(far, near));
  return reshape(stack({y.real, y.imag}, 2), Shape{rows, n1, 2, n2});
}

LazyTensor transformed(const LazyTensor& x, const std::vector<std::int64_t>& factors, std::size_t first,
                       int direction, double scale);

/// The least product of 2, 3 and 5 that is not below n.
std::int64_t smooth_from(std::int64_t n) {
  auto best = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
  for (std::int64_t fives = 1; fives < best; fives *= 5) {
    for (std::int64_t odd = fives; odd < best; odd *= 3) {
      std::int64_t all = odd;
      while (all < n) all *= 2;
      best = std::min(best, all);
    }
  }
  return best;
}

/// By convolution with a chirp.
LazyTensor chirped(const LazyTensor& x, std::int64_t n, int direction, double scale) {
  const std::int64_t m = smooth_from(2 * n - 1);
  const auto chirp = [&](std::int64_t j) {
    const std::int64_t square = j * j % (2 * n);  // lengths are at most 2^30
    return unit(direction * square, 2 * n);
  };
  const Parts w = parts_of(table(Shape{n}, x, chirp), 0);
  const bool is_real = x.shape(1) == 1;
  const LazyTensor only = squeeze(slice(x, 1, 0, 1), 1);
  const Parts start = is_real ? Parts{only * w.real, only * w.imag} : product(parts_of(x, 1), w);
  const auto wide = [&](const LazyTensor& y) { return pad(y, {0, 0, 0}, {0, 0, m - n}, 0); };
  const LazyTensor filter = reshape(table(Shape{m}, x,
                                          [&](std::int64_t j) {
                                            const std::int64_t at = std::min(j, m - j);
                                            return at < n ? std::conj(chirp(at)) : Complex(0);
                                          }),
                                    Shape{1, 2, m});
  const Parts spectrum = product(parts_of(dft(wide(stack({start.real, start.imag}, 1)), -1, 1), 1),
                                 parts_of(dft(filter, -1, 1 / static_cast<double>(m)), 1));
  const LazyTensor back = slice(dft(stack({spectrum.real, spectrum.imag}, 1), 1, scale), 2, 0, n);
  const Parts y = product(parts_of(back, 1), w);
  return stack({y.real, y.imag}, 1);
}

LazyTensor transformed(const LazyTensor& x, const std::vector<std::int64_t>& factors, std::size_t first,
                       int direction, double scale) {
  const std::int64_t rows = x.shape(0), parts = x.shape(1), n = x.shape(2), radix = factors[first];
  if (radix > kLargest) return chirped(x, n, direction, scale);
  if (first + 1 == factors.size()) {
    const LazyTensor y =
        matmul(reshape(x, Shape{rows, parts * n}), transpose(matrix(n, parts, direction, scale, x)));
    return reshape(y, Shape{rows, 2, n});
  }
  // j = j1 n2 + j2 and k = k1 + radix k2.
  const std::int64_t n2 = n / radix;
  const LazyTensor y =
      matmul(matrix(radix, parts, direction, scale, x), reshape(x, Shape{rows, parts * radix, n2}));
  const LazyTensor between = twiddled(reshape(y, Shape{rows, 2, radix, n2}), radix, n2, direction);
  const LazyTensor inner =
      transformed(reshape(between, Shape{rows * radix, 2, n2}), factors, first + 1, direction, 1);
  return reshape(permute_dims(reshape(inner, Shape{rows, radix, 2, n2}), {0, 2, 3, 1}), Shape{rows, 2, n});
}

}  // namespace

LazyTensor dft(const LazyTensor& x, int direction, double scale) {
  const std::int64_t n = x.shape(2);
  if (x.numel() == 0) return zeros(Shape{x.shape(0), 2, n}, x.dtype(), x.device());
  if (n == 1) return (x.shape(1) == 2 ? x : concatenate({x, zeros_like(x)}, 1)) * scale;
  return transformed(x, factors_of(n), 0, direction, scale);
}

}  // namespace caldera::ops
