// The operations that random graphs are made of: each adds a node with its value and the way to build it.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>

#include "tests/support/plans/random_graph.h"

namespace caldera::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct UnaryCase {
  const char* name;
  LazyTensor (*engine)(const LazyTensor&);
  double (*reference)(double);
};

// Smooth, or at least continuous: a rounding error must not become a jump.
const UnaryCase kUnary[] = {
    {"negative", negative, [](double x) { return -x; }},
    {"abs", abs, [](double x) { return std::abs(x); }},
    {"tanh", tanh, [](double x) { return std::tanh(x); }},
    {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"exp", exp, [](double x) { return std::exp(x); }},
    {"sin", sin, [](double x) { return std::sin(x); }},
    {"cos", cos, [](double x) { return std::cos(x); }},
    {"erf", erf, [](double x) { return std::erf(x); }},
    {"square", square, [](double x) { return x * x; }},
    {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }},
    {"sqrt(1 + square)", [](const LazyTensor& x) { return sqrt(1.0 + square(x)); },
     [](double x) { return std::sqrt(1 + x * x); }},
    {"log1p(abs)", [](const LazyTensor& x) { return log1p(abs(x)); },
     [](double x) { return std::log1p(std::abs(x)); }},
    {"reciprocal(2 + abs)", [](const LazyTensor& x) { return reciprocal(2.0 + abs(x)); },
     [](double x) { return 1 / (2 + std::abs(x)); }},
    {"rsqrt(1 + square)", [](const LazyTensor& x) { return rsqrt(square(x) + 1.0); },
     [](double x) { return 1 / std::sqrt(1 + x * x); }},
};

struct BinaryCase {
  const char* name;
  LazyTensor (*engine)(const LazyTensor&, const LazyTensor&);
  double (*reference)(double, double);
};

const BinaryCase kBinary[] = {
    {"add", add, [](double a, double b) { return a + b; }},
    {"subtract", subtract, [](double a, double b) { return a - b; }},
    {"multiply", multiply, [](double a, double b) { return a * b; }},
    {"maximum", maximum, [](double a, double b) { return std::max(a, b); }},
    {"minimum", minimum, [](double a, double b) { return std::min(a, b); }},
    {"divide by 2 + abs", [](const LazyTensor& a, const LazyTensor& b) { return a / (abs(b) + 2.0); },
     [](double a, double b) { return a / (2 + std::abs(b)); }},
};

const BinaryCase kIntegerBinary[] = {
    {"add", add, [](double a, double b) { return a + b; }},
    {"subtract", subtract, [](double a, double b) { return a - b; }},
    {"multiply", multiply, [](double a, double b) { return a * b; }},
    {"maximum", maximum, [](double a, double b) { return std::max(a, b); }},
    {"minimum", minimum, [](double a, double b) { return std::min(a, b); }},
    {"where equal", [](const LazyTensor& a, const LazyTensor& b) { return where(a == b, a, 7 - b); },
     [](double a, double b) { return a == b ? a : 7 - b; }},
};

}  // namespace

void RandomGraph::unary() {
  const int x = real_node();
  const UnaryCase& f = kUnary[below(static_cast<int>(std::size(kUnary)))];
  add_real(fmt::format("{} %{}", f.name, x), dense::map(value(x), f.reference),
           [=, engine = f.engine](const Scope& s) { return engine(s[x]); });
}

void RandomGraph::binary() {
  const int a = real_node();
  const int b = chance(15) ? a : broadcast_partner(a);
  const BinaryCase& f = kBinary[below(static_cast<int>(std::size(kBinary)))];
  const Shape to = broadcast_shapes(shape(a), shape(b), "");
  add_real(fmt::format("{} %{} %{}", f.name, a, b), dense::zip(value(a), value(b), to, f.reference),
           [=, engine = f.engine](const Scope& s) { return engine(s[a], s[b]); });
}

void RandomGraph::scalar() {
  const int x = real_node();
  const double k = (1 + below(100)) / 64.0;  // exact in f32
  add_real(fmt::format("{} - %{} * {}", k, x, k), dense::map(value(x), [=](double v) { return k - v * k; }),
           [=](const Scope& s) { return k - s[x] * k; });
}

void RandomGraph::constant() {
  const Shape to = random_shape();
  const double k = (below(100) - 50) / 32.0;
  add(fmt::format("full {}", k), Dense(to, k),
      [=, real = real_](const Scope& s) { return LazyTensor::full(to, k, real, s.device); });
}

void RandomGraph::integers() {
  const int a = integer_node();
  const int b = broadcast_partner(a);
  const BinaryCase& f = kIntegerBinary[below(static_cast<int>(std::size(kIntegerBinary)))];
  const Shape to = broadcast_shapes(shape(a), shape(b), "");
  // The remainder, which takes the sign of its divisor, keeps products from growing.
  const auto wrapped = [&f](double x, double y) {
    const double value = f.reference(x, y);
    return value - 11 * std::floor(value / 11);
  };
  const int c = add(
      fmt::format("{} %{} %{} mod 11", f.name, a, b), dense::zip(value(a), value(b), to, wrapped),
      [=, engine = f.engine](const Scope& s) { return remainder(engine(s[a], s[b]), 11); }, true);
  if (chance(60)) {
    add_real(fmt::format("real %{} / 8", c), dense::map(value(c), [](double v) { return v / 8; }),
             [=, real = real_](const Scope& s) { return astype(s[c], real) * 0.125; });
  }
}

