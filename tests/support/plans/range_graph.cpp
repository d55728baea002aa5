#include "tests/support/plans/range_graph.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "engine/tensor/dtype.h"

namespace caldera::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFloatUnit = 0x1p-24;
constexpr double kFloatMost = std::numeric_limits<float>::max();
constexpr double kFloatLeast = std::numeric_limits<float>::min();
constexpr std::int64_t kMaxElements = 400;

using Interval = std::array<double, 3>;
constexpr Interval kAnything{-kInfinity, std::numeric_limits<double>::quiet_NaN(), kInfinity};

Interval at(const Ranges& x, const Dims& point) { return {x.low[point], x.value[point], x.high[point]}; }
void set(Ranges& x, const Dims& point, const Interval& to) {
  x.low[point] = to[0];
  x.value[point] = to[1];
  x.high[point] = to[2];
}
Ranges ranges_of(const Shape& shape) { return {Dense(shape), Dense(shape), Dense(shape)}; }
bool is_open(const Interval& x) { return !(std::isfinite(x[0]) && std::isfinite(x[2])); }
double largest(const Interval& x) { return std::max(std::abs(x[0]), std::abs(x[2])); }

Interval plus(const Interval& a, const Interval& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
Interval minus(const Interval& a, const Interval& b) { return {a[0] - b[2], a[1] - b[1], a[2] - b[0]}; }
Interval times(const Interval& a, const Interval& b) {
  const auto [low, high] = std::minmax({a[0] * b[0], a[0] * b[2], a[2] * b[0], a[2] * b[2]});
  return {low, a[1] * b[1], high};
}
Interval over(const Interval& a, const Interval& b) {
  if (!(b[0] > 0) && !(b[2] < 0)) return kAnything;
  const auto [low, high] = std::minmax({a[0] / b[0], a[0] / b[2], a[2] / b[0], a[2] / b[2]});
  return {low, a[1] / b[1], high};
}

}  // namespace

RangeGraph::RangeGraph(std::uint32_t seed, DType real)
    : random_(seed),
      real_(real),
      unit_(real == DType::f16    ? 0x1p-11
            : real == DType::bf16 ? 0x1p-8
                                  : kFloatUnit),
      least_(real == DType::f16 ? 0x1p-24 : kFloatLeast),
      most_(real == DType::f16    ? 65504
            : real == DType::bf16 ? 0x1.fep127
                                  : kFloatMost) {
  using Step = void (RangeGraph::*)();
  constexpr Step kSteps[] = {
      &RangeGraph::unary,    &RangeGraph::unary,     &RangeGraph::binary,   &RangeGraph::binary,
      &RangeGraph::binary,   &RangeGraph::scalar,    &RangeGraph::scalar,   &RangeGraph::reduce,
      &RangeGraph::reduce,   &RangeGraph::matmul,    &RangeGraph::matmul,   &RangeGraph::products,
      &RangeGraph::products, &RangeGraph::movement,  &RangeGraph::movement, &RangeGraph::parts,
      &RangeGraph::softmax,  &RangeGraph::attention,
  };
  leaf({1 + below(4), 1 + below(5)});
  for (int steps = 4 + below(12); steps > 0; --steps)
    (this->*kSteps[below(static_cast<int>(std::size(kSteps)))])();
  outputs_.push_back(size() - 1);
  for (int more = 1 + below(3); more > 0; --more) outputs_.push_back(below(size()));
}

RangeGraph::Tensors RangeGraph::build(Device device) const {
  Tensors all;
  for (const Node& node : nodes_) all.push_back(node.build(all, device));
  return all;
}

std::vector<bool> RangeGraph::finite_all_the_way(const std::vector<std::vector<double>>& values) const {
  std::vector<bool> finite;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    finite.push_back(
        std::all_of(values[i].begin(), values[i].end(), [](double x) { return std::isfinite(x); }) &&
        std::all_of(nodes_[i].inputs.begin(), nodes_[i].inputs.end(),
                    [&](int input) { return finite[static_cast<std::size_t>(input)]; }));
  }
  return finite;
}

