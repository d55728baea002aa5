#include "ops/signal/transform_matrices.h"

#include <bit>
#include <complex>
#include <vector>

#include "ops/signal/root_tables.h"

namespace caldera::ops {
namespace {

using Complex = std::complex<double>;

/// exp(direction 2 pi i j / n) for j = 0 ... n - 1.
std::vector<Complex> roots_of(std::int64_t n, int direction) {
  std::vector<Complex> roots;
  roots.reserve(static_cast<std::size_t>(n));
  for (std::int64_t j = 0; j < n; ++j) roots.push_back(unit_root(direction * j, n));
  return roots;
}

}  // namespace

LazyTensor transform_matrix(std::int64_t n, std::int64_t parts, int direction, double scale,
                            const LazyTensor& like, std::int64_t count) {
  return root_table(
      RootTable::matrix, {n, 4 * parts + direction, count, std::bit_cast<std::int64_t>(scale)},
      Shape{2 * count, parts * n}, like, [&] {
        std::vector<double> values(static_cast<std::size_t>(2 * count * parts * n));
        const std::vector<Complex> roots = roots_of(n, direction);
        for (std::int64_t k = 0; k < count; ++k) {
          for (std::int64_t j = 0; j < n; ++j) {
            const Complex w = roots[static_cast<std::size_t>(j * k % n)] * scale;
            const auto at = [&](std::int64_t row, std::int64_t column) -> double& {
              return values[static_cast<std::size_t>((row * count + k) * parts * n + column * n + j)];
            };
            at(0, 0) = w.real();
            at(1, 0) = w.imag();
            if (parts == 1) continue;
            at(0, 1) = -w.imag();
            at(1, 1) = w.real();
          }
        }
        return values;
      });
}

LazyTensor stage_matrices(std::int64_t n, std::int64_t s, int direction, double scale, const LazyTensor& like,
                          std::int64_t count, StageSums sums) {
  const std::int64_t each = n / s;
  return root_table(sums == StageSums::ahead ? RootTable::after_sums : RootTable::before_sums,
                    {n, 8 * s + direction, count, std::bit_cast<std::int64_t>(scale)},
                    Shape{s, 2 * count, 2 * each}, like, [&] {
                      std::vector<double> values(static_cast<std::size_t>(s * 2 * count * 2 * each));
                      const std::vector<Complex> roots = roots_of(n, direction);
                      for (std::int64_t i = 0; i < s * count; ++i) {
                        const std::int64_t m = i / count, k = i % count;
                        for (std::int64_t j = 0; j < each; ++j) {
                          const std::int64_t turns =
                              sums == StageSums::ahead ? j * (s * k + m) : k * (s * j + m);
                          const Complex w = roots[static_cast<std::size_t>(turns % n)] * scale;
                          const auto at = [&](std::int64_t row, std::int64_t column) -> double& {
                            return values[static_cast<std::size_t>(((m * 2 + row) * count + k) * 2 * each +
                                                                   column * each + j)];
                          };
                          at(0, 0) = w.real();
                          at(1, 0) = w.imag();
                          at(0, 1) = -w.imag();
                          at(1, 1) = w.real();
                        }
                      }
                      return values;
                    });
}

LazyTensor real_of_half_matrix(std::int64_t n, double scale, const LazyTensor& like) {
  const std::int64_t count = n / 2 + 1;
  return root_table(RootTable::from_half, {n, std::bit_cast<std::int64_t>(scale)}, Shape{n, 2 * count}, like,
                    [&] {
                      std::vector<double> values(static_cast<std::size_t>(2 * count * n));
                      const std::vector<Complex> roots = roots_of(n, 1);
                      for (std::int64_t j = 0; j < n; ++j) {
                        for (std::int64_t k = 0; k < count; ++k) {
                          const double times = k == 0 || 2 * k == n ? scale : 2 * scale;
                          const Complex w = roots[static_cast<std::size_t>(j * k % n)] * times;
                          const auto at = static_cast<std::size_t>(2 * count * j + k);
                          values[at] = w.real();
                          values[at + static_cast<std::size_t>(count)] = -w.imag();
                        }
                      }
                      return values;
                    });
}

}  // namespace caldera::ops
