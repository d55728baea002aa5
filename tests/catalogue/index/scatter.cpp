// The entries of the family `scatter`.
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;

Operand indices(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::i32, .values = std::move(values)};
}
Operand mask(const Shape& shape) { return {.shape = shape, .dtype = DType::boolean}; }
Arguments along(std::int64_t axis) { return {{"axis", axis}}; }

template <LazyTensor (*F)(const LazyTensor&, const LazyTensor&, const LazyTensor&, AxisIndex)>
Results call_scatter(Tensors x, const Arguments& a) {
  return {F(x[0], x[1], x[2], a.axis("axis", 0))};
}

/// Some indices repeat, some lie outside, most places have none.
std::vector<Sample> scatter_samples(const Operation& operation) {
  const Range base = operation.ranges[0], updates = operation.ranges[1];
  return {{{{{5}, base}, indices({3}, {4, 0, 4}), {{3}, updates}}},
          {{{{5}, base}, indices({}, {2}), {{}, updates}}},
          {{{{7}, base}, indices({4}, {-1, 2, 7, 2}), {{4}, updates}}},
          {{{{4, 3}, base}, indices({2, 2}, {3, 1, 0, 3}), {{2, 2, 3}, updates}}},
          {{{{4, 3}, base}, indices({4}, {2, 0, 1, 2}), {{4, 4}, updates}}, along(1)},
          {{{{2, 5, 3}, base}, indices({2}, {4, 4}), {{2, 2, 3}, updates}}, along(-2)},
          {{{{2, 5, 3}, base}, indices({1, 2}, {-4, 5}), {{2, 1, 2, 3}, updates}}, along(1)},
          {{{{2, 5}, base}, indices({0}, {}), {{2, 0}, updates}}, along(1)},
          {{{{0, 3}, base}, indices({2}, {0, 2}), {{0, 2}, updates}}, along(1)}};
}

std::vector<ErrorSample> scatter_errors(const Operation&) {
  return {{Refusal::shape, {{{3, 2}}, indices({4}, {0, 0, 0, 0}), {{4, 3}}}, {}, "(4, 3)"},
          {Refusal::shape, {{{3}}, indices({1}, {0}), {{1}}}, along(1), "(3,)"},
          {Refusal::shape, {{{}}, indices({1}, {0}), {{1}}}, {}, "()"},
          {Refusal::dtype, {{{3}}, indices({2}, {0, 1}), {.shape = {2}, .dtype = DType::f64}}, {}, "float64"},
          {Refusal::dtype, {{{3}}, {{2}}, {{2}}}, {}, "float32"}};
}

std::vector<Sample> take_along_samples(const Operation&) {
  return {{{{{5}}, indices({3}, {4, 0, 4})}},
          {{{{1}}, indices({1}, {0})}},
          {{{{2, 3}}, indices({2, 3}, {2, 0, 1, 0, 0, 2})}},
          {{{{3, 2}}, indices({2, 2}, {2, 0, 1, 1})}, along(0)},
          {{{{2, 4, 3}}, indices({2, 2, 3}, {3, 0, 1, 1, 3, 2, 0, 0, 3, 2, 1, 3})}, along(1)},
          {{{{2, 4, 3}}, indices({1, 2, 1}, {3, 1})}, along(-2)},
          {{{{1, 4}}, indices({3, 2}, {3, 0, 1, 1, 2, 2})}},
          {{{{33, 7}}, indices({33, 1}, std::vector<double>(33, 5))}},
          {{{{2, 3}}, indices({2, 0}, {})}},
          {{{{0, 3}}, indices({1, 2}, {0, 2})}}};
}

std::vector<ErrorSample> take_along_errors(const Operation&) {
  return {{Refusal::dtype, {{{3}}, {{2}}}, {}, "float32"},
          {Refusal::shape, {{{3}}, indices({1}, {0})}, along(1), "(3,)"},
          {Refusal::shape, {{{3, 2}}, indices({2}, {0, 1})}, {}, "(2,)"},
          {Refusal::shape, {{{3, 2}}, indices({2, 1}, {0, 1})}, {}, "(3, 2)"},
          {Refusal::shape, {{{}}, indices({}, {0})}, {}, "()"}};
}