void RandomGraph::where() {
  // The condition is on integers: a rounding error must not choose the other branch.
  const int c = integer_node();
  const int a = real_leaf(partner_shape(shape(c)));
  const Shape ca = broadcast_shapes(shape(c), shape(a), "");
  const int b = real_leaf(partner_shape(ca));
  const Shape to = broadcast_shapes(ca, shape(b), "");
  const Dense small = dense::map(value(c), [](double v) { return v < 3 ? 1.0 : 0.0; });
  add_real(fmt::format("where(%{} < 3, %{}, %{})", c, a, b), dense::select(small, value(a), value(b), to),
           [=](const Scope& s) { return caldera::where(s[c] < 3, s[a], s[b]); });
}

void RandomGraph::reduce() {
  const int x = real_node();
  const std::vector<int> axes = random_axes(shape(x));
  const bool keep = chance(50);
  int kind = below(4);
  double count = 1;
  for (int axis : axes) count *= static_cast<double>(extent_of(x, axis));
  if (count == 0) kind = 0;  // the others have no value over nothing
  constexpr const char* kNames[] = {"sum", "mean", "max", "min"};
  Dense out;
  if (kind == 2) {
    out = dense::reduce(value(x), axes, -kInfinity, [](double a, double b) { return std::max(a, b); });
  } else if (kind == 3) {
    out = dense::reduce(value(x), axes, kInfinity, [](double a, double b) { return std::min(a, b); });
  } else {
    out = dense::reduce(value(x), axes, 0, [](double a, double b) { return a + b; });
    if (kind == 1) out = dense::map(out, [&](double v) { return v / count; });
  }
  if (!keep) {
    Shape squeezed = out.shape;
    for (std::size_t k = axes.size(); k-- > 0;) squeezed.erase(axes[k]);
    out = dense::reshape(out, squeezed);
  }
  add_real(fmt::format("{} %{} axes {}{}", kNames[kind], x, axes, keep ? " keep" : ""), out,
           [=](const Scope& s) {
             const LazyTensor& t = s[x];
             return kind == 0   ? sum(t, axes, keep)
                    : kind == 1 ? mean(t, axes, keep)
                    : kind == 2 ? max(t, axes, keep)
                                : min(t, axes, keep);
           });
}

void RandomGraph::matmul() {
  int a = real_node(2);
  int b = 0;
  const Shape& left = shape(a);
  if (left.rank() > 5 || left.numel() > kMaxElements / 8) return;
  bool turned = chance(50);
  if (chance(25)) {
    b = a;  // x @ x^T
    turned = true;
  } else {
    const std::int64_t inner = left.back();
    const std::int64_t columns = 1 + below(7);
    Shape right = turned ? Shape{columns, inner} : Shape{inner, columns};
    if (chance(40)) {
      for (int d = left.rank() - 3; d >= 0; --d) right.insert(0, chance(40) ? 1 : left[d]);
    }
    if (chance(25) && right.rank() >= left.rank()) right.insert(0, 2);
    b = real_leaf(right);
  }
  Dense other = value(b);
  if (turned) {
    std::vector<int> axes(static_cast<std::size_t>(other.shape.rank()));
    std::iota(axes.begin(), axes.end(), 0);
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    other = dense::permute(other, axes);
  }
  const auto batch = [](const Shape& s) { return Shape(s.span().first(s.span().size() - 2)); };
  Shape to = broadcast_shapes(batch(value(a).shape), batch(other.shape), "");
  to.push_back(extent_of(a, shape(a).rank() - 2));
  to.push_back(other.shape.back());
  if (to.numel() > kMaxElements) return;
  add_real(fmt::format("matmul %{} %{}{}", a, b, turned ? "^T" : ""), dense::matmul(value(a), other, to),
           [=](const Scope& s) { return caldera::matmul(s[a], turned ? transpose(s[b]) : s[b]); });
}

void RandomGraph::reshape() {
  const int x = real_node();
  const Shape to = random_reshape(shape(x));
  add(fmt::format("reshape %{}", x), dense::reshape(value(x), to),
      [=](const Scope& s) { return caldera::reshape(s[x], to); });
}

void RandomGraph::permute() {
  const int x = real_node(chance(80) ? 2 : 0);
  std::vector<int> axes(static_cast<std::size_t>(shape(x).rank()));
  std::iota(axes.begin(), axes.end(), 0);
  std::shuffle(axes.begin(), axes.end(), random_);
  add(fmt::format("permute %{} {}", x, axes), dense::permute(value(x), axes),
      [=](const Scope& s) { return permute_dims(s[x], axes); });
}

