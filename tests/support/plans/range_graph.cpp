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

using namespace intervals;  // NOLINT(google-build-using-namespace)

namespace {

constexpr double kFloatUnit = 0x1p-24;
constexpr double kFloatMost = std::numeric_limits<float>::max();
constexpr double kFloatLeast = std::numeric_limits<float>::min();

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
      &RangeGraph::softmax,  &RangeGraph::attention, &RangeGraph::joined,
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
    // Products of bf16 by pairs take what is subnormal as 0.
    const bool may_vanish = real_ == DType::bf16 && std::fabs(x) < least_;
    set(ranges, p, {may_vanish ? std::min(x, 0.0) : x, x, may_vanish ? std::max(x, 0.0) : x});
  });
  return add(fmt::format("leaf ~{:g}", common), ranges,
             [=, real = real_](const Tensors&, Device device) {
               const LazyTensor x = LazyTensor::from_vector(values, shape, Device::cpu());
               return to(astype(x, real).eval(), device).eval();
             },
             {});
}

Interval RangeGraph::rounded(Interval x, double units) const {
  if (is_open(x)) return {-kInfinity, x[1], kInfinity};
  // The error of a function is that of f32, in which 16-bit types are computed.
  if (unit_ > kFloatUnit) units = std::min(units, 3.0);
  x[0] -= std::abs(x[0]) * units * unit_ + least_;
  x[2] += std::abs(x[2]) * units * unit_ + least_;
  if (largest(x) >= most_) return {-kInfinity, x[1], kInfinity};
  return x;
}

int RangeGraph::map(const char* name, int x, LazyTensor (*engine)(const LazyTensor&), const OfOne& f,
                    double units) {
  Ranges out = ranges_of(shape(x));
  for_each_point(shape(x), [&](const Dims& p) {
    const Interval in = at(node(x).ranges, p);
    set(out, p, is_open(in) ? kAnything : rounded(f(in), units));
  });
  return add(fmt::format("{} %{}", name, x), out,
             [=](const Tensors& t, Device) { return engine(t[static_cast<std::size_t>(x)]); }, {x});
}

int RangeGraph::zip(const char* name, int a, int b,
                    LazyTensor (*engine)(const LazyTensor&, const LazyTensor&), const OfTwo& f) {
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

int RangeGraph::moved(std::string text, int x, const std::function<Dense(const Dense&)>& f, Builder build) {
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