std::string RangeGraph::to_string() const {
  std::string text = fmt::format("  {}\n", name(real_));
  for (int i = 0; i < size(); ++i) {
    const Ranges& r = node(i).ranges;
    text += fmt::format("  %{} = {}  {}", i, node(i).text, r.shape().to_string());
    if (!r.value.v.empty())
      text += fmt::format("  [{:g}, {:g}, {:g}] ...", r.low.v[0], r.value.v[0], r.high.v[0]);
    text += "\n";
  }
  return text + fmt::format("  outputs {}\n", outputs_);
}

// ---- choices

double RangeGraph::magnitude() {
  const double top = real_ == DType::f16 ? 4.7 : 37.9, bottom = real_ == DType::f16 ? -6 : -37.9;
  if (chance(40)) return std::pow(10.0, std::uniform_real_distribution<double>(-1.5, 1.5)(random_));
  return std::pow(10.0, std::uniform_real_distribution<double>(bottom, top)(random_));
}

double RangeGraph::scalar_value() {
  const double sign = chance(30) ? -1 : 1;
  // A power of two, which every type holds.
  return sign * std::exp2(std::floor(std::log2(magnitude())));
}

int RangeGraph::some(int min_rank) {
  for (int tries = 0; tries < 8; ++tries) {
    const int i = chance(70) ? size() - 1 - below(std::min(size(), 4)) : below(size());
    if (shape(i).rank() >= min_rank && shape(i).numel() > 0) return i;
  }
  return leaf({1 + below(4), 1 + below(5)});
}

int RangeGraph::partner(const Shape& to) {
  for (int tries = 0; tries < 4; ++tries) {
    const int b = below(size());
    if (shape(b) == to) return b;
  }
  Shape own = to;
  for (int d = 0; d < own.rank(); ++d) {
    if (chance(25)) own[d] = 1;
  }
  return leaf(own);
}

// ---- nodes

int RangeGraph::add(std::string text, Ranges ranges, Builder build, std::vector<int> inputs) {
  Node node{std::move(text), std::move(ranges), std::move(build), std::move(inputs)};
  for (int input : node.inputs)
    node.any_order = node.any_order && nodes_[static_cast<std::size_t>(input)].any_order;
  nodes_.push_back(std::move(node));
  return size() - 1;
}

int RangeGraph::leaf(const Shape& shape) {
  Ranges ranges = ranges_of(shape);
  const double common = magnitude();
  const bool wild = chance(20);
  std::vector<float> values;
  for_each_point(shape, [&](const Dims& p) {
    const double size =
        (wild ? magnitude() : common) * std::uniform_real_distribution<double>(0.5, 1)(random_);
    double x = chance(50) ? -size : size;
    if (real_ == DType::f16) x = to_float(to_half(static_cast<float>(x)));
    if (real_ == DType::bf16) x = to_float(to_bfloat16(static_cast<float>(x)));
    if (real_ == DType::f32) x = static_cast<float>(x);
    values.push_back(static_cast<float>(x));
    set(ranges, p, {x, x, x});
  });
  return add(fmt::format("leaf ~{:g}", common), ranges,
             [=, real = real_](const Tensors&, Device device) {
               const LazyTensor x = LazyTensor::from_vector(values, shape, Device::cpu());
               return to(astype(x, real).eval(), device).eval();
             },
             {});
}

RangeGraph::Interval RangeGraph::rounded(Interval x, double units) const {
  if (is_open(x)) return {-kInfinity, x[1], kInfinity};
  // The error of a function is that of f32, in which 16-bit types are computed.
  if (unit_ > kFloatUnit) units = std::min(units, 3.0);
  x[0] -= std::abs(x[0]) * units * unit_ + least_;
  x[2] += std::abs(x[2]) * units * unit_ + least_;
  if (largest(x) >= most_) return {-kInfinity, x[1], kInfinity};
  return x;
}

template <class F>
int RangeGraph::map(const char* name, int x, LazyTensor (*engine)(const LazyTensor&), F f, double units) {
  Ranges out = ranges_of(shape(x));
  for_each_point(shape(x), [&](const Dims& p) {
    const Interval in = at(node(x).ranges, p);
    set(out, p, is_open(in) ? kAnything : rounded(f(in), units));
  });
  return add(fmt::format("{} %{}", name, x), out,
             [=](const Tensors& t, Device) { return engine(t[static_cast<std::size_t>(x)]); }, {x});
}

