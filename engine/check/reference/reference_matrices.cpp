// Matrix routines by textbook algorithms that share nothing with LAPACK's: elimination, minors, reflections,
// and Jacobi's rotations. Slow, and right to a few roundings of f64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "engine/check/reference/reference_steps.h"

namespace caldera::reference {
namespace {

struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<double> values;

  Matrix() = default;
  Matrix(std::int64_t m, std::int64_t n)
      : rows(m), columns(n), values(static_cast<std::size_t>(m * n), 0.0) {}
  double& at(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * columns + j)]; }
  double at(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
};

Matrix identity(std::int64_t n) {
  Matrix out(n, n);
  for (std::int64_t i = 0; i < n; ++i) out.at(i, i) = 1;
  return out;
}
Matrix transposed(const Matrix& a) {
  Matrix out(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) out.at(j, i) = a.at(i, j);
  return out;
}
double dot_of_columns(const Matrix& a, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t k = 0; k < a.rows; ++k) sum += a.at(k, i) * a.at(k, j);
  return sum;
}
/// (columns i, j) = (c i - s j, s i + c j).
void turn_columns(Matrix& a, std::int64_t i, std::int64_t j, double c, double s) {
  for (std::int64_t k = 0; k < a.rows; ++k) {
    const double x = a.at(k, i), y = a.at(k, j);
    a.at(k, i) = c * x - s * y;
    a.at(k, j) = s * x + c * y;
  }
}

/// The rotation that makes columns with these squares and this product orthogonal.
std::pair<double, double> rotation(double square_i, double square_j, double product) {
  const double zeta = (square_j - square_i) / (2 * product);
  const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta));
  const double c = 1 / std::hypot(1.0, t);
  return {c, c * t};
}

constexpr int kSweeps = 60;
constexpr double kNothing = 1e-17;

[[noreturn]] void fail(const char* why) { throw std::domain_error(why); }

/// By elimination with the largest pivots. Gives the determinant, and in b the solution where it is not 0.
double eliminate(Matrix a, Matrix* b) {
  const std::int64_t n = a.rows;
  double det = 1;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k; i < n; ++i)
      if (std::abs(a.at(i, k)) > std::abs(a.at(pivot, k))) pivot = i;
    if (a.at(pivot, k) == 0) return 0;
    if (pivot != k) det = -det;
    for (std::int64_t j = 0; j < n; ++j) std::swap(a.at(pivot, j), a.at(k, j));
    for (std::int64_t j = 0; b != nullptr && j < b->columns; ++j) std::swap(b->at(pivot, j), b->at(k, j));
    det *= a.at(k, k);
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == k || (b == nullptr && i < k)) continue;
      const double factor = a.at(i, k) / a.at(k, k);
      for (std::int64_t j = k; j < n; ++j) a.at(i, j) -= factor * a.at(k, j);
      for (std::int64_t j = 0; b != nullptr && j < b->columns; ++j) b->at(i, j) -= factor * b->at(k, j);
    }
  }
  for (std::int64_t i = 0; b != nullptr && i < n; ++i)
    for (std::int64_t j = 0; j < b->columns; ++j) b->at(i, j) /= a.at(i, i);
  return det;
}

Matrix solution(const Matrix& a, Matrix b) {
  if (eliminate(a, &b) == 0) fail("a singular matrix");
  return b;
}

Matrix triangle(const Matrix& a, bool upper) {
  Matrix out = a;
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j)
      if (upper ? j < i : j > i) out.at(i, j) = 0;
  return out;
}

Matrix cholesky(const Matrix& a) {
  Matrix l(a.rows, a.rows);
  for (std::int64_t j = 0; j < a.rows; ++j) {
    for (std::int64_t i = j; i < a.rows; ++i) {
      double rest = a.at(i, j);
      for (std::int64_t k = 0; k < j; ++k) rest -= l.at(i, k) * l.at(j, k);
      if (i == j && !(rest > 0)) fail("a matrix that is not positive definite");
      l.at(i, j) = i == j ? std::sqrt(rest) : rest / l.at(j, j);
    }
  }
  return l;
}

