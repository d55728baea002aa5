// The entries of the family `indexed_extrema`.
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;
constexpr Range kDistinct{.distinct = true};

/// Entries have results of one type.
Results of_one_type(const IndexedResult& result) {
  return {result.values, astype(result.indices, result.values.dtype())};
}

template <IndexedResult (*F)(const LazyTensor&, AxisIndex, bool)>
Results call_indexed(Tensors x, const Arguments& a) {
  return of_one_type(F(x[0], a.axis("axis", -1), a.flag("keepdims", false)));
}
template <IndexedResult (*F)(const LazyTensor&, AxisIndex)>
Results call_cumulative(Tensors x, const Arguments& a) {
  return of_one_type(F(x[0], a.axis("axis", -1)));
}

std::vector<Sample> indexed_samples(const Operation& operation) {
  std::vector<Sample> out = axis_samples(operation);
  out.push_back({{{{3, 5}, kDistinct}}, {{"axis", std::int64_t{0}}, {"keepdims", true}}});
  return out;
}
std::vector<ErrorSample> indexed_errors(const Operation& operation) {
  std::vector<ErrorSample> out = axis_errors(operation);
  out.push_back({Refusal::shape, {{{2, 0}}}, {}, "(2, 0)"});
  return out;
}
std::vector<ErrorSample> minmax_errors(const Operation& operation) {
  std::vector<ErrorSample> out = reduction_errors(operation);
  out.push_back({Refusal::shape, {{{2, 0}}}, {}, "(2, 0)"});
  return out;
}
/// Along the axis there is an element.
std::vector<Sample> minmax_samples(const Operation& operation) {
  std::vector<Sample> out;
  for (const Sample& sample : reduction_samples(operation)) {
    if (sample.operands[0].shape.numel() > 0) out.push_back(sample);
  }
  out.push_back({{{{2, 0, 3}}}, {{"axis", Integers{0}}}});
  return out;
}

constexpr EntriesOf entry{
    .family = "indexed_extrema", .types = kNumeric, .ranges = {kDistinct}, .errors = axis_errors};

}  // namespace

std::span<const Operation> indexed_extremum_operations() {
  static const Operation kTable[] = {
      entry("max_with_indices", "max_with_indices(x, axis=-1, keepdims=false)",
            "max along one axis, and argmax.", call_indexed<caldera::max_with_indices>, indexed_samples,
            indexed_errors),
      entry("min_with_indices", "min_with_indices(x, axis=-1, keepdims=false)",
            "min along one axis, and argmin.", call_indexed<caldera::min_with_indices>, indexed_samples,
            indexed_errors),
      entry("cummax_with_indices", "cummax_with_indices(x, axis=-1)",
            "cummax, and where each element of it stands: of ties the first.",
            call_cumulative<caldera::cummax_with_indices>, axis_samples),
      entry("cummin_with_indices", "cummin_with_indices(x, axis=-1)",
            "cummin, and where each element of it stands: of ties the first.",
            call_cumulative<caldera::cummin_with_indices>, axis_samples),
      entry(
          "aminmax", "aminmax(x, axis=all, keepdims=false)", "amin and amax.",
          [](Tensors x, const Arguments& a) -> Results {
            const auto [least, most] = caldera::aminmax(x[0], a.has("axis") ? Axes(a.axes("axis")) : Axes(),
                                                        a.flag("keepdims", false));
            return {least, most};
          },
          minmax_samples, minmax_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
