#include "ops/sorting.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ops/build.h"
#include "ops/sorting_network.h"
#include "ops/table/families.h"
#include "ops/table/samples.h"

namespace caldera {
namespace {

/// A tensor as rows (rows, n) along one of its axes.
class Rows {
 public:
  Rows(const LazyTensor& x, int axis, const char* op) : at_(x.shape().normalize_axis(axis, op)) {
    constexpr std::int64_t kLongest = std::int64_t{1} << 28;
    if (x.shape(at_) > kLongest || x.numel() > std::numeric_limits<std::int32_t>::max()) {
      throw ShapeError(fmt::format("{}: {} has more elements than int32 can order; an axis has at most 2^28",
                                   op, x.shape().to_string()));
    }
    const LazyTensor moved = swapaxes(x, at_, -1);
    shape_ = moved.shape();
    length_ = shape_[-1 + shape_.rank()];
    flat_ = length_ == 0 ? reshape(moved, Shape{0, 0}) : reshape(moved, Shape{x.numel() / length_, length_});
  }

  const LazyTensor& flat() const { return flat_; }
  std::int64_t length() const { return length_; }
  bool empty() const { return flat_.numel() == 0; }

  /// The elements at `positions` (rows, count). A gather, so that gradients are scattered back.
  LazyTensor at(const LazyTensor& positions) const {
    const LazyTensor first = iota(Shape{flat_.shape(0), 1}, 0, DType::i32, flat_.device()) * length_;
    return take(reshape(flat_, Shape{flat_.numel()}), positions + first, 0);
  }

  /// What belongs to the rows, (rows, count), in the place of the axis.
  LazyTensor restored(const LazyTensor& y) const {
    Shape shape = shape_;
    shape[shape.rank() - 1] = y.shape(1);
    return swapaxes(reshape(y, shape), at_, -1);
  }

 private:
  int at_;
  Shape shape_;  // with the axis last
  std::int64_t length_;
  LazyTensor flat_;
};

/// Where the first elements in order are, as `restored`. Not of empty rows.
LazyTensor positions_of(const Rows& rows, bool descending, std::int64_t count) {
  return ops::order_of_rows(rows.flat(), descending, count);
}

LazyTensor no_positions(const Shape& shape, Device device) {
  return LazyTensor::zeros(shape, DType::i32, device);
}

/// a < b where NaN is the largest.
LazyTensor is_less(const LazyTensor& a, const LazyTensor& b) {
  if (!is_floating(a.dtype())) return a < b;
  return logical_or(a < b, logical_and(isnan(b), logical_not(isnan(a))));
}

/// Sequences up to this long are searched by counting.
constexpr std::int64_t kCounted = 64;

/// For every value (rows, m) how many of the first elements of its sequence (rows or 1, n) precede it.
template <class Precedes>
LazyTensor preceding(const LazyTensor& sorted, const LazyTensor& values, Precedes precedes) {
  const std::int64_t n = sorted.shape(1);
  if (n <= kCounted) {
    return sum(astype(precedes(expand_dims(sorted, 1), expand_dims(values, 2)), DType::i32), -1);
  }
  const LazyTensor all = reshape(sorted, Shape{sorted.numel()});
  LazyTensor found = LazyTensor::zeros(values.shape(), DType::i32, values.device());
  const LazyTensor first = iota(Shape{sorted.shape(0), 1}, 0, DType::i32, values.device()) * n;
  for (auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n))); step > 0;
       step /= 2) {
    const LazyTensor next = found + step;
    const LazyTensor probe = take(all, minimum(next - 1, n - 1) + first, 0);
    found = where(logical_and(next <= n, precedes(probe, values)), next, found);
  }
  return found;
}

/// (rows, last axis).
LazyTensor as_rows(const LazyTensor& x, std::int64_t rows) {
  return reshape(x, Shape{rows, x.numel() / rows});
}

}  // namespace

LazyTensor sort(const LazyTensor& x, int axis, bool descending) {
  const Rows rows(x, axis, "sort");
  if (rows.empty()) return x;
  return rows.restored(rows.at(positions_of(rows, descending, rows.length())));
}

