// The patterns that compilers look for, as users write them, inside random graphs: normalisations over rows,
// low-rank products, attention, rotary embeddings. Their values come from formulas over single elements.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/plans/random_graph.h"

namespace caldera::testing {
namespace {

/// f over every row (last axis) of x in place.
template <class F>
Dense over_rows(const Dense& x, F f) {
  Dense out = x;
  const auto columns = static_cast<std::size_t>(x.shape.back());
  for (std::size_t at = 0; at + columns <= out.v.size() && columns > 0; at += columns) {
    f(std::span<double>(out.v.data() + at, columns));
  }
  return out;
}

void softmax_of(std::span<double> row) {
  const double highest = *std::max_element(row.begin(), row.end());
  double total = 0;
  for (double& v : row) total += v = std::exp(v - highest);
  for (double& v : row) v /= total;
}

void normalise(std::span<double> row, bool centre) {
  const auto count = static_cast<double>(row.size());
  const double mean = centre ? std::accumulate(row.begin(), row.end(), 0.0) / count : 0;
  double squares = 0;
  for (double& v : row) {
    v -= mean;
    squares += v * v;
  }
  for (double& v : row) v /= std::sqrt(squares / count + 0.5);
}

}  // namespace

void RandomGraph::normalisation() {
  const int x = real_node(1);
  if (value(x).v.empty()) return;
  const int kind = below(5);
  constexpr const char* kNames[] = {"softmax", "exp / sum(exp)", "log_softmax", "rms_norm", "layer_norm"};
  Dense out;
  if (kind < 2) {
    out = over_rows(value(x), softmax_of);
  } else if (kind == 2) {
    out = dense::map(over_rows(value(x), softmax_of), [](double v) { return std::log(v); });
  } else {
    out = over_rows(value(x), [&](std::span<double> row) { normalise(row, kind == 4); });
  }
  add_real(fmt::format("{} %{}", kNames[kind], x), out, [=](const Scope& s) {
    const LazyTensor& t = s[x];
    if (kind == 0) return exp(t - max(t, -1, true)) / sum(exp(t - max(t, -1, true)), -1, true);
    if (kind == 1) return exp(t) / sum(exp(t), -1, true);
    if (kind == 2) return log_softmax(t);
    const LazyTensor centred = kind == 4 ? t - mean(t, -1, true) : t;
    return centred * rsqrt(mean(square(centred), -1, true) + 0.5);
  });
}

void RandomGraph::low_rank() {
  const int x = real_node(2);
  if (shape(x).rank() > 4 || shape(x).numel() > kMaxElements / 8) return;
  const std::int64_t inner = shape(x).back();
  const std::int64_t rank = 1 + below(3);
  const std::int64_t columns = 1 + below(9);
  const int w = real_leaf({inner, columns}), a = real_leaf({inner, rank}), b = real_leaf({rank, columns});
  const int bias = real_leaf({columns});
  const int form = below(4);
  Shape middle = shape(x), to = shape(x);
  middle[middle.rank() - 1] = rank;
  to[to.rank() - 1] = columns;
  const Dense update = dense::matmul(dense::matmul(value(x), value(a), middle), value(b), to);
  Dense out = dense::zip(dense::matmul(value(x), value(w), to), update, to,
                         [](double p, double u) { return p + 0.5 * u; });
  if (form >= 2) out = dense::zip(out, value(bias), to, [](double p, double v) { return p + v; });
  add_real(fmt::format("low-rank form {} %{} %{} %{} %{} %{}", form, x, w, a, b, bias), out,
           [=](const Scope& s) {
             const LazyTensor product = caldera::matmul(s[x], s[w]);
             const LazyTensor down = caldera::matmul(s[x], s[a]);
             if (form == 0) return product + 0.5 * caldera::matmul(down, s[b]);
             if (form == 1) return caldera::matmul(0.5 * down, s[b]) + product;
             if (form == 2) return product + s[bias] + caldera::matmul(down, s[b]) * 0.5;
             return s[bias] + (caldera::matmul(down, s[b]) * 0.5 + product);
           });
}

void RandomGraph::attention() {
  const std::int64_t batch = 1 + below(3), keys = 1 + below(9), head = 1 + below(9), columns = 1 + below(9);
  const std::int64_t queries = chance(50) ? keys : 1 + below(9);
  const std::int64_t groups = 1 + below(3);
  const int q = real_leaf({batch, groups, queries, head});
  const int k = real_leaf({batch, 1, keys, head}), v = real_leaf({batch, 1, keys, columns});
  const int seen = integer_leaf({batch, 1, 1, keys}, 0, 5);
  const int mask = below(4);  // none, causal, by keys, both
  const std::int64_t offset = below(3);
  const bool with_gradient = chance(40);
  const double fill = chance(50) ? -1e9 : -2;

  const Shape scores{batch, groups, queries, keys};
  const Dense turned = dense::permute(value(k), {0, 1, 3, 2});
  Dense p = dense::matmul(value(q), turned, scores);
  for_each_point(scores, [&](const Dims& at) {
    const bool hidden =
        ((mask & 1) != 0 && at[3] > at[2] + offset) || ((mask & 2) != 0 && value(seen)[at] < 2);
    p[at] = hidden ? fill : p[at] * 0.5;
  });
  p = over_rows(p, softmax_of);
  Dense out = dense::matmul(p, value(v), {batch, groups, queries, columns});
  const auto forward = [=](const Scope& s) {
    LazyTensor score = caldera::matmul(s[q], transpose(s[k])) * 0.5;
    if ((mask & 1) != 0) {
      const LazyTensor i = expand_dims(arange(queries, DType::i32, s.device) + static_cast<int>(offset), -1);
      score = caldera::where(arange(keys, DType::i32, s.device) <= i, score, fill);
    }
    if ((mask & 2) != 0) score = caldera::where(s[seen] >= 2, score, fill);
    return caldera::matmul(softmax(score), s[v]);
  };
  const std::string text =
      fmt::format("attention %{} %{} %{} mask {} offset {} fill {}", q, k, v, mask, offset, fill);
  if (!with_gradient) {
    add_real(text, out, forward);
    return;
  }
  // The gradient of the sum of out^2 / 2 by v: P^T out, summed over the groups.
  Dense dv = dense::matmul(dense::permute(p, {0, 1, 3, 2}), out, {batch, groups, keys, columns});
  dv = dense::reduce(dv, {1}, 0, [](double a, double b) { return a + b; });
  add_real("gradient by v of " + text, dv, [=](const Scope& s) {
    return grad(sum(square(forward(s))) * 0.5, {s[v], s[q], s[k]})[0];
  });
}

void RandomGraph::rotary() {
  const int x = real_node(2);
  const std::int64_t columns = shape(x).back();
  if (columns < 2 || columns % 2 != 0) return;
  const std::int64_t half = columns / 2;
  const int c = real_leaf({extent_of(x, shape(x).rank() - 2), columns});
  const bool by_halves = chance(50);
  Dense out = value(x);
  for_each_point(shape(x), [&](const Dims& at) {
    Dims other = at;
    const int last = at.rank() - 1;
    const bool first = at[last] < half;
    other[last] += first ? half : -half;
    const double angle = value(c)[at];
    out[at] = value(x)[at] * angle + (first ? -1 : 1) * value(x)[other] * (angle * 0.5);
  });
  add_real(fmt::format("rotary %{} %{}{}", x, c, by_halves ? " by halves" : ""), out, [=](const Scope& s) {
    const LazyTensor x1 = caldera::slice(s[x], -1, 0, half), x2 = caldera::slice(s[x], -1, half, {});
    const LazyTensor& cos = s[c];
    const LazyTensor sin = cos * 0.5;
    if (!by_halves) return s[x] * cos + caldera::concatenate({-x2, x1}, -1) * sin;
    const auto part = [&](const LazyTensor& t, bool first) {
      return first ? caldera::slice(t, -1, 0, half) : caldera::slice(t, -1, half, {});
    };
    return caldera::concatenate(
        {x1 * part(cos, true) - x2 * part(sin, true), x2 * part(cos, false) + x1 * part(sin, false)}, -1);
  });
}

}  // namespace caldera::testing
