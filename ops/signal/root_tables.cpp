#include "ops/signal/root_tables.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <list>
#include <mutex>
#include <numbers>
#include <utility>

#include "engine/graph/data_leaf.h"

namespace caldera::ops {
namespace {

using Complex = std::complex<double>;

constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;

LazyTensor leaf(const std::vector<double>& values, const Shape& shape, const LazyTensor& like) {
  if (like.dtype() == DType::f64) return host_leaf<double>(values, shape, like.device());
  return host_leaf<float>(std::vector<float>(values.begin(), values.end()), shape, like.device());
}

struct KeptTable {
  RootTable kind;
  TableNumbers numbers;
  LazyTensor values;

  bool is(RootTable of_kind, const TableNumbers& of, const LazyTensor& like) const {
    return kind == of_kind && numbers == of && values.dtype() == like.dtype() &&
           values.device() == like.device();
  }
  std::int64_t bytes() const { return values.numel() * static_cast<std::int64_t>(size_of(values.dtype())); }
};

/// The last used first.
struct KeptTables {
  std::mutex mutex;
  std::list<KeptTable> all;
  std::int64_t bytes = 0;
};
KeptTables& kept_tables() {
  static auto* tables = new KeptTables;  // outlives every static tensor
  return *tables;
}

struct HostTransform {
  std::int64_t whole;  // length of the first call
  std::vector<Complex> roots;

  explicit HostTransform(std::int64_t n) : whole(n) {
    for (std::int64_t j = 0; j < n; ++j) roots.push_back(unit_root(-j, n));
  }
  /// n numbers, `stride` apart.
  void run(const Complex* from, std::int64_t stride, Complex* to, std::int64_t n) const {
    if (n == 1) {
      *to = *from;
      return;
    }
    std::int64_t radix = 2;
    while (n % radix != 0) ++radix;
    const std::int64_t part = n / radix, step = whole / n;
    for (std::int64_t r = 0; r < radix; ++r) run(from + r * stride, stride * radix, to + r * part, part);
    std::vector<Complex> given(static_cast<std::size_t>(radix));
    for (std::int64_t k = 0; k < part; ++k) {
      for (std::int64_t r = 0; r < radix; ++r) given[static_cast<std::size_t>(r)] = to[r * part + k];
      for (std::int64_t q = 0; q < radix; ++q) {
        Complex sum = 0;
        for (std::int64_t r = 0; r < radix; ++r)
          sum += given[static_cast<std::size_t>(r)] *
                 roots[static_cast<std::size_t>(r * (k + q * part) % n * step)];
        to[q * part + k] = sum;
      }
    }
  }
};

}  // namespace

Complex unit_root(std::int64_t numerator, std::int64_t denominator) {
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

std::vector<Complex> host_dft(const std::vector<Complex>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<Complex> y(x.size());
  if (n > 0) HostTransform(n).run(x.data(), 1, y.data(), n);
  return y;
}

LazyTensor root_table(RootTable kind, const TableNumbers& numbers, const Shape& shape, const LazyTensor& like,
                      const std::function<std::vector<double>()>& make) {
  KeptTables& tables = kept_tables();
  {
    const std::lock_guard lock(tables.mutex);
    for (auto at = tables.all.begin(); at != tables.all.end(); ++at) {
      if (!at->is(kind, numbers, like)) continue;
      tables.all.splice(tables.all.begin(), tables.all, at);
      return at->values;
    }
  }
  const KeptTable made{kind, numbers, leaf(make(), shape, like)};
  if (made.bytes() > kMostBytes / 2) return made.values;
  std::list<KeptTable> dropped;  // freed outside of the lock
  const std::lock_guard lock(tables.mutex);
  tables.all.push_front(made);
  tables.bytes += made.bytes();
  while (tables.bytes > kMostBytes) {
    tables.bytes -= tables.all.back().bytes();
    dropped.splice(dropped.begin(), tables.all, std::prev(tables.all.end()));
  }
  return made.values;
}

}  // namespace caldera::ops