template <class F>
int RangeGraph::zip(const char* name, int a, int b,
                    LazyTensor (*engine)(const LazyTensor&, const LazyTensor&), F f) {
  const Shape to = broadcast_shapes(shape(a), shape(b), "");
  Ranges out = ranges_of(to);
  for_each_point(to, [&](const Dims& p) {
    const Interval x = at(node(a).ranges, p), y = at(node(b).ranges, p);
    set(out, p, is_open(x) || is_open(y) ? kAnything : rounded(f(x, y)));
  });
  return add(fmt::format("{} %{} %{}", name, a, b), out,
             [=](const Tensors& t, Device) {
               return engine(t[static_cast<std::size_t>(a)], t[static_cast<std::size_t>(b)]);
             },
             {a, b});
}

int RangeGraph::scaled(int x, double k) {
  Ranges out = ranges_of(shape(x));
  for_each_point(shape(x), [&](const Dims& p) {
    const Interval in = at(node(x).ranges, p);
    set(out, p, is_open(in) ? kAnything : rounded(times(in, {k, k, k})));
  });
  return add(fmt::format("%{} * {:g}", x, k), out,
             [=](const Tensors& t, Device) { return t[static_cast<std::size_t>(x)] * k; }, {x});
}

/// Sums and products of matrices are computed in f32 and rounded once to the type of the result.
int RangeGraph::product(int a, int b) {
  const Shape &left = shape(a), &right = shape(b);
  Shape to = left;
  to[to.rank() - 1] = right.back();
  Ranges out = ranges_of(to);
  bool any_order = true;
  for_each_point(to, [&](const Dims& p) {
    Interval total{0, 0, 0};
    double absolute = 0;
    for (std::int64_t k = 0; k < left.back(); ++k) {
      Dims pa = p, pb = p;
      pa[to.rank() - 1] = k;
      pb[to.rank() - 2] = k;
      const Interval x = at(node(a).ranges, pa), y = at(node(b).ranges, pb);
      const Interval term = is_open(x) || is_open(y) ? kAnything : times(x, y);
      total = plus(total, term);
      absolute += largest(term);
    }
    const double n = static_cast<double>(left.back()) + 1,
                 error = n * (2 * kFloatUnit * absolute + kFloatLeast);
    if (!(absolute + error < kFloatMost)) any_order = false;
    set(out, p,
        absolute + error < kFloatMost ? rounded({total[0] - error, total[1], total[2] + error})
                                      : Interval{-kInfinity, total[1], kInfinity});
  });
  const int i = add(fmt::format("matmul %{} %{}", a, b), out,
                    [=](const Tensors& t, Device) {
                      return caldera::matmul(t[static_cast<std::size_t>(a)], t[static_cast<std::size_t>(b)]);
                    },
                    {a, b});
  nodes_.back().any_order = nodes_.back().any_order && any_order;
  return i;
}

int RangeGraph::sum(int x, std::vector<int> axes) {
  Shape to = shape(x);
  double n = 2;
  for (int axis : axes) {
    n *= static_cast<double>(to[axis]);
    to[axis] = 1;
  }
  Ranges out = ranges_of(to);
  Dense absolute(to);
  for_each_point(shape(x), [&](const Dims& p) {
    set(out, p, plus(at(out, p), at(node(x).ranges, p)));
    absolute[p] += largest(at(node(x).ranges, p));
  });
  bool any_order = true;
  for_each_point(to, [&](const Dims& p) {
    const double error = n * 2 * kFloatUnit * absolute[p];
    const bool fits = absolute[p] + error < kFloatMost;
    any_order = any_order && fits;
    Interval total = at(out, p);
    set(out, p,
        fits ? rounded({total[0] - error, total[1], total[2] + error})
             : Interval{-kInfinity, total[1], kInfinity});
  });
  const int i =
      add(fmt::format("sum %{} axes {}", x, axes), out,
          [=](const Tensors& t, Device) { return caldera::sum(t[static_cast<std::size_t>(x)], axes, true); },
          {x});
  nodes_.back().any_order = nodes_.back().any_order && any_order;
  return i;
}