LazyTensor argsort(const LazyTensor& x, int axis, bool descending) {
  const Rows rows(x, axis, "argsort");
  if (rows.empty()) return no_positions(x.shape(), x.device());
  return rows.restored(positions_of(rows, descending, rows.length()));
}

TopK topk(const LazyTensor& x, std::int64_t k, int axis, bool largest) {
  ops::check_domain("topk", ScalarDomain::numeric, x.dtype());
  const Rows rows(x, axis, "topk");
  if (k < 0 || k > rows.length()) {
    throw ValueError(
        fmt::format("topk: k = {} of the {} elements along axis {} of {}; it must be from 0 to {}", k,
                    rows.length(), axis, x.shape().to_string(), rows.length()));
  }
  if (rows.empty() || k == 0) {
    const LazyTensor values = slice(x, axis, 0, k);
    return {values, no_positions(values.shape(), x.device())};
  }
  const LazyTensor positions = positions_of(rows, largest, k);
  return {rows.restored(rows.at(positions)), rows.restored(positions)};
}

LazyTensor searchsorted(const LazyTensor& sorted, const LazyTensor& values, bool right) {
  const DType type = promote(sorted.dtype(), ops::dtype_beside(values, sorted));
  ops::check_domain("searchsorted", ScalarDomain::numeric, type);
  const bool shared = sorted.rank() == 1;
  bool fits = shared || (sorted.rank() > 1 && sorted.rank() == values.rank());
  for (int i = 0; fits && !shared && i + 1 < values.rank(); ++i) fits = sorted.shape(i) == values.shape(i);
  if (!fits) {
    throw ShapeError(fmt::format(
        "searchsorted: a sequence of {} for values of {}; it must have one axis, or the axes of the "
        "values with the same extents but for the last",
        sorted.shape().to_string(), values.shape().to_string()));
  }
  if (values.numel() == 0 || sorted.numel() == 0) return no_positions(values.shape(), sorted.device());
  // A number may lie beyond the type of the sequence.
  const DType wide = ops::holds(type, values) ? compute_type(type) : DType::i64;
  const std::int64_t n = sorted.shape(-1);
  const std::int64_t rows = shared ? 1 : sorted.numel() / n;
  const LazyTensor sequence = stop_gradient(as_rows(ops::as_operand(sorted, wide), rows));
  const LazyTensor wanted =
      stop_gradient(as_rows(ops::anchored(ops::as_operand(values, wide), sorted.device()), rows));
  const LazyTensor found =
      right ? preceding(sequence, wanted,
                        [](const LazyTensor& s, const LazyTensor& v) { return logical_not(is_less(v, s)); })
            : preceding(sequence, wanted, is_less);
  return reshape(found, values.shape());
}

namespace {

LazyTensor quantile_of(const char* op, const LazyTensor& x, double q, int axis, bool keepdims) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  if (!(q >= 0 && q <= 1)) throw ValueError(fmt::format("{}: q = {} is not between 0 and 1", op, q));
  const Rows rows(x, axis, op);
  if (rows.length() == 0)
    throw ShapeError(fmt::format("{}: {} has no element along axis {}", op, x.shape().to_string(), axis));
  LazyTensor out;
  if (rows.empty()) {
    out = slice(x, axis, 0, 1);
  } else {
    const double where_to = q * static_cast<double>(rows.length() - 1);
    const auto below = static_cast<std::int64_t>(std::floor(where_to));
    const std::int64_t above = std::min(below + 1, rows.length() - 1);
    const LazyTensor order = positions_of(rows, false, above + 1);
    const DType wide = compute_type(x.dtype());
    const LazyTensor lower = astype(rows.at(slice(order, 1, below, below + 1)), wide);
    const LazyTensor upper = astype(rows.at(slice(order, 1, above, above + 1)), wide);
    const double share = where_to - static_cast<double>(below);
    // Equal infinities have no difference; an exact position needs no neighbour.
    LazyTensor value = share == 0 ? lower : lower * (1 - share) + upper * share;
    const LazyTensor missing = greater(sum(astype(isnan(rows.flat()), DType::i32), 1, true), 0);
    value = where(missing, std::numeric_limits<double>::quiet_NaN(), value);
    out = rows.restored(astype(value, x.dtype()));
  }
  return keepdims ? out : squeeze(out, axis);
}

}  // namespace

