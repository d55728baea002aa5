// The entries of the family `order_statistics`.
#include "ops/sort/order_statistics.h"

#include <limits>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Samples = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;
constexpr Range kDistinct{.distinct = true};
/// Of what has NaN below -1.
constexpr Range kAside{.low = -1.5, .high = 2, .offset = 1.0 / 128, .distinct = true};

QuantileMode mode_of(const Arguments& a) {
  const std::string name = a.text("mode", "linear");
  if (name == "lower") return QuantileMode::lower;
  if (name == "higher") return QuantileMode::higher;
  if (name == "midpoint") return QuantileMode::midpoint;
  return name == "nearest" ? QuantileMode::nearest : QuantileMode::linear;
}

/// Several quantiles are given in hundredths.
std::vector<double> several(const Arguments& a) {
  std::vector<double> out;
  for (const std::int64_t hundredths : a.integers("percent"))
    out.push_back(static_cast<double>(hundredths) / 100);
  return out;
}

/// Samples hold no NaN: what is below -1 becomes one, but for an infinity.
LazyTensor with_holes(const LazyTensor& x) {
  if (!is_floating(x.dtype())) return x;
  return where(logical_and(x < -1.0, isfinite(x)), std::numeric_limits<double>::quiet_NaN(), x);
}

template <bool OfLeft>
Results call_quantile(Tensors x, const Arguments& a) {
  const int axis = a.axis("axis", -1);
  const bool keepdims = a.flag("keepdims", false);
  if (OfLeft) {
    const LazyTensor given = with_holes(x[0]);
    if (a.has("percent")) return {caldera::nanquantile(given, several(a), axis, keepdims, mode_of(a))};
    return {caldera::nanquantile(given, a.real("q", 0.5), axis, keepdims, mode_of(a))};
  }
  if (a.has("percent")) return {caldera::quantile(x[0], several(a), axis, keepdims, mode_of(a))};
  return {caldera::quantile(x[0], a.real("q", 0.5), axis, keepdims, mode_of(a))};
}

Samples quantile_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  Samples out;
  for (const double q : {0.0, 0.25, 0.5, 0.9, 1.0}) out.push_back({{{{7}, range}}, {{"q", q}}});
  for (const std::int64_t axis : {0, 1, -1}) {
    out.push_back({{{{5, 6, 7}, range}}, {{"q", 0.3125}, {"axis", axis}, {"keepdims", axis == 1}}});
  }
  for (const char* mode : {"lower", "higher", "midpoint", "nearest"}) {
    for (const double q : {0.25, 0.375})
      out.push_back({{{{6, 7}, range}}, {{"q", q}, {"mode", std::string(mode)}}});
    out.push_back({{{{7}, range}},
                   {{"percent", Arguments::Integers{0, 25, 50, 75, 100}}, {"mode", std::string(mode)}}});
  }
  out.push_back({{{{4, 9}, range}}, {{"percent", Arguments::Integers{25, 75}}, {"keepdims", true}}});
  out.push_back(
      {{{{9, 4}, range}}, {{"percent", Arguments::Integers{50, 12, 80}}, {"axis", std::int64_t{0}}}});
  out.push_back({{{{}, Range{.low = 0}}}, {{"percent", Arguments::Integers{25, 50}}}});
  out.push_back({{{{}, Range{.low = 0}}}, {{"q", 0.25}}});
  out.push_back({{{{1}, Range{.low = 0}}}, {{"q", 0.5}}});
  out.push_back({{{{0, 3}, range}}, {{"q", 0.5}}});
  return out;
}

Errors quantile_errors(const Operation& operation) {
  Errors out = axis_errors(operation);
  out.push_back({Refusal::value, {{{3}}}, {{"q", 1.5}}, "1.5"});
  out.push_back({Refusal::value, {{{3}}}, {{"q", -0.5}}, "-0.5"});
  out.push_back({Refusal::value, {{{3}}}, {{"percent", Arguments::Integers{50, 101}}}, "1.01"});
  out.push_back({Refusal::value, {{{3}}}, {{"percent", Arguments::Integers{}}}, "q"});
  out.push_back({Refusal::shape, {{{2, 0}}}, {}, "(2, 0)"});
  return out;
}

template <LazyTensor (*F)(const LazyTensor&, AxisIndex, bool)>
Results call_median(Tensors x, const Arguments& a) {
  return {F(x[0], a.axis("axis", -1), a.flag("keepdims", false))};
}

Samples median_samples(const Operation& operation) {
  Samples out = axis_samples(operation);
  out.push_back({{{{}, kDistinct}}, {{"keepdims", true}}});
  out.push_back({{{{3, 4}, kDistinct}}, {{"keepdims", true}}});
  return out;
}