int RangeGraph::extreme(int x, int axis, bool highest) {
  Shape to = shape(x);
  to[axis] = 1;
  const double start = highest ? -kInfinity : kInfinity;
  Ranges out = ranges_of(to);
  for_each_point(to, [&](const Dims& p) { set(out, p, {start, start, start}); });
  Dense open(to);
  const auto pick = [&](double a, double b) { return highest ? std::max(a, b) : std::min(a, b); };
  for_each_point(shape(x), [&](const Dims& p) {
    const Interval in = at(node(x).ranges, p), so_far = at(out, p);
    if (is_open(in)) open[p] = 1;
    set(out, p, {pick(so_far[0], in[0]), pick(so_far[1], in[1]), pick(so_far[2], in[2])});
  });
  for_each_point(to, [&](const Dims& p) {
    if (open[p] != 0) set(out, p, {-kInfinity, out.value[p], kInfinity});
  });
  return add(fmt::format("{} %{} axis {}", highest ? "max" : "min", x, axis), out,
             [=](const Tensors& t, Device) {
               const LazyTensor& in = t[static_cast<std::size_t>(x)];
               return highest ? max(in, axis, true) : min(in, axis, true);
             },
             {x});
}

template <class F>
int RangeGraph::moved(std::string text, int x, F f, Builder build) {
  const Ranges& r = node(x).ranges;
  Ranges out{f(r.low), f(r.value), f(r.high)};
  return add(std::move(text), std::move(out), std::move(build), {x});
}

int RangeGraph::transposed(int x) {
  std::vector<int> axes(static_cast<std::size_t>(shape(x).rank()));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return moved(
      fmt::format("transpose %{}", x), x, [&](const Dense& d) { return dense::permute(d, axes); },
      [=](const Tensors& t, Device) { return transpose(t[static_cast<std::size_t>(x)]); });
}

int RangeGraph::sliced(int x, int axis, std::int64_t begin, std::int64_t count) {
  return moved(
      fmt::format("slice %{} axis {} [{}, {})", x, axis, begin, begin + count), x,
      [&](const Dense& d) { return dense::slice(d, axis, begin, 1, count); },
      [=](const Tensors& t, Device) {
        return slice(t[static_cast<std::size_t>(x)], axis, begin, begin + count);
      });
}

int RangeGraph::padded(int x, int axis, std::int64_t low, std::int64_t high) {
  const auto rank = static_cast<std::size_t>(shape(x).rank());
  std::vector<std::int64_t> before(rank), after(rank), between(rank);
  before[static_cast<std::size_t>(axis)] = low;
  after[static_cast<std::size_t>(axis)] = high;
  Shape to = shape(x);
  to[axis] += low + high;
  return moved(
      fmt::format("pad %{} axis {} {} {}", x, axis, low, high), x,
      [&](const Dense& d) { return dense::pad(d, before, between, to, 0); },
      [=](const Tensors& t, Device) { return pad(t[static_cast<std::size_t>(x)], before, after); });
}

// ---- steps

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

// ---- comparison

std::vector<double> values_of(const LazyTensor& x) {
  const auto wide = astype(to(x, Device::cpu()), DType::f32).to_vector<float>();
  return {wide.begin(), wide.end()};
}

::testing::AssertionResult lies_within(const std::vector<double>& got, const RangeGraph::Node& node,
                                       bool must_be_finite) {
  const Ranges& r = node.ranges;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool bounded = std::isfinite(r.low.v[i]) && std::isfinite(r.high.v[i]);
    const bool right = bounded ? got[i] >= r.low.v[i] && got[i] <= r.high.v[i]
                               : !must_be_finite || !std::isfinite(r.value.v[i]) || std::isfinite(got[i]);
    if (!right) {
      return ::testing::AssertionFailure()
             << "element " << i << " is " << got[i] << ", should lie in [" << r.low.v[i] << ", "
             << r.high.v[i] << "], about " << r.value.v[i];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace caldera::testing