struct How {
  const char* name;
  Scatter scatter;
};
constexpr How kHows[] = {
    {"set", Scatter::set}, {"add", Scatter::add}, {"max", Scatter::maximum}, {"min", Scatter::minimum}};

Results call_put_along(Tensors x, const Arguments& a) {
  for (const How& how : kHows) {
    if (a.text("how", "set") == how.name)
      return {caldera::put_along_axis(x[0], x[1], x[2], a.axis("axis", -1), how.scatter)};
  }
  throw Error("put_along_axis: no such way to combine values");
}

std::vector<Sample> put_along_samples(const Operation& operation) {
  const Range base = operation.ranges[0], values = operation.ranges[1];
  std::vector<Sample> out;
  for (const How& how : kHows) {
    const auto add = [&](std::vector<Operand> operands, std::int64_t axis) {
      out.push_back({std::move(operands), {{"axis", axis}, {"how", std::string(how.name)}}});
    };
    add({{{5}, base}, indices({3}, {4, 0, 4}), {{3}, values}}, -1);
    add({{{2, 3}, base}, indices({2, 3}, {2, 0, 2, 1, 1, 1}), {{2, 3}, values}}, -1);
    add({{{3, 2}, base}, indices({2, 2}, {2, 0, 2, 1}), {{2, 2}, values}}, 0);
    add({{{2, 4, 3}, base}, indices({1, 3, 1}, {3, 1, 3}), {{2, 1, 3}, values}}, -2);
    add({{{2, 3}, base}, indices({2, 2}, {-1, 3, 1, 1}), {{}, values}}, 1);
    add({{{2, 3}, base}, indices({2, 0}, {}), {{1}, values}}, 1);
  }
  return out;
}

std::vector<ErrorSample> put_along_errors(const Operation&) {
  return {{Refusal::dtype, {{{3}}, {{2}}, {{2}}}, {}, "float32"},
          {Refusal::shape, {{{3}}, indices({1}, {0}), {{1}}}, along(1), "(3,)"},
          {Refusal::shape, {{{3, 2}}, indices({2}, {0, 1}), {{2}}}, {}, "(2,)"},
          {Refusal::shape, {{{1, 2}}, indices({3, 1}, {0, 1, 1}), {{}}}, {}, "(3, 1)"},
          {Refusal::shape, {{{3, 2}}, indices({3, 1}, {0, 1, 1}), {{3, 4}}}, {}, "(3, 4)"}};
}

std::vector<Sample> masked_fill_samples(const Operation&) {
  const Arguments value{{"value", 1.0}};
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{33}, Shape{2, 3}, Shape{0, 3}})
    out.push_back({{{shape}, mask(shape)}, value});
  out.push_back({{{{2, 3, 4}}, mask({3, 1})}, value});
  out.push_back({{{{3}}, mask({2, 1})}, value});
  return out;
}

std::vector<ErrorSample> masked_errors(const Operation&) {
  const Arguments arguments{{"value", 1.0}, {"size", std::int64_t{2}}};
  return {{Refusal::dtype, {{{3}}, indices({3}, {1, 0, 1})}, arguments, "int32"},
          {Refusal::shape, {{{3}}, mask({2})}, arguments, "(3,)"}};
}

std::vector<Sample> masked_select_samples(const Operation&) {
  const auto sized = [](std::int64_t size) { return Arguments{{"size", size}}; };
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{33}, Shape{2, 3}, Shape{0, 3}}) {
    for (const std::int64_t size : {0, 1, 5, 40}) out.push_back({{{shape}, mask(shape)}, sized(size)});
  }
  out.push_back({{{{2, 3, 4}}, mask({3, 1})}, {{"size", std::int64_t{17}}, {"fill", 1.0}}});
  out.push_back({{{{3}}, mask({2, 1})}, {{"size", std::int64_t{4}}, {"fill", 1.0}}});
  return out;
}