/// Each by its definition: the determinant of what is left without a row and a column.
Matrix cofactor(const Matrix& a) {
  const std::int64_t n = a.rows;
  Matrix out(n, n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      Matrix minor(n - 1, n - 1);
      for (std::int64_t r = 0; r + 1 < n; ++r)
        for (std::int64_t c = 0; c + 1 < n; ++c) minor.at(r, c) = a.at(r + (r >= i), c + (c >= j));
      out.at(i, j) = ((i + j) % 2 == 0 ? 1 : -1) * eliminate(minor, nullptr);
    }
  }
  return out;
}

/// By Householder's reflections, which define the complete q's further columns, too.
std::vector<double> qr(const Matrix& a, bool complete) {
  const std::int64_t m = a.rows, n = a.columns, least = std::min(m, n), p = complete ? m : least;
  Matrix r = a, q = identity(m);
  for (std::int64_t k = 0; k < std::min(m - 1, n); ++k) {
    std::vector<double> v(static_cast<std::size_t>(m), 0.0);
    double square = 0, below = 0;
    for (std::int64_t i = k; i < m; ++i) {
      v[static_cast<std::size_t>(i)] = r.at(i, k);
      square += r.at(i, k) * r.at(i, k);
      if (i > k) below += r.at(i, k) * r.at(i, k);
    }
    if (below == 0) continue;
    double& head = v[static_cast<std::size_t>(k)];
    const double old = head;
    head += std::copysign(std::sqrt(square), old);
    const double length = square - old * old + head * head;
    const auto reflect = [&](auto element, std::int64_t count) {
      for (std::int64_t j = 0; j < count; ++j) {
        double along = 0;
        for (std::int64_t i = k; i < m; ++i) along += v[static_cast<std::size_t>(i)] * element(i, j);
        for (std::int64_t i = k; i < m; ++i)
          element(i, j) -= 2 * along / length * v[static_cast<std::size_t>(i)];
      }
    };
    reflect([&](std::int64_t i, std::int64_t j) -> double& { return r.at(i, j); }, n);
    reflect([&](std::int64_t i, std::int64_t j) -> double& { return q.at(j, i); }, m);
  }
  std::vector<double> out;
  const auto sign = [&](std::int64_t i) { return i < least && r.at(i, i) < 0 ? -1.0 : 1.0; };
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < p; ++j) out.push_back(q.at(i, j) * sign(j));
  for (std::int64_t i = 0; i < p; ++i)
    for (std::int64_t j = 0; j < n; ++j) out.push_back(j < i ? 0 : r.at(i, j) * sign(i));
  return out;
}

/// Whether the element of a column that is largest in magnitude is negative.
bool points_down(const Matrix& a, std::int64_t column) {
  double largest = 0;
  for (std::int64_t i = 0; i < a.rows; ++i)
    if (std::abs(a.at(i, column)) > std::abs(largest)) largest = a.at(i, column);
  return largest < 0;
}

/// Columns in the order of `keys`, with signs; a second matrix goes along.
std::vector<std::int64_t> order_of(const std::vector<double>& keys, bool ascending) {
  std::vector<std::int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    const double x = keys[static_cast<std::size_t>(i)], y = keys[static_cast<std::size_t>(j)];
    return ascending ? x < y : x > y;
  });
  return order;
}

std::vector<double> eigh(const Matrix& given, bool vectors) {
  const std::int64_t n = given.rows;
  Matrix a = given, v = identity(n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = i + 1; j < n; ++j) a.at(i, j) = a.at(j, i);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = i + 1; j < n; ++j) {
        if (std::abs(a.at(i, j)) <= kNothing * std::hypot(a.at(i, i), a.at(j, j))) continue;
        const auto [c, s] = rotation(a.at(i, i), a.at(j, j), a.at(i, j));
        turn_columns(a, i, j, c, s);
        a = transposed(a);
        turn_columns(a, i, j, c, s);
        turn_columns(v, i, j, c, s);
      }
    }
  }
  std::vector<double> w;
  w.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) w.push_back(a.at(i, i));
  const auto order = order_of(w, true);
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(n + n * n));
  for (const std::int64_t i : order) out.push_back(w[static_cast<std::size_t>(i)]);
  for (std::int64_t k = 0; vectors && k < n; ++k)
    for (const std::int64_t i : order) out.push_back(points_down(v, i) ? -v.at(k, i) : v.at(k, i));
  return out;
}

