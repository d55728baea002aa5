// The steps that random graphs over the whole range of a type are made of: each adds a node or a few.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/plans/range_graph.h"

namespace caldera::testing {

using namespace intervals;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::int64_t kMaxElements = 400;

}  // namespace

void RangeGraph::unary() {
  const int x = some();
  const auto rising = [](double (*f)(double)) {
    return [f](const Interval& in) { return Interval{f(in[0]), f(in[1]), f(in[2])}; };
  };
  constexpr double kFunction = 64;  // transcendental functions of GPUs
  switch (below(6)) {
    case 0:
      map(
          "negative", x, negative,
          [](const Interval& in) {
            return Interval{-in[2], -in[1], -in[0]};
          },
          0);
      break;
    case 1:
      map(
          "abs", x, abs,
          [](const Interval& in) {
            const double low = in[0] <= 0 && in[2] >= 0 ? 0 : std::min(std::abs(in[0]), std::abs(in[2]));
            return Interval{low, std::abs(in[1]), largest(in)};
          },
          0);
      break;
    case 2:
      map("tanh", x, tanh, rising([](double v) { return std::tanh(v); }), kFunction);
      break;
    case 3:
      map("exp", x, exp, rising([](double v) { return std::exp(v); }),
          real_ == DType::f32 ? 4 * kFunction : kFunction);
      break;
    case 4:
      map(
          "negative negative",
          map(
              "negative", x, negative,
              [](const Interval& in) {
                return Interval{-in[2], -in[1], -in[0]};
              },
              0),
          negative,
          [](const Interval& in) {
            return Interval{-in[2], -in[1], -in[0]};
          },
          0);
      break;
    default:
      zip("multiply", x, x, multiply, times);
  }
}

void RangeGraph::binary() {
  const int a = some(), b = partner(shape(a));
  if (broadcast_shapes(shape(a), shape(b), "").numel() > kMaxElements) return;
  switch (below(6)) {
    case 0:
      zip("subtract", a, b, subtract, minus);
      break;
    case 1:
      zip("multiply", a, b, multiply, times);
      break;
    case 2:
      zip("divide", a, b, divide, over);
      break;
    case 3:
      zip("maximum", a, b, maximum, [](const Interval& x, const Interval& y) {
        return Interval{std::max(x[0], y[0]), std::max(x[1], y[1]), std::max(x[2], y[2])};
      });
      break;
    default:
      zip("add", a, b, caldera::add, plus);
  }
}

void RangeGraph::scalar() { scaled(some(), scalar_value()); }

void RangeGraph::reduce() {
  const int x = some(1);
  const int axis = below(shape(x).rank());
  const int kind = below(4);
  if (kind == 0) {
    extreme(x, axis, chance(50));
  } else if (kind == 1 && shape(x).rank() > 1) {
    std::vector<int> all(static_cast<std::size_t>(shape(x).rank()));
    std::iota(all.begin(), all.end(), 0);
    sum(x, all);
  } else {
    sum(x, {kind == 2 ? shape(x).rank() - 1 : axis});
  }
}

void RangeGraph::matmul() {
  int a = some(2);
  if (shape(a).rank() != 2) return;
  if (chance(60)) a = scaled(a, scalar_value());
  int b = chance(20) ? transposed(a) : leaf({shape(a)[1], 1 + below(5)});
  if (chance(40)) b = scaled(b, scalar_value());
  if (chance(20)) b = transposed(scaled(transposed(b), scalar_value()));
  int y = product(a, b);
  if (chance(40)) y = scaled(y, scalar_value());
  if (chance(40)) sum(y, {1});
}

/// Sums of products, written in many ways.
void RangeGraph::products() {
  const int x = some(2);
  if (shape(x).rank() != 2) return;
  const std::int64_t columns = 1 + below(5);
  const auto term = [&] {
    int y = 0;
    if (chance(50)) {
      int down = product(x, leaf({shape(x)[1], 2}));
      if (chance(40)) down = scaled(down, scalar_value());
      y = product(down, leaf({2, columns}));
    } else {
      y = product(x, leaf({shape(x)[1], columns}));
    }
    return chance(50) ? scaled(y, scalar_value()) : y;
  };
  int total = term();
  for (int more = 1 + below(4); more > 0; --more) {
    int next = chance(25) ? leaf({columns}) : term();
    if (chance(15)) next = zip("add", next, term(), caldera::add, plus);
    total = chance(50) ? zip("add", total, next, caldera::add, plus)
                       : zip("add", next, total, caldera::add, plus);
  }
}