std::vector<Sample> nonzero_samples(const Operation&) {
  std::vector<Sample> out;
  for (const std::int64_t size : {0, 1, 4, 9}) {
    const Arguments arguments{{"size", size}, {"fill", std::int64_t{-1}}};
    out.push_back({{{.shape = {1}, .values = {1}}}, arguments});
    out.push_back({{{.shape = {7}, .values = {0, 1, 1, 0, 0, 0, 1}}}, arguments});
    out.push_back({{{.shape = {2, 3}, .values = {1, 0, 0, 1, 1, 0}}}, arguments});
    out.push_back({{{.shape = {2, 2, 2}, .values = {0, 0, 1, 0, 0, 1, 1, 1}}}, arguments});
    out.push_back({{{.shape = {0, 3}}}, arguments});
  }
  return out;
}

std::vector<ErrorSample> nonzero_errors(const Operation&) {
  return {{Refusal::shape, {{{}}}, {{"size", std::int64_t{1}}}, "()"},
          {Refusal::value, {{{3}}}, {{"size", std::int64_t{-1}}}, "-1"}};
}

/// Bases and updates that are never equal.
constexpr std::array<Range, 3> kApart = {Range{.distinct = true},
                                         Range{.offset = 1.0 / 128, .distinct = true}};

constexpr EntriesOf scatter_entry{
    .family = "scatter", .ranges = kApart, .samples = scatter_samples, .errors = scatter_errors};

}  // namespace

std::span<const Operation> scatter_operations() {
  static const Operation kTable[] = {
      scatter_entry("scatter", "scatter(base, indices, updates, axis=0)",
                    "base with updates at `indices` along an axis. Of updates with one index the "
                    "last is left and has the gradient, on every device; indices outside are dropped.",
                    kAnyType, call_scatter<caldera::scatter>),
      scatter_entry(
          "scatter_max", "scatter_max(base, indices, updates, axis=0)",
          "The largest of base's elements and the updates that come to them along an axis; NaN if any "
          "is. The gradient is split equally among all that attain it.",
          kNumeric, call_scatter<caldera::scatter_max>),
      scatter_entry(
          "scatter_min", "scatter_min(base, indices, updates, axis=0)",
          "The smallest of base's elements and the updates that come to them along an axis; NaN if any "
          "is. The gradient is split equally among all that attain it.",
          kNumeric, call_scatter<caldera::scatter_min>),
      {.name = "take_along_axis",
       .family = "scatter",
       .signature = "take_along_axis(x, indices, axis=-1)",
       .summary =
           "The elements of x at indices that each position beside the axis has for itself; the other axes "
           "broadcast. An index outside, as a negative one, gives NaN, or 0 in types without one.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::take_along_axis(x[0], x[1], a.axis("axis", -1))};
       },
       .samples = take_along_samples,
       .errors = take_along_errors},
      {.name = "put_along_axis",
       .family = "scatter",
       .signature = "put_along_axis(base, indices, values, axis=-1, how=set)",
       .summary =
           "base with values where take_along_axis would read. Values with one index combine as `how` says: "
           "set leaves the last, add, maximum, minimum are those of scatter_add, scatter_max, scatter_min.",
       .types = kAnyType,
       .call = call_put_along,
       .ranges = kApart,
       .samples = put_along_samples,
       .errors = put_along_errors},
      {.name = "masked_fill",
       .family = "scatter",
       .signature = "masked_fill(x, mask, value)",
       .summary = "x with one value wherever the mask holds; the two broadcast.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::masked_fill(x[0], x[1], a.real("value", 0))};
       },
       .samples = masked_fill_samples,
       .errors = masked_errors},
      {.name = "masked_select",
       .family = "scatter",
       .signature = "masked_select(x, mask, size, fill=0)",
       .summary =
           "The first `size` elements where the mask holds, in row-major order, and `fill` where there are "
           "fewer: a shape does not depend on values here.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::masked_select(x[0], x[1], a.integer("size", 0), a.real("fill", 0))};
       },
       .samples = masked_select_samples,
       .errors = masked_errors},
      {.name = "nonzero",
       .family = "scatter",
       .signature = "nonzero(x, size, fill=0)",
       .summary =
           "The coordinates of the first `size` elements that are not 0, in row-major order: one int32 "
           "vector for each axis, and `fill` where there are fewer.",
       .types = kAnyType,
       .result = ResultType::index,
       .gradient = Gradient::none,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return caldera::nonzero(x[0], a.integer("size", 0), a.integer("fill", 0));
       },
       .samples = nonzero_samples,
       .errors = nonzero_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