Errors median_errors(const Operation& operation) {
  Errors out = axis_errors(operation);
  out.push_back({Refusal::shape, {{{2, 0}}}, {}, "(2, 0)"});
  return out;
}

/// Entries have results of one type.
Results of_one_type(const IndexedResult& result) {
  return {result.values, astype(result.indices, result.values.dtype())};
}
template <IndexedResult (*F)(const LazyTensor&, AxisIndex, bool)>
Results call_indexed_statistic(Tensors x, const Arguments& a) {
  return of_one_type(F(x[0], a.axis("axis", -1), a.flag("keepdims", false)));
}

Samples kth_samples(const Operation&) {
  Samples out;
  for (const std::int64_t k : {1, 3, 7}) out.push_back({{{{7}, kDistinct}}, {{"k", k}}});
  for (const std::int64_t axis : {0, 1, -1})
    out.push_back(
        {{{{4, 5, 6}, kDistinct}}, {{"k", std::int64_t{3}}, {"axis", axis}, {"keepdims", axis == 1}}});
  out.push_back({{{{}, kDistinct}}, {{"k", std::int64_t{1}}}});
  out.push_back({{{{0, 3}, kDistinct}}, {{"k", std::int64_t{2}}}});
  return out;
}
Errors kth_errors(const Operation&) {
  const auto k = [](std::int64_t n, std::int64_t axis) { return Arguments{{"k", n}, {"axis", axis}}; };
  return {{Refusal::value, {{{2, 3}}}, k(4, 1), "(2, 3)"},
          {Refusal::value, {{{2, 3}}}, k(0, 1), "0"},
          {Refusal::shape, {{{2, 3}}}, k(1, 2), "(2, 3)"},
          {Refusal::shape, {{{2, 0}}}, k(1, 1), "(2, 0)"},
          {Refusal::shape, {{{}}}, k(1, 1), "()"}};
}

constexpr EntriesOf entry{.family = "order_statistics", .types = kFloating, .ranges = {kDistinct}};

}  // namespace

std::span<const Operation> order_statistic_operations() {
  static const Operation kTable[] = {
      entry("quantile", "quantile(x, q or {q...}, axis=-1, keepdims=false, mode=linear)",
            "The quantile q, or several along a new axis in front; linear between the two nearest elements, "
            "which have its gradient, or by lower, higher, midpoint, nearest. NaN if any element is.",
            call_quantile<false>, quantile_samples, quantile_errors),
      entry("nanquantile", "nanquantile(x, q or {q...}, axis=-1, keepdims=false, mode=linear)",
            "quantile of what is not NaN; NaN where nothing is left.", kAside, call_quantile<true>,
            quantile_samples, quantile_errors),
      entry("median", "median(x, axis=-1, keepdims=false)",
            "The element in the middle, or the mean of the two there; NaN if any element is.",
            call_median<caldera::median>, median_samples, median_errors),
      entry(
          "nanmedian", "nanmedian(x, axis=-1, keepdims=false)",
          "median of what is not NaN; NaN where nothing is left.",
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::nanmedian(with_holes(x[0]), a.axis("axis", -1), a.flag("keepdims", false))};
          },
          [](const Operation& operation) -> Samples {
            const Range range = operation.ranges[0];
            return {{{{{7}, range}}},
                    {{{{6, 8}, range}}, {{"axis", std::int64_t{0}}}},
                    {{{{5, 9}, range}}, {{"keepdims", true}}},
                    {{{{0, 3}, range}}}};
          },
          kAside, median_errors),
      entry("median_with_indices", "median_with_indices(x, axis=-1, keepdims=false)",
            "The lower of the two elements in the middle, and its position; of equal elements the first. The "
            "first NaN if there is one.",
            kNumeric, call_indexed_statistic<caldera::median_with_indices>, median_samples, median_errors),
      entry(
          "kthvalue", "kthvalue(x, k, axis=-1, keepdims=false)",
          "The k-th smallest element, counted from 1, and its position; of equal elements the first counts "
          "first, and NaN is the largest.",
          kNumeric,
          [](Tensors x, const Arguments& a) -> Results {
            return of_one_type(
                caldera::kthvalue(x[0], a.integer("k", 1), a.axis("axis", -1), a.flag("keepdims", false)));
          },
          kth_samples, kth_errors),
      entry("mode", "mode(x, axis=-1, keepdims=false)",
            "The most frequent element, the smallest of several, and where it first stands.", kAnyType,
            Gradient::full, call_indexed_statistic<caldera::mode>, median_samples, median_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