void RangeGraph::movement() {
  const int x = some(1);
  const int axis = below(shape(x).rank());
  const std::int64_t extent = shape(x)[axis];
  switch (below(4)) {
    case 0:
      if (shape(x).rank() > 1) transposed(x);
      break;
    case 1: {
      const std::int64_t begin = below(static_cast<int>(extent));
      sliced(x, axis, begin, 1 + below(static_cast<int>(extent - begin)));
      break;
    }
    case 2: {
      const Shape flat{shape(x).numel()};
      moved(
          fmt::format("reshape %{}", x), x, [&](const Dense& d) { return dense::reshape(d, flat); },
          [=](const Tensors& t, Device) { return reshape(t[static_cast<std::size_t>(x)], flat); });
      break;
    }
    default:
      if (shape(x).numel() < kMaxElements / 4) padded(x, axis, below(3), 1 + below(2));
  }
}

/// Windows of a computed tensor, and their gradient: a sum of paddings, in any order, perhaps overlapping.
void RangeGraph::parts() {
  const int x = some(1);
  const int axis = below(shape(x).rank());
  const std::int64_t extent = shape(x)[axis];
  if (shape(x).numel() > kMaxElements / 2) return;
  int total = -1;
  for (int parts = 2 + below(4); parts > 0; --parts) {
    const std::int64_t begin = below(static_cast<int>(extent));
    const std::int64_t count = 1 + below(static_cast<int>(extent - begin));
    int one = sliced(x, axis, begin, count);
    if (chance(60)) one = scaled(one, scalar_value());
    one = padded(one, axis, begin, extent - begin - count);
    total = total < 0 ? one : zip("add", total, one, caldera::add, plus);
  }
}

/// Two parts of a tensor the other way about, as rotary embeddings have them, and an operation on the whole.
void RangeGraph::joined() {
  const int x = some(1);
  const int axis = below(shape(x).rank());
  const std::int64_t extent = shape(x)[axis];
  if (extent < 2 || shape(x).numel() > kMaxElements / 2) return;
  const std::int64_t cut = 1 + below(static_cast<int>(extent) - 1);
  const int first = scaled(sliced(x, axis, cut, extent - cut), scalar_value());
  const int second = sliced(x, axis, 0, cut);
  const auto both = [&](const Dense& a, const Dense& b) { return dense::concatenate({&a, &b}, axis); };
  const Ranges &a = node(first).ranges, &b = node(second).ranges;
  Ranges out{both(a.low, b.low), both(a.value, b.value), both(a.high, b.high)};
  const int turned = add(
      fmt::format("concatenate %{} %{} axis {}", first, second, axis), std::move(out),
      [=](const Tensors& t, Device) {
        return concatenate({t[static_cast<std::size_t>(first)], t[static_cast<std::size_t>(second)]}, axis);
      },
      {first, second});
  const int other = chance(50) ? x : partner(shape(x));
  zip("add", zip("multiply", turned, partner(shape(x)), multiply, times), other, caldera::add, plus);
}

void RangeGraph::softmax() {
  const int x = some(1);
  const int axis = shape(x).rank() - 1;
  const int shifted = chance(70) ? zip("subtract", x, extreme(x, axis, true), subtract, minus) : x;
  const auto rising = [](const Interval& in) {
    return Interval{std::exp(in[0]), std::exp(in[1]), std::exp(in[2])};
  };
  const int e = map("exp", shifted, exp, rising, 256);
  zip("divide", e, sum(e, {axis}), divide, over);
}

void RangeGraph::attention() {
  const int q = leaf({1 + below(4), 1 + below(4)}), k = leaf({2 + below(5), shape(q)[1]});
  const int v = leaf({shape(k)[0], 1 + below(4)});
  int score = product(q, transposed(k));
  if (chance(70)) score = scaled(score, scalar_value());
  const int shifted = zip("subtract", score, extreme(score, 1, true), subtract, minus);
  const auto rising = [](const Interval& in) {
    return Interval{std::exp(in[0]), std::exp(in[1]), std::exp(in[2])};
  };
  const int e = map("exp", shifted, exp, rising, 256);
  product(zip("divide", e, sum(e, {1}), divide, over), v);
}

}  // namespace caldera::testing
