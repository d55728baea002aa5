// The entries of the family `nan_reductions`.
#include <limits>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;

/// Samples hold no NaN: what is below -1 becomes one, but for an infinity.
LazyTensor with_missing(const LazyTensor& x) {
  if (!is_floating(x.dtype())) return x;
  return where(logical_and(x < -1.0, isfinite(x)), std::numeric_limits<double>::quiet_NaN(), x);
}
Axes axes_of(const Arguments& a) { return a.has("axis") ? Axes(a.axes("axis")) : Axes(); }
bool keepdims_of(const Arguments& a) { return a.flag("keepdims", false); }

template <LazyTensor (*F)(const LazyTensor&, const Axes&, bool)>
Results call_left(Tensors x, const Arguments& a) {
  return {F(with_missing(x[0]), axes_of(a), keepdims_of(a))};
}
template <LazyTensor (*F)(const LazyTensor&, const Axes&, double, bool)>
Results call_corrected_left(Tensors x, const Arguments& a) {
  return {F(with_missing(x[0]), axes_of(a), a.real("correction", 0), keepdims_of(a))};
}

std::vector<Sample> corrected_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  std::vector<Sample> out;
  for (const double correction : {0.0, 1.0}) {
    out.push_back({{{{9}, range}}, {{"correction", correction}}});
    for (const Integers& axes : {Integers{0}, Integers{-1}, Integers{0, 2}})
      out.push_back({{{{5, 6, 7}, range}}, {{"axis", axes}, {"correction", correction}, {"keepdims", true}}});
    out.push_back({{{{0, 3}, range}}, {{"axis", Integers{1}}, {"correction", correction}}});
  }
  return out;
}

/// Rows so long that some element is left in each.
std::vector<Sample> extremum_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{7}, Shape{33}, Shape{5, 6}}) out.push_back({{{shape, range}}});
  for (const bool keepdims : {false, true}) {
    for (const Integers& axes : {Integers{0}, Integers{-1}, Integers{0, 2}})
      out.push_back({{{{4, 5, 6}, range}}, {{"axis", axes}, {"keepdims", keepdims}}});
  }
  out.push_back({{{{2, 0, 3}, range}}, {{"axis", Integers{0}}}});
  return out;
}
std::vector<ErrorSample> extremum_errors(const Operation& operation) {
  std::vector<ErrorSample> out = reduction_errors(operation);
  out.push_back({Refusal::shape, {{{2, 0}}}, {{"axis", Integers{1}}}, "(2, 0)"});
  return out;
}

constexpr Range kAside{.low = -1.5, .high = 2, .offset = 1.0 / 128, .distinct = true};
constexpr EntriesOf entry{.family = "nan_reductions", .ranges = {kAside}, .errors = reduction_errors};

}  // namespace

std::span<const Operation> nan_reduction_operations() {
  using R = ResultType;
  static const Operation kTable[] = {
      entry("nansum", "nansum(x, axis=all, keepdims=false)",
            "sum of what is not NaN; 0 where nothing is left.", kAnyType, R::summed,
            call_left<caldera::nansum>, reduction_samples),
      entry("nanprod", "nanprod(x, axis=all, keepdims=false)",
            "prod of what is not NaN; 1 where nothing is left.", kAnyType, R::summed,
            Range{.low = -1.5, .high = 0.5, .offset = 1.0 / 128}, call_left<caldera::nanprod>,
            reduction_samples),
      entry("nanmean", "nanmean(x, axis=all, keepdims=false)",
            "mean of what is not NaN; NaN where nothing is left.", kAnyType, R::floating,
            call_left<caldera::nanmean>, extremum_samples),
      entry("nanvar", "nanvar(x, axis=all, correction=0, keepdims=false)",
            "var of what is not NaN; NaN where no more than `correction` elements are left.", kFloating,
            R::same, call_corrected_left<caldera::nanvar>, corrected_samples),
      entry("nanstd", "nanstd(x, axis=all, correction=0, keepdims=false)", "sqrt(nanvar).", kFloating,
            R::same, call_corrected_left<caldera::nanstd>, corrected_samples),
      entry("nanmax", "nanmax(x, axis=all, keepdims=false)",
            "max of what is not NaN, with its gradient; NaN where nothing is left.", kNumeric, R::same,
            call_left<caldera::nanmax>, extremum_samples, extremum_errors),
      entry("nanmin", "nanmin(x, axis=all, keepdims=false)",
            "min of what is not NaN, with its gradient; NaN where nothing is left.", kNumeric, R::same,
            call_left<caldera::nanmin>, extremum_samples, extremum_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
