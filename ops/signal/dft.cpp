#include "ops/signal/dft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <functional>
#include <vector>

#include "engine/graph/data_leaf.h"
#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/shape/joining.h"
#include "ops/shape/manipulation.h"
#include "ops/signal/root_tables.h"
#include "ops/signal/transform_matrices.h"

namespace caldera::ops {
namespace {

using Complex = std::complex<double>;

constexpr std::int64_t kRadix = 64;            // factors are made up to it of smaller primes
constexpr std::int64_t kLargest = 256;         // the largest prime whose transform is a product with a matrix
constexpr std::int64_t kWorthSplit = 1 << 14;  // from so many numbers on products are of parts
constexpr std::int64_t kLeastProduct = 16;     // of so many complex terms a product runs at its full speed
constexpr std::int64_t kLeastColumns = 24;
constexpr std::int64_t kWholeTable = 256;  // longer rows of powers are products of two tables

/// Complex numbers of a table, (2, shape...).
LazyTensor table(RootTable kind, const TableNumbers& numbers, const Shape& shape, const LazyTensor& like,
                 const std::function<Complex(std::int64_t)>& value) {
  Shape whole = shape;
  whole.insert(0, 2);
  return root_table(kind, numbers, whole, like, [&] {
    const std::int64_t n = shape.numel();
    std::vector<double> values(static_cast<std::size_t>(2 * n));
    for (std::int64_t i = 0; i < n; ++i) {
      const Complex own = value(i);
      values[static_cast<std::size_t>(i)] = own.real();
      values[static_cast<std::size_t>(n + i)] = own.imag();
    }
    return values;
  });
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

/// In how many parts, m = 0 ... s - 1, a stage of n elements of a transform of so many numbers is computed:
/// each a product with a matrix of 1 / s of the rows and columns, and sums of s terms ahead of or behind all.
std::int64_t parts_of_stage(std::int64_t n, std::int64_t parts, std::int64_t numbers) {
  if (parts == 1 || numbers < kWorthSplit) return 1;
  for (const std::int64_t s : {4, 2}) {
    if (n % s == 0 && n / s >= kLeastProduct) return s;
  }
  return 1;
}

/// y_m = sum over q of exp(direction 2 pi i m q / s) x_q, s being 2 or 4.
std::vector<Parts> short_sums(const std::vector<Parts>& x, int direction) {
  const auto sum = [](const Parts& a, const Parts& b) { return Parts{a.real + b.real, a.imag + b.imag}; };
  const auto difference = [](const Parts& a, const Parts& b) {
    return Parts{a.real - b.real, a.imag - b.imag};
  };
  if (x.size() == 2) return {sum(x[0], x[1]), difference(x[0], x[1])};
  const Parts even = sum(x[0], x[2]), odd = sum(x[1], x[3]), ahead = difference(x[0], x[2]),
              aside = difference(x[1], x[3]);
  // direction i times aside.
  const Parts rotated = direction > 0 ? Parts{-aside.imag, aside.real} : Parts{aside.imag, -aside.real};
  return {sum(even, odd), sum(ahead, rotated), difference(even, odd), difference(ahead, rotated)};
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

/// (rows, n1, n2) times exp(direction 2 pi i k j / (n1 n2)), as (rows, n1, 2, n2).
LazyTensor twiddled(const Parts& x, std::int64_t n1, std::int64_t n2, int direction) {
  const std::int64_t rows = x.real.shape(0), n = n1 * n2, step = n2 > kWholeTable ? near_root(n2) : 1;
  const LazyTensor& like = x.real;
  const auto power = [&](std::int64_t k, std::int64_t j) { return unit_root(direction * (k * j), n); };
  if (step == 1) {
    const Parts roots = parts_of(table(RootTable::powers, {n1, n2, direction}, Shape{n1, n2}, like,
                                       [&](std::int64_t i) { return power(i / n2, i % n2); }),
                                 0);
    const Parts y = product(x, roots);
    return stack({y.real, y.imag}, 2);
  }
  // j = a step + b: two small tables.
  const std::int64_t count = n2 / step;
  const Parts far = parts_of(table(RootTable::far, {n1, n2, direction}, Shape{n1, count, 1}, like,
                                   [&](std::int64_t i) { return power(i / count, i % count * step); }),
                             0);
  const Parts near = parts_of(table(RootTable::near, {n1, n2, direction}, Shape{n1, 1, step}, like,
                                    [&](std::int64_t i) { return power(i / step, i % step); }),
                              0);
  const Shape apart{rows, n1, count, step};
  const Parts y = product({reshape(x.real, apart), reshape(x.imag, apart)}, product(far, near));
  return reshape(stack({y.real, y.imag}, 2), Shape{rows, n1, 2, n2});
}

/// Elements of a transform that are not 0, from the first on, and those that are asked for.
struct Extents {
  std::int64_t given, asked;
};
LazyTensor transformed(const LazyTensor& x, std::int64_t n, const std::vector<std::int64_t>& factors,
                       std::size_t first, int direction, double scale, Extents extents);

/// What a transform of n elements costs: the terms of its products, and passes over memory.
double cost_of(std::int64_t n) {
  std::int64_t terms = 0;
  for (const std::int64_t r : factors_of(n)) terms += r / parts_of_stage(r, 2, kWorthSplit) + 4;
  return static_cast<double>(terms) * static_cast<double>(n);
}

/// The product of 2, 3 and 5, not below n, whose transform costs least.
std::int64_t smooth_from(std::int64_t n) {
  const auto most = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
  std::int64_t best = most;
  for (std::int64_t fives = 1; fives < most; fives *= 5) {
    for (std::int64_t odd = fives; odd < most; odd *= 3) {
      std::int64_t all = odd;
      while (all < n) all *= 2;
      if (cost_of(all) < cost_of(best)) best = all;
    }
  }
  return best;
}

std::int64_t power_of(std::int64_t base, std::int64_t exponent, std::int64_t modulus) {
  std::int64_t power = 1;
  for (; exponent > 0; exponent /= 2, base = base * base % modulus) {
    if (exponent % 2 != 0) power = power * base % modulus;
  }
  return power;
}
/// Whose powers are 1 ... p - 1, p being a prime.
std::int64_t primitive_root(std::int64_t p) {
  std::vector<std::int64_t> primes;
  std::int64_t left = p - 1;
  for (std::int64_t q = 2; q * q <= left; ++q) {
    if (left % q == 0) primes.push_back(q);
    while (left % q == 0) left /= q;
  }
  if (left > 1) primes.push_back(left);
  std::int64_t root = 2;
  while (std::ranges::any_of(primes, [&](std::int64_t q) { return power_of(root, (p - 1) / q, p) == 1; }))
    ++root;
  return root;
}

/// Whether n is a prime, and n - 1 a product of ones whose transforms are products with matrices.
bool is_prime_beside_smooth(std::int64_t n) {
  for (std::int64_t q = 2; q * q <= n; ++q) {
    if (n % q == 0) return false;
  }
  return factors_of(n - 1).back() <= kLargest;
}

/// Of a prime number p of elements, by a cyclic convolution of p - 1 (Rader, Discrete Fourier transforms when
/// the number of data samples is prime, 1968): x[g^i] with exp(direction 2 pi i g^-i / p).
LazyTensor by_powers(const LazyTensor& x, std::int64_t p, int direction, double scale) {
  const std::int64_t g = primitive_root(p), back = power_of(g, p - 2, p), m = p - 1;
  // Where element i of the convolution comes from, and where element k of the result is: element 0 is ahead.
  std::vector<std::int32_t> from(static_cast<std::size_t>(m)), at(static_cast<std::size_t>(p));
  std::vector<std::int64_t> inverses(static_cast<std::size_t>(m));
  for (std::int64_t i = 0, up = 1, down = 1; i < m; ++i, up = up * g % p, down = down * back % p) {
    from[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(up);
    at[static_cast<std::size_t>(down)] = static_cast<std::int32_t>(i + 1);
    inverses[static_cast<std::size_t>(i)] = down;
  }
  const auto indices = [&](const std::vector<std::int32_t>& values) {
    return host_leaf<std::int32_t>(values, Shape{static_cast<std::int64_t>(values.size())}, x.device());
  };
  const LazyTensor filter = root_table(RootTable::powers_of_root, {p, direction}, Shape{2, m}, x, [&] {
    std::vector<Complex> values;
    values.reserve(static_cast<std::size_t>(m));
    for (const std::int64_t power : inverses)
      values.push_back(unit_root(direction * power, p) / static_cast<double>(m));
    std::vector<double> both;
    both.reserve(static_cast<std::size_t>(2 * m));
    const std::vector<Complex> spectrum = host_dft(values);
    for (const Complex& v : spectrum) both.push_back(v.real());
    for (const Complex& v : spectrum) both.push_back(v.imag());
    return both;
  });
  const std::int64_t rows = x.shape(0);
  const LazyTensor first = slice(x, 2, 0, 1);
  const LazyTensor start =
      x.shape(1) == 2 ? first : concatenate({first, zeros(Shape{rows, 1, 1}, x.dtype(), x.device())}, 1);
  const LazyTensor spectrum = dft(gathered(x, indices(from), 2, Indices::shared), -1, 1);
  const Parts filtered = product(parts_of(spectrum, 1), parts_of(filter, 0));
  // What comes to the first element of a spectrum comes to all elements that it is of.
  const LazyTensor shifted =
      stack({filtered.real, filtered.imag}, 1) + pad(start, {0, 0, 0}, {0, 0, m - 1}, 0);
  const LazyTensor all = start + slice(spectrum, 2, 0, 1);
  const LazyTensor whole = concatenate({all * scale, dft(shifted, 1, scale)}, 2);
  return gathered(whole, indices(at), 2, Indices::shared);
}

/// By convolution with a chirp.
LazyTensor chirped(const LazyTensor& x, std::int64_t n, int direction, double scale) {
  const std::int64_t m = smooth_from(2 * n - 1);
  const auto chirp = [&](std::int64_t j) {
    const std::int64_t square = j * j % (2 * n);  // lengths are at most 2^30
    return unit_root(direction * square, 2 * n);
  };
  const Parts w = parts_of(table(RootTable::chirp, {n, direction}, Shape{n}, x, chirp), 0);
  const bool is_real = x.shape(1) == 1;
  const LazyTensor only = squeeze(slice(x, 1, 0, 1), 1);
  const Parts start = is_real ? Parts{only * w.real, only * w.imag} : product(parts_of(x, 1), w);
  // The transform of the filter is a table as well.
  const LazyTensor filter = root_table(RootTable::filter, {n, m, direction}, Shape{2, m}, x, [&] {
    std::vector<Complex> values(static_cast<std::size_t>(m));
    for (std::int64_t j = 0; j < m; ++j) {
      const std::int64_t at = std::min(j, m - j);
      if (at < n) values[static_cast<std::size_t>(j)] = std::conj(chirp(at)) / static_cast<double>(m);
    }
    std::vector<double> both;
    both.reserve(static_cast<std::size_t>(2 * m));
    const std::vector<Complex> spectrum = host_dft(values);
    for (const Complex& v : spectrum) both.push_back(v.real());
    for (const Complex& v : spectrum) both.push_back(v.imag());
    return both;
  });
  const std::vector<std::int64_t> factors = factors_of(m);
  const LazyTensor ahead =
      transformed(stack({start.real, start.imag}, 1), m, factors, 0, -1, 1, {.given = n, .asked = m});
  const Parts spectrum = product(parts_of(ahead, 1), parts_of(filter, 0));
  const LazyTensor back = transformed(stack({spectrum.real, spectrum.imag}, 1), m, factors, 0, 1, scale,
                                      {.given = m, .asked = n});
  const Parts y = product(parts_of(back, 1), w);
  return stack({y.real, y.imag}, 1);
}

/// Those of the matrix of a first stage that meet elements which are there.
LazyTensor first_roots(std::int64_t radix, std::int64_t parts, std::int64_t given, int direction,
                       double scale, const LazyTensor& like) {
  LazyTensor roots = transform_matrix(radix, parts, direction, scale, like, radix);
  if (given == radix) return roots;
  return reshape(slice(reshape(roots, Shape{2 * radix, parts, radix}), 2, 0, given),
                 Shape{2 * radix, parts * given});
}

/// The last of several stages: elements s k + m at (m, row, part, k).
LazyTensor last_stage(const LazyTensor& x, std::int64_t s, int direction, double scale, std::int64_t asked) {
  const std::int64_t n = x.shape(2), each = n / s;
  const Parts given = parts_of(x, 1);
  std::vector<Parts> quarters;
  for (std::int64_t q = 0; q < s; ++q)
    quarters.push_back(
        {slice(given.real, 1, q * each, (q + 1) * each), slice(given.imag, 1, q * each, (q + 1) * each)});
  std::vector<LazyTensor> sums;
  for (const Parts& y : short_sums(quarters, direction)) sums.push_back(concatenate({y.real, y.imag}, 1));
  const std::int64_t count = (asked + s - 1) / s;
  const LazyTensor y =
      matmul(stack(sums, 0), transpose(stage_matrices(n, s, direction, scale, x, count, StageSums::ahead)));
  return reshape(y, Shape{s, x.shape(0), 2, count});
}

/// A stage of x (rows, 2, n1, n2) along n1, as (rows, n1, n2).
Parts stage_in_parts(const LazyTensor& x, std::int64_t s, int direction, double scale) {
  const std::int64_t rows = x.shape(0), n1 = x.shape(2), n2 = x.shape(3), each = n1 / s;
  const LazyTensor apart = reshape(permute_dims(reshape(x, Shape{rows, 2, each, s, n2}), {0, 3, 1, 2, 4}),
                                   Shape{rows, s, 2 * each, n2});
  const LazyTensor y =
      reshape(matmul(stage_matrices(n1, s, direction, scale, x, each, StageSums::behind), apart),
              Shape{rows, s, 2, each, n2});
  std::vector<Parts> terms;
  for (std::int64_t q = 0; q < s; ++q) terms.push_back(parts_of(squeeze(slice(y, 1, q, q + 1), 1), 1));
  std::vector<LazyTensor> real, imag;
  for (const Parts& sum : short_sums(terms, direction)) {
    real.push_back(sum.real);
    imag.push_back(sum.imag);
  }
  return {concatenate(real, 1), concatenate(imag, 1)};
}

/// x has elements up to extents.given, and the result those up to extents.asked. Only the first of several
/// factors is given fewer.
LazyTensor transformed(const LazyTensor& x, std::int64_t n, const std::vector<std::int64_t>& factors,
                       std::size_t first, int direction, double scale, Extents extents) {
  const std::int64_t rows = x.shape(0), parts = x.shape(1), radix = factors[first];
  if (radix > kLargest) {
    return is_prime_beside_smooth(n) ? by_powers(x, n, direction, scale) : chirped(x, n, direction, scale);
  }
  if (first + 1 == factors.size()) {
    const LazyTensor y = matmul(reshape(x, Shape{rows, parts * n}),
                                transpose(transform_matrix(n, parts, direction, scale, x, extents.asked)));
    return reshape(y, Shape{rows, 2, extents.asked});
  }
  // j = j1 n2 + j2 and k = k1 + radix k2.
  const std::int64_t n2 = n / radix, s = n2 < kLeastColumns ? 1 : parts_of_stage(radix, parts, x.numel());
  const std::int64_t given = s > 1 ? radix : (extents.given + n2 - 1) / n2;
  const std::int64_t missing = given * n2 - extents.given;
  const LazyTensor whole =
      reshape(missing == 0 ? x : pad(x, {0, 0, 0}, {0, 0, missing}, 0), Shape{rows, parts, given, n2});
  const auto unsplit = [&] {
    const LazyTensor y = matmul(first_roots(radix, parts, given, direction, scale, x),
                                reshape(whole, Shape{rows, parts * given, n2}));
    return parts_of(reshape(y, Shape{rows, 2, radix, n2}), 1);
  };
  const LazyTensor between =
      reshape(twiddled(s > 1 ? stage_in_parts(whole, s, direction, scale) : unsplit(), radix, n2, direction),
              Shape{rows * radix, 2, n2});
  const std::int64_t asked = (extents.asked + radix - 1) / radix;
  const std::int64_t s2 =
      first + 2 == factors.size() && n2 <= kLargest ? parts_of_stage(n2, 2, between.numel()) : 1;
  LazyTensor all;
  if (s2 > 1) {
    const LazyTensor inner = last_stage(between, s2, direction, 1, asked);
    const std::int64_t count = inner.shape(3);
    all = reshape(permute_dims(reshape(inner, Shape{s2, rows, radix, 2, count}), {1, 3, 4, 0, 2}),
                  Shape{rows, 2, count * s2 * radix});
  } else {
    const LazyTensor inner =
        transformed(between, n2, factors, first + 1, direction, 1, {.given = n2, .asked = asked});
    all = reshape(permute_dims(reshape(inner, Shape{rows, radix, 2, asked}), {0, 2, 3, 1}),
                  Shape{rows, 2, asked * radix});
  }
  return extents.asked == all.shape(2) ? all : slice(all, 2, 0, extents.asked);
}

}  // namespace

LazyTensor dft(const LazyTensor& x, int direction, double scale) {
  const std::int64_t n = x.shape(2);
  if (x.numel() == 0) return zeros(Shape{x.shape(0), 2, n}, x.dtype(), x.device());
  if (n == 1) return (x.shape(1) == 2 ? x : concatenate({x, zeros_like(x)}, 1)) * scale;
  return transformed(x, n, factors_of(n), 0, direction, scale, {.given = n, .asked = n});
}

LazyTensor real_dft(const LazyTensor& x, double scale) {
  const std::int64_t rows = x.shape(0), n = x.shape(1), half = n / 2;
  const Shape shape{rows, 2, half + 1};
  if (x.numel() == 0) return zeros(shape, x.dtype(), x.device());
  const std::vector<std::int64_t> factors = factors_of(n);
  if (n > 1 && factors.size() == 1 && factors[0] <= kLargest)
    return reshape(matmul(x, transpose(transform_matrix(n, 1, -1, scale, x, half + 1))), shape);
  if (n % 2 != 0) return slice(dft(reshape(x, Shape{rows, 1, n}), -1, scale), 2, 0, half + 1);
  // Elements of even and of odd places as one complex number.
  const LazyTensor z = dft(permute_dims(reshape(x, Shape{rows, half, 2}), {0, 2, 1}), -1, scale / 2);
  const LazyTensor all = concatenate({z, slice(z, 2, 0, 1)}, 2);
  const Parts a = parts_of(all, 1), b = parts_of(flip(all, 2), 1);
  const Parts w = parts_of(
      table(RootTable::to_half, {n}, Shape{half + 1}, x, [&](std::int64_t k) { return unit_root(-k, n); }),
      0);
  const Parts odd = product({a.imag + b.imag, b.real - a.real}, w);
  return stack({a.real + b.real + odd.real, a.imag - b.imag + odd.imag}, 1);
}

LazyTensor real_inverse_dft(const LazyTensor& x, std::int64_t n, double scale) {
  const std::int64_t rows = x.shape(0), half = n / 2;
  if (x.numel() == 0) return zeros(Shape{rows, n}, x.dtype(), x.device());
  const std::vector<std::int64_t> factors = factors_of(n);
  if (n > 1 && factors.size() == 1 && factors[0] <= kLargest)
    return matmul(reshape(x, Shape{rows, 2 * (half + 1)}), transpose(real_of_half_matrix(n, scale, x)));
  if (n % 2 != 0) {
    const LazyTensor rest = flip(slice(x, 2, 1, half + 1), 2);
    const Parts mirrored = parts_of(rest, 1), front = parts_of(x, 1);
    const LazyTensor all =
        stack({concatenate({front.real, mirrored.real}, 1), concatenate({front.imag, -mirrored.imag}, 1)}, 1);
    return parts_of(dft(all, 1, scale), 1).real;
  }
  const Parts given = parts_of(x, 1);
  // The imaginary parts of the first and the last element do not count.
  const LazyTensor imag = pad(slice(given.imag, 1, 1, half), {0, 1}, {0, 1}, 0);
  const Parts a{slice(given.real, 1, 0, half), slice(imag, 1, 0, half)},
      b{flip(slice(given.real, 1, 1, half + 1), 1), flip(slice(imag, 1, 1, half + 1), 1)};
  const Parts w = parts_of(
      table(RootTable::from_half, {n}, Shape{half}, x, [&](std::int64_t k) { return unit_root(k, n); }), 0);
  const Parts odd = product({a.real - b.real, a.imag + b.imag}, w);
  const LazyTensor z = dft(stack({a.real + b.real - odd.imag, a.imag - b.imag + odd.real}, 1), 1, scale);
  return reshape(permute_dims(z, {0, 2, 1}), Shape{rows, n});
}

}  // namespace caldera::ops
