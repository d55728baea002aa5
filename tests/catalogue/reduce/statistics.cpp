// The entries of the family `statistics`.
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

Axes axes_of(const Arguments& a) { return a.has("axis") ? Axes(a.axes("axis")) : Axes(); }
bool keepdims_of(const Arguments& a) { return a.flag("keepdims", false); }

template <LazyTensor (*F)(const LazyTensor&, const Axes&, bool)>
Results call_reduction(Tensors x, const Arguments& a) {
  return {F(x[0], axes_of(a), keepdims_of(a))};
}
template <LazyTensor (*F)(const LazyTensor&, const Axes&, double, bool)>
Results call_corrected(Tensors x, const Arguments& a) {
  return {F(x[0], axes_of(a), a.real("correction", 0), keepdims_of(a))};
}
template <LazyTensor (*F)(const LazyTensor&, std::optional<AxisIndex>, bool)>
Results call_search(Tensors x, const Arguments& a) {
  return {F(x[0], a.has("axis") ? std::optional<int>(a.axis("axis", 0)) : std::nullopt, keepdims_of(a))};
}

Results call_prod(Tensors x, const Arguments& a) {
  if (!a.has("dtype")) return call_reduction<caldera::prod>(x, a);
  return {prod(x[0], axes_of(a), a.dtype("dtype", x[0].dtype()), keepdims_of(a))};
}

std::vector<Sample> with_zeros(const Operation& operation) {
  std::vector<Sample> out = reduction_samples(operation);
  out.push_back({{{.shape = {5}, .values = {1, 0, 1, 1, 1}}}});
  out.push_back({{{.shape = {2, 3}, .values = {0, 1, 0, 0, 0, 0}}}, {{"axis", Arguments::Integers{1}}}});
  out.push_back({{{.shape = {0}}}});
  return out;
}

std::vector<Sample> prod_samples(const Operation& operation) {
  std::vector<Sample> out;
  for (const DType type : {DType::i64, DType::f64}) {
    out.push_back({{{{7}, operation.ranges[0]}}, {{"dtype", type}}});
    out.push_back({{{{2, 3}, operation.ranges[0]}},
                   {{"axis", Arguments::Integers{0}}, {"dtype", type}, {"keepdims", true}}});
  }
  const std::vector<Sample> usual = with_zeros(operation);
  out.insert(out.end(), usual.begin(), usual.end());
  return out;
}

std::vector<Sample> corrected_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  std::vector<Sample> out;
  for (const double correction : {0.0, 1.0, 0.5}) {
    out.push_back({{{{7}, range}}, {{"correction", correction}}});
    for (const auto& axes : {Arguments::Integers{0}, Arguments::Integers{-1}, Arguments::Integers{0, 2}}) {
      out.push_back({{{{2, 3, 4}, range}}, {{"axis", axes}, {"correction", correction}, {"keepdims", true}}});
    }
    out.push_back({{{{0, 3}, range}}, {{"axis", Arguments::Integers{1}}, {"correction", correction}}});
  }
  return out;
}

std::vector<Sample> search_samples(const Operation& operation) {
  std::vector<Sample> out = axis_samples(operation);
  for (Sample& sample : out) {  // without an axis there has to be an element
    if (sample.operands[0].shape.numel() == 0) sample.arguments = {{"axis", std::int64_t{1}}};
  }
  out.push_back({{{.shape = {6}, .values = {1, 3, 3, 0, 3, 0}}}});
  out.push_back({{{{2, 3}, operation.ranges[0]}}, {{"keepdims", true}}});
  out.push_back({{{{2, 3}, operation.ranges[0]}}, {{"axis", std::int64_t{1}}, {"keepdims", true}}});
  return out;
}

std::vector<ErrorSample> search_errors(const Operation& operation) {
  std::vector<ErrorSample> out = axis_errors(operation);
  out.push_back({Refusal::shape, {{{0}}}, {}, "(0,)"});
  out.push_back({Refusal::shape, {{{2, 0}}}, {{"axis", std::int64_t{1}}}, "(2, 0)"});
  return out;
}

constexpr EntriesOf entry{.family = "statistics"};

}  // namespace

std::span<const Operation> statistics_operations() {
  using R = ResultType;
  using G = Gradient;
  static const Operation kTable[] = {
      entry("prod", "prod(x, axis=all, dtype=int32 of narrower integers, keepdims=false)",
            "The product of the elements; 1 for none. Of bool and types narrower than int32 it is int32, "
            "unless another is named.",
            kAnyType, R::summed, G::full, Range{.low = -0.5, .high = 0.5}, call_prod, prod_samples,
            reduction_errors),
      entry("var", "var(x, axis=all, correction=0, keepdims=false)",
            "The variance, sum((x - mean)^2) / (n - correction).", kFloating, R::same, G::full,
            call_corrected<caldera::var>, corrected_samples, reduction_errors),
      entry("std", "std(x, axis=all, correction=0, keepdims=false)", "The standard deviation, sqrt(var).",
            kFloating, R::same, G::full, call_corrected<caldera::std>, corrected_samples, reduction_errors),
      entry("any", "any(x, axis=all, keepdims=false)", "Whether any element is not 0; false for none.",
            kAnyType, R::boolean, G::none, call_reduction<caldera::any>, with_zeros, reduction_errors),
      entry("all", "all(x, axis=all, keepdims=false)", "Whether no element is 0; true for none.", kAnyType,
            R::boolean, G::none, call_reduction<caldera::all>, with_zeros, reduction_errors),
      entry("count_nonzero", "count_nonzero(x, axis=all, keepdims=false)", "How many elements are not 0.",
            kAnyType, R::index, G::none, call_reduction<caldera::count_nonzero>, with_zeros,
            reduction_errors),
      entry("argmax", "argmax(x, axis=all, keepdims=false)",
            "The index of the first largest element, in row-major order; of the first NaN if there is one.",
            kNumeric, R::index, G::none, call_search<caldera::argmax>, search_samples, search_errors),
      entry("argmin", "argmin(x, axis=all, keepdims=false)",
            "The index of the first smallest element, in row-major order; of the first NaN if there is one.",
            kNumeric, R::index, G::none, call_search<caldera::argmin>, search_samples, search_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