struct Svd {
  Matrix u;  // (m, p), columns of 0 where s is 0
  std::vector<double> s;
  Matrix v;  // (n, p)
};

/// One-sided rotations: columns of a v become orthogonal.
Svd svd(const Matrix& a) {
  if (a.rows < a.columns) {
    Svd turned = svd(transposed(a));
    return {turned.v, turned.s, turned.u};
  }
  Matrix u = a, v = identity(a.columns);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::int64_t i = 0; i < a.columns; ++i) {
      for (std::int64_t j = i + 1; j < a.columns; ++j) {
        const double x = dot_of_columns(u, i, i), y = dot_of_columns(u, j, j), z = dot_of_columns(u, i, j);
        if (std::abs(z) <= kNothing * std::sqrt(x * y)) continue;
        const auto [c, s] = rotation(x, y, z);
        turn_columns(u, i, j, c, s);
        turn_columns(v, i, j, c, s);
      }
    }
  }
  std::vector<double> s;
  for (std::int64_t i = 0; i < a.columns; ++i) s.push_back(std::sqrt(dot_of_columns(u, i, i)));
  const auto order = order_of(s, false);
  Svd out{Matrix(a.rows, a.columns), {}, Matrix(a.columns, a.columns)};
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto to = static_cast<std::int64_t>(k);
    const double length = s[static_cast<std::size_t>(order[k])];
    out.s.push_back(length);
    for (std::int64_t i = 0; i < a.rows; ++i) out.u.at(i, to) = length == 0 ? 0 : u.at(i, order[k]) / length;
    for (std::int64_t i = 0; i < a.columns; ++i) out.v.at(i, to) = v.at(i, order[k]);
  }
  return out;
}

std::vector<double> packed_svd(const Matrix& a, bool full) {
  const Svd d = svd(a);
  if (full && a.rows != a.columns) fail("the arbitrary vectors of a full svd, which have no reference");
  std::vector<double> out;
  const auto sign = [&](std::int64_t k) { return points_down(d.u, k) ? -1.0 : 1.0; };
  for (std::int64_t i = 0; i < d.u.rows; ++i)
    for (std::int64_t k = 0; k < d.u.columns; ++k) out.push_back(sign(k) * d.u.at(i, k));
  out.insert(out.end(), d.s.begin(), d.s.end());
  for (std::int64_t k = 0; k < d.v.columns; ++k)
    for (std::int64_t i = 0; i < d.v.rows; ++i) out.push_back(sign(k) * d.v.at(i, k));
  return out;
}

Matrix pinv(const Matrix& a, double tolerance) {
  const Svd d = svd(a);
  Matrix out(a.columns, a.rows);
  for (std::size_t k = 0; k < d.s.size(); ++k) {
    if (!(d.s[k] > (tolerance < 0 ? -tolerance : tolerance * d.s[0]))) continue;
    const auto at = static_cast<std::int64_t>(k);
    for (std::int64_t i = 0; i < a.columns; ++i)
      for (std::int64_t j = 0; j < a.rows; ++j) out.at(i, j) += d.v.at(i, at) * d.u.at(j, at) / d.s[k];
  }
  return out;
}

/// Row by row, with the largest pivots: the factors, the order of the rows, and their exchanges from 1.
std::vector<double> lu(Matrix a) {
  const std::int64_t m = a.rows, n = a.columns, least = std::min(m, n);
  std::vector<double> order, pivots;
  for (std::int64_t i = 0; i < m; ++i) order.push_back(static_cast<double>(i));
  for (std::int64_t k = 0; k < least; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k; i < m; ++i)
      if (std::abs(a.at(i, k)) > std::abs(a.at(pivot, k))) pivot = i;
    for (std::int64_t j = 0; j < n; ++j) std::swap(a.at(pivot, j), a.at(k, j));
    std::swap(order[static_cast<std::size_t>(pivot)], order[static_cast<std::size_t>(k)]);
    pivots.push_back(static_cast<double>(pivot + 1));
    for (std::int64_t i = k + 1; i < m && a.at(k, k) != 0; ++i) {
      a.at(i, k) /= a.at(k, k);
      for (std::int64_t j = k + 1; j < n; ++j) a.at(i, j) -= a.at(i, k) * a.at(k, j);
    }
  }
  std::vector<double> out = a.values;
  out.insert(out.end(), order.begin(), order.end());
  out.insert(out.end(), pivots.begin(), pivots.end());
  return out;
}

