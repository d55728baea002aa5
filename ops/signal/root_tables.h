// Tables of roots of unity, kept from call to call. Private to ops/.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// Computes exp(2 pi i numerator / denominator) in double, of an angle reduced to an eighth of a turn.
std::complex<double> unit_root(std::int64_t numerator, std::int64_t denominator);

/// Transforms numbers in double: the sums of x[j] exp(-2 pi i j k / n), by mixed radix of the primes of n.
std::vector<std::complex<double>> host_dft(const std::vector<std::complex<double>>& x);

/// Names what a table holds.
enum class RootTable : std::uint8_t {
  matrix,
  to_half,
  from_half,
  powers,
  far,
  near,
  chirp,
  filter,
  powers_of_root,
  after_sums,
  before_sums
};

/// Tells tables of one kind apart.
using TableNumbers = std::array<std::int64_t, 4>;

/// Returns the values as a leaf of the type (f32 or f64) and on the device of `like`; `make` computes them,
/// row-major, if no leaf of that kind and these numbers is kept. 64 MiB are kept, the last used. Thread-safe.
LazyTensor root_table(RootTable kind, const TableNumbers& numbers, const Shape& shape, const LazyTensor& like,
                      const std::function<std::vector<double>()>& make);

}  // namespace caldera::ops