void RandomGraph::slice() {
  const int x = real_node(1);
  const int axis = below(shape(x).rank());
  const std::int64_t extent = extent_of(x, axis);
  if (extent == 0) return;
  const std::int64_t start = below(static_cast<int>(extent));
  const std::int64_t step = (1 + below(3)) * (chance(40) ? -1 : 1);
  const std::int64_t room = step > 0 ? (extent - 1 - start) / step + 1 : start / -step + 1;
  const std::int64_t count = chance(3) ? 0 : 1 + below(static_cast<int>(room));
  const std::int64_t end = start + count * step;
  const auto stop = end < 0 ? std::nullopt : std::optional<std::int64_t>(end);
  add(fmt::format("slice %{} axis {} from {} step {}", x, axis, start, step),
      dense::slice(value(x), axis, start, step, count),
      [=](const Scope& s) { return caldera::slice(s[x], axis, start, stop, step); });
}

void RandomGraph::broadcast() {
  const int x = real_node();
  Shape to = shape(x);
  for (int d = 0; d < to.rank(); ++d) {
    if (to[d] == 1 && chance(70)) to[d] = 2 + below(4);
  }
  if (to.rank() < 5 && chance(50)) to.insert(0, 1 + below(4));
  if (to.numel() > kMaxElements) return;
  add(fmt::format("broadcast %{}", x), dense::broadcast(value(x), to),
      [=](const Scope& s) { return broadcast_to(s[x], to); });
}

void RandomGraph::take() {
  const int x = real_node(1);
  const int axis = below(shape(x).rank());
  const auto extent = static_cast<int>(extent_of(x, axis));
  if (extent == 0) return;
  const int i = integer_leaf({1 + below(6)}, 0, extent - 1);
  const std::vector<std::int32_t> which(value(i).v.begin(), value(i).v.end());
  Dense out = dense::take(value(x), which, axis);
  if (out.v.size() > static_cast<std::size_t>(kMaxElements)) return;
  add(fmt::format("take %{} %{} axis {}", x, i, axis), out,
      [=](const Scope& s) { return caldera::take(s[x], s[i], axis); });
}

void RandomGraph::scatter_add() {
  const int x = real_node(1);
  const int axis = below(shape(x).rank());
  const auto extent = static_cast<int>(extent_of(x, axis));
  if (extent == 0) return;
  const int i = integer_leaf({1 + below(6)}, 0, extent - 1);
  const std::vector<std::int32_t> which(value(i).v.begin(), value(i).v.end());
  Shape wanted = shape(x);
  wanted[axis] = static_cast<std::int64_t>(which.size());
  if (wanted.numel() > kMaxElements) return;
  const int u = real_leaf(wanted);
  const bool computed = chance(50);
  const Dense added = computed ? dense::map(value(u), [](double v) { return v * v; }) : value(u);
  add_real(fmt::format("scatter_add %{} %{} %{}{} axis {}", x, i, u, computed ? "^2" : "", axis),
           dense::scatter_add(value(x), which, added, axis), [=](const Scope& s) {
             return caldera::scatter_add(s[x], s[i], computed ? square(s[u]) : s[u], axis);
           });
}

void RandomGraph::pad() {
  const int x = real_node(1);
  const auto rank = static_cast<std::size_t>(shape(x).rank());
  std::vector<std::int64_t> low(rank), high(rank), between(rank);
  Shape to = shape(x);
  for (std::size_t d = 0; d < rank; ++d) {
    low[d] = chance(50) ? below(3) : 0;
    high[d] = chance(50) ? below(3) : 0;
    between[d] = chance(25) ? below(3) : 0;
    const std::int64_t extent = to[static_cast<int>(d)];
    to[static_cast<int>(d)] = low[d] + high[d] + extent + (extent > 0 ? (extent - 1) * between[d] : 0);
  }
  if (to.numel() > kMaxElements) return;
  const double fill = (below(9) - 4) / 4.0;
  add(fmt::format("pad %{} low {} high {} between {} with {}", x, low, high, between, fill),
      dense::pad(value(x), low, between, to, fill),
      [=](const Scope& s) { return caldera::pad(s[x], low, high, fill, between); });
}

void RandomGraph::concatenate() {
  const int x = real_node(1);
  const int axis = below(shape(x).rank());
  std::vector<int> parts{x};
  for (int more = 1 + below(3); more > 0; --more) {
    if (chance(30)) {
      parts.push_back(parts[static_cast<std::size_t>(below(static_cast<int>(parts.size())))]);
    } else {
      Shape part = shape(x);
      part[axis] = below(4);
      parts.push_back(real_leaf(part));
    }
  }
  std::shuffle(parts.begin(), parts.end(), random_);
  std::vector<const Dense*> values;
  values.reserve(parts.size());
  for (int part : parts) values.push_back(&value(part));
  Dense out = dense::concatenate(values, axis);
  if (out.v.size() > static_cast<std::size_t>(kMaxElements)) return;
  add(fmt::format("concatenate {} axis {}", parts, axis), out, [=](const Scope& s) {
    Tensors tensors;
    for (int part : parts) tensors.push_back(s[part]);
    return caldera::concatenate(tensors, axis);
  });
}

}  // namespace caldera::testing