LazyTensor quantile(const LazyTensor& x, double q, int axis, bool keepdims) {
  return quantile_of("quantile", x, q, axis, keepdims);
}
LazyTensor median(const LazyTensor& x, int axis, bool keepdims) {
  return quantile_of("median", x, 0.5, axis, keepdims);
}

namespace ops {
namespace {

using Results = std::vector<LazyTensor>;
using Samples = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;
constexpr Range kDistinct{.distinct = true};

bool descending(const Arguments& a) { return a.flag("descending", false); }

Samples sort_samples(const Operation& operation) {
  Samples out = axis_samples(operation);
  out.push_back({{{{9}, kDistinct}}, {{"descending", true}}});
  out.push_back({{{{3, 5}, kDistinct}}, {{"axis", std::int64_t{0}}, {"descending", true}}});
  out.push_back({{{{3, 0}, kDistinct}}});
  out.push_back({{{{0, 3}, kDistinct}}});
  return out;
}

/// Longer than what is counted: through the network.
Samples argsort_samples(const Operation& operation) {
  Samples out = sort_samples(operation);
  out.push_back({{{{2, 65}, kDistinct}}});
  out.push_back({{{.shape = {7}, .values = {1, 0, 1, 1, 0, 0, 1}}}});
  out.push_back({{{.shape = {7}, .values = {1, 0, 1, 1, 0, 0, 1}}}, {{"descending", true}}});
  return out;
}

Samples topk_samples(const Operation&) {
  Samples out;
  const auto add = [&](const Shape& shape, std::int64_t k, std::int64_t axis, bool largest) {
    out.push_back({{{shape, kDistinct}}, {{"k", k}, {"axis", axis}, {"largest", largest}}});
  };
  for (const bool largest : {true, false}) {
    add({1}, 1, -1, largest);
    add({7}, 3, -1, largest);
    add({33}, 33, 0, largest);
    add({5, 4}, 2, 0, largest);
    add({2, 3, 4}, 1, 1, largest);
  }
  add({80}, 2, 0, true);
  add({7}, 0, 0, true);
  add({0, 3}, 2, 1, true);
  return out;
}

Errors topk_errors(const Operation&) {
  const auto k = [](std::int64_t n, std::int64_t axis) { return Arguments{{"k", n}, {"axis", axis}}; };
  return {{Refusal::value, {{{2, 3}}}, k(4, 1), "(2, 3)"},
          {Refusal::value, {{{2, 3}}}, k(-1, 1), "-1"},
          {Refusal::shape, {{{2, 3}}}, k(1, 2), "(2, 3)"},
          {Refusal::shape, {{{}}}, k(1, 0), "()"}};
}

Samples search_samples(const Operation&) {
  const Operand sorted{.shape = {7}, .values = {0, 1, 1, 2, 3, 3, 4}};
  const Operand rows{.shape = {2, 3}, .values = {0, 1, 3, 1, 2, 2}};
  Samples out;
  for (const bool right : {false, true}) {
    const Arguments side{{"right", right}};
    out.push_back({{sorted, {.shape = {5}, .values = {0, 1, 2, 4, 5}}}, side});
    out.push_back({{sorted, {.shape = {2, 2}, .values = {3, 0, 1, 1}}}, side});
    out.push_back({{sorted, {.shape = {}, .values = {3}}}, side});
    out.push_back({{rows, {.shape = {2, 4}, .values = {0, 1, 3, 4, 0, 1, 2, 3}}}, side});
    out.push_back({{{.shape = {0}}, {{3}}}, side});
    out.push_back({{sorted, {{0}}}, side});
  }
  return out;
}

Errors search_errors(const Operation&) {
  return {{Refusal::shape, {{{}}, {{3}}}, {}, "()"},
          {Refusal::shape, {{{2, 3}}, {{3, 3}}}, {}, "(3, 3)"},
          {Refusal::shape, {{{2, 3}}, {{3}}}, {}, "(2, 3)"}};
}

Samples quantile_samples(const Operation&) {
  Samples out;
  for (const double q : {0.0, 0.25, 0.5, 0.9, 1.0}) out.push_back({{{{7}, kDistinct}}, {{"q", q}}});
  for (const std::int64_t axis : {0, 1, -1}) {
    out.push_back({{{{2, 3, 4}, kDistinct}}, {{"q", 0.3}, {"axis", axis}, {"keepdims", axis == 1}}});
  }
  out.push_back({{{{1}, kDistinct}}, {{"q", 0.5}}});
  out.push_back({{{{0, 3}, kDistinct}}, {{"q", 0.5}}});
  return out;
}

Samples median_samples(const Operation& operation) {
  Samples out = axis_samples(operation);
  out.push_back({{{{3, 4}, kDistinct}}, {{"keepdims", true}}});
  return out;
}

Errors quantile_errors(const Operation& operation) {
  Errors out = axis_errors(operation);
  out.push_back({Refusal::value, {{{3}}}, {{"q", 1.5}}, "1.5"});
  out.push_back({Refusal::value, {{{3}}}, {{"q", -0.5}}, "-0.5"});
  out.push_back({Refusal::shape, {{{2, 0}}}, {}, "(2, 0)"});
  return out;
}

Errors median_errors(const Operation& operation) {
  Errors out = axis_errors(operation);
  out.push_back({Refusal::shape, {{{2, 0}}}, {}, "(2, 0)"});
  return out;
}

constexpr Operation entry(std::string_view name, std::string_view signature, std::string_view summary,
                          Types types, ResultType result, Gradient gradient,
                          Results (*call)(Tensors, const Arguments&), Samples (*samples)(const Operation&),
                          Errors (*errors)(const Operation&)) {
  return {.name = name,
          .family = "sorting",
          .signature = signature,
          .summary = summary,
          .types = types,
          .result = result,
          .gradient = gradient,
          .call = call,
          .ranges = {kDistinct},
          .samples = samples,
          .errors = errors};
}

}  // namespace

std::span<const Operation> sorting_operations() {
  using R = ResultType;
  using G = Gradient;
  static const Operation kTable[] = {
      entry(
          "sort", "sort(x, axis=-1, descending=false)",
          "The elements in order, NaN last (first if descending). The gradient goes to where each came from.",
          kAnyType, R::same, G::full,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::sort(x[0], a.axis("axis", -1), descending(a))};
          },
          sort_samples, axis_errors),
      entry(
          "argsort", "argsort(x, axis=-1, descending=false)",
          "The positions of the elements in order, NaN last (first if descending). Equal elements keep their "
          "order.",
          kAnyType, R::index, G::none,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::argsort(x[0], a.axis("axis", -1), descending(a))};
          },
          argsort_samples, axis_errors),
      entry(
          "topk", "topk(x, k, axis=-1, largest=true)",
          "The k largest (or smallest) elements, best first, and their positions; of equal ones the first. "
          "NaN is "
          "the largest.",
          kNumeric, R::same, G::full,
          [](Tensors x, const Arguments& a) -> Results {
            const auto [values, indices] =
                caldera::topk(x[0], a.integer("k", 1), a.axis("axis", -1), a.flag("largest", true));
            return {values, astype(indices, x[0].dtype())};  // entries have results of one type
          },
          topk_samples, topk_errors),
      entry(
          "searchsorted", "searchsorted(sorted, values, right=false)",
          "How many elements of a sorted sequence are less (with right: not greater) than each value. NaN is "
          "the "
          "largest.",
          kNumeric, R::index, G::none,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::searchsorted(x[0], x[1], a.flag("right", false))};
          },
          search_samples, search_errors),
      entry(
          "quantile", "quantile(x, q, axis=-1, keepdims=false)",
          "The quantile q, linear between the two nearest elements, which have its gradient; NaN if any "
          "element is.",
          kFloating, R::same, G::full,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::quantile(x[0], a.real("q", 0.5), a.axis("axis", -1), a.flag("keepdims", false))};
          },
          quantile_samples, quantile_errors),
      entry(
          "median", "median(x, axis=-1, keepdims=false)",
          "The element in the middle, or the mean of the two there; NaN if any element is.", kFloating,
          R::same, G::full,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::median(x[0], a.axis("axis", -1), a.flag("keepdims", false))};
          },
          median_samples, median_errors),
  };
  return kTable;
}

}  // namespace ops
}  // namespace caldera