std::vector<double> exchanged(const Matrix& pivots) {
  std::vector<double> order;
  for (std::int64_t i = 0; i < pivots.rows; ++i) order.push_back(static_cast<double>(i));
  for (std::int64_t i = 0; i < pivots.rows; ++i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(pivots.at(i, 0)) - 1]);
  return order;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k)
      for (std::int64_t j = 0; j < b.columns; ++j) out.at(i, j) += a.at(i, k) * b.at(k, j);
  return out;
}

/// Its series of a matrix that is halved until it is small, squared as often.
Matrix exponential(Matrix a) {
  double norm = 0;
  for (const double x : a.values) norm += std::abs(x);
  int halvings = 0;
  for (; norm > 0.25; norm /= 2) ++halvings;
  for (double& x : a.values) x = std::ldexp(x, -halvings);
  Matrix sum = identity(a.rows), term = sum;
  for (int k = 1; k < 20; ++k) {
    term = product(term, a);
    for (double& x : term.values) x /= k;
    for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += term.values[i];
  }
  for (int i = 0; i < halvings; ++i) sum = product(sum, sum);
  return sum;
}

std::vector<double> results(const LinalgStep& linalg, const Matrix& a, const Matrix& b, double tolerance) {
  const bool option = linalg.option;
  switch (linalg.routine) {
    case MatrixRoutine::cholesky:
      return cholesky(a).values;
    case MatrixRoutine::solve:
      return solution(a, b).values;
    case MatrixRoutine::solve_triangular:
      return solution(triangle(a, option), b).values;
    case MatrixRoutine::inv:
      return solution(a, identity(a.rows)).values;
    case MatrixRoutine::det:
      return {eliminate(a, nullptr)};
    case MatrixRoutine::slogdet: {
      const double det = eliminate(a, nullptr);
      return {det == 0 ? 0 : std::copysign(1.0, det), std::log(std::abs(det))};
    }
    case MatrixRoutine::cofactor:
      return cofactor(a).values;
    case MatrixRoutine::qr:
      return qr(a, option);
    case MatrixRoutine::svd:
      return packed_svd(a, option);
    case MatrixRoutine::svdvals:
      return svd(a).s;
    case MatrixRoutine::eigh:
      return eigh(a, true);
    case MatrixRoutine::eigvalsh:
      return eigh(a, false);
    case MatrixRoutine::pinv:
      return pinv(a, tolerance).values;
    case MatrixRoutine::lu:
      return lu(a);
    case MatrixRoutine::exchanges:
      return exchanged(a);
    case MatrixRoutine::eig:
      fail("eigenvalues of general matrices, which have no reference");
    case MatrixRoutine::exp:
      return exponential(a).values;
  }
  return {};
}

}  // namespace

void run_step(const StepMemory& memory, const LinalgStep& linalg) {
  const Step& step = memory.step();
  const MatrixRoutine routine = linalg.routine;
  const double tolerance = has_tolerance(routine) ? memory.scalar(step.scalars[0], step.dtype).f : 0;
  const std::size_t out = step.operands.size() - 1;
  for (std::int64_t batch = 0; batch < step.dims[0]; ++batch) {
    Matrix a(step.dims[1], step.dims[2]), b(step.dims[1], step.dims[3]);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t j = 0; j < a.columns; ++j) a.at(i, j) = memory.read(0, step.dtype, {batch, i, j}).f;
      for (std::int64_t k = 0; has_right_side(routine) && k < b.columns; ++k)
        b.at(i, k) = memory.read(1, step.dtype, {batch, i, 0, k}).f;
    }
    const bool finite =
        std::all_of(a.values.begin(), a.values.end(), [](double x) { return std::isfinite(x); });
    std::vector<double> values(static_cast<std::size_t>(step.dims[4]),
                               std::numeric_limits<double>::quiet_NaN());
    if (finite || routine == MatrixRoutine::solve_triangular) values = results(linalg, a, b, tolerance);
    for (std::size_t p = 0; p < values.size(); ++p)
      memory.write(out, step.dtype, {batch, 0, 0, 0, static_cast<std::int64_t>(p)}, floating(values[p]));
  }
}

}  // namespace caldera::reference
