// The entries of the family `cumulative`.
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

template <LazyTensor (*F)(const LazyTensor&, AxisIndex)>
Results call_scan(Tensors x, const Arguments& a) {
  return {F(x[0], a.axis("axis", -1))};
}

std::vector<Sample> scan_samples(const Operation& operation) {
  std::vector<Sample> out = axis_samples(operation);
  if (!operation.ranges[0].distinct) out.push_back({{{.shape = {6}, .values = {1, 0, 1, 1, 0, 1}}}});
  out.push_back({{{{3, 0}, operation.ranges[0]}}});
  out.push_back({{{{2, 65}, operation.ranges[0]}}});
  return out;
}

Results call_cumulative_sum(Tensors x, const Arguments& a) {
  std::optional<int> axis;
  if (a.has("axis")) axis = a.axis("axis", 0);
  std::optional<DType> dtype;
  if (a.has("dtype")) dtype = a.dtype("dtype", x[0].dtype());
  return {cumulative_sum(x[0], axis, dtype, a.flag("include_initial", false))};
}

std::vector<Sample> cumulative_sum_samples(const Operation&) {
  const std::int64_t axis = 1;
  return {{{{{7}}}},
          {{{{3, 7}}}, {{"axis", axis}}},
          {{{{7}}}, {{"include_initial", true}}},
          {{{{0}}}, {{"include_initial", true}}},
          {{{{7}}}, {{"dtype", DType::i64}}},
          {{{{2, 3}}}, {{"axis", axis}, {"dtype", DType::f64}, {"include_initial", true}}},
          {{{{2, 3, 4}}}, {{"axis", std::int64_t{-2}}, {"include_initial", true}}}};
}

std::vector<ErrorSample> cumulative_sum_errors(const Operation& operation) {
  std::vector<ErrorSample> out = axis_errors(operation);
  out.push_back({Refusal::shape, {{{2, 3}}}, {}, "2 axes"});
  out.push_back({Refusal::shape, {{{}}}, {}, "0 axes"});
  return out;
}

constexpr EntriesOf entry{.family = "cumulative", .samples = scan_samples, .errors = axis_errors};

}  // namespace

std::span<const Operation> cumulative_operations() {
  using R = ResultType;
  const Range distinct{.distinct = true};
  static const Operation kTable[] = {
      entry("cumsum", "cumsum(x, axis=-1)",
            "The sums of the elements up to each. Of bool and types narrower than int32 they are int32.",
            kAnyType, R::summed, call_scan<caldera::cumsum>),
      {.name = "cumulative_sum",
       .family = "cumulative",
       .signature = "cumulative_sum(x, axis, dtype=that of cumsum, include_initial=false)",
       .summary = "cumsum as the Array API has it: with include_initial a 0 stands in front.",
       .types = kAnyType,
       .result = R::summed,
       .call = call_cumulative_sum,
       .samples = cumulative_sum_samples,
       .errors = cumulative_sum_errors},
      entry("cumprod", "cumprod(x, axis=-1)",
            "The products of the elements up to each. Of bool and types narrower than int32 they are int32.",
            kAnyType, R::summed, Range{.low = -0.5, .high = 0.5}, call_scan<caldera::cumprod>),
      entry("cummax", "cummax(x, axis=-1)",
            "The largest element up to each; NaN from the first NaN on. Of ties the first has the gradient.",
            kNumeric, R::same, distinct, call_scan<caldera::cummax>),
      entry("cummin", "cummin(x, axis=-1)",
            "The smallest element up to each; NaN from the first NaN on. Of ties the first has the gradient.",
            kNumeric, R::same, distinct, call_scan<caldera::cummin>),
      entry("logcumsumexp", "logcumsumexp(x, axis=-1)", "log(cumsum(exp(x))) without overflow.", kFloating,
            R::same, call_scan<caldera::logcumsumexp>),
      {.name = "logaddexp",
       .family = "cumulative",
       .signature = "logaddexp(a, b)",
       .summary = "log(exp(a) + exp(b)) without overflow.",
       .types = kFloating,
       .call = call_binary<caldera::logaddexp>,
       .samples = binary_samples,
       .errors = binary_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
