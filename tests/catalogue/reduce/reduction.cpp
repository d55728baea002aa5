// The entries of the family `reduction`.
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

template <LazyTensor (*F)(const LazyTensor&, const Axes&, bool)>
std::vector<LazyTensor> call_reduction(Tensors x, const Arguments& a) {
  return {F(x[0], a.has("axis") ? Axes(a.axes("axis")) : Axes(), a.flag("keepdims", false))};
}

std::vector<LazyTensor> call_sum(Tensors x, const Arguments& a) {
  if (!a.has("dtype")) return call_reduction<caldera::sum>(x, a);
  return {sum(x[0], a.has("axis") ? Axes(a.axes("axis")) : Axes(), a.dtype("dtype", x[0].dtype()),
              a.flag("keepdims", false))};
}
std::vector<Sample> sum_samples(const Operation& operation) {
  std::vector<Sample> out;
  for (const DType type : {DType::i64, DType::f64, DType::i8}) {
    out.push_back({{{{7}}}, {{"dtype", type}}});
    out.push_back({{{{2, 3}}}, {{"axis", Arguments::Integers{0}}, {"dtype", type}, {"keepdims", true}}});
  }
  const std::vector<Sample> usual = reduction_samples(operation);
  out.insert(out.end(), usual.begin(), usual.end());
  return out;
}

constexpr EntriesOf entry{.family = "reduction", .samples = reduction_samples};

/// What has no element has no largest one.
std::vector<ErrorSample> extremum_errors(const Operation& operation) {
  std::vector<ErrorSample> out = reduction_errors(operation);
  out.push_back({Refusal::shape, {{{2, 0}}}, {{"axis", Arguments::Integers{1}}}, "(2, 0)"});
  out.push_back({Refusal::shape, {{{0}}}, {}, "(0,)"});
  return out;
}

}  // namespace

std::span<const Operation> reduction_operations() {
  using R = ResultType;
  static const Operation kTable[] = {
      entry("sum", "sum(x, axis=all, dtype=int32 of narrower integers, keepdims=false)",
            "The sum of the elements. Of bool and types narrower than int32 it is int32, unless another is "
            "named.",
            kAnyType, R::summed, call_sum, reduction_errors, sum_samples),
      entry("mean", "mean(x, axis=all, keepdims=false)", "The arithmetic mean.", kAnyType, R::floating,
            call_reduction<caldera::mean>, reduction_errors),
      entry("max", "max(x, axis=all, keepdims=false)",
            "The largest element; NaN if any is. Along one axis the gradient goes to the first of ties; "
            "over several or all it is split equally among them.",
            kNumeric, R::same, Range{.distinct = true}, call_reduction<caldera::max>, extremum_errors),
      entry("min", "min(x, axis=all, keepdims=false)",
            "The smallest element; NaN if any is. Along one axis the gradient goes to the first of ties; "
            "over several or all it is split equally among them.",
            kNumeric, R::same, Range{.distinct = true}, call_reduction<caldera::min>, extremum_errors),
      entry("amax", "amax(x, axis=all, keepdims=false)",
            "As max; the gradient is split equally among ties, along one axis too.", kNumeric, R::same,
            Range{.distinct = true}, call_reduction<caldera::amax>, extremum_errors),
      entry("amin", "amin(x, axis=all, keepdims=false)",
            "As min; the gradient is split equally among ties, along one axis too.", kNumeric, R::same,
            Range{.distinct = true}, call_reduction<caldera::amin>, extremum_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
