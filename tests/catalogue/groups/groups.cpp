// More entries of the family `scatter`: groups.
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

template <UniqueResult (*F)(const LazyTensor&, std::int64_t, FillValue)>
Results call_unique(Tensors x, const Arguments& a) {
  const UniqueResult found = F(x[0], a.integer("size", 1), a.integer("fill", 0));
  return {found.values, astype(found.inverse, x[0].dtype()), astype(found.counts, x[0].dtype())};
}

std::vector<Sample> unique_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  const auto sized = [&](const Shape& shape, std::int64_t size) {
    return Sample{{{shape, range}}, {{"size", size}}};
  };
  std::vector<Sample> out{sized({7}, 7), {{{{2, 3}, {.distinct = true}}}, {{"size", std::int64_t{4}}}},
                          sized({1}, 2), sized({}, 1),
                          sized({0}, 2), sized({9}, 0)};
  out.push_back(sized({5}, 8));
  out.back().arguments.set("fill", std::int64_t{1});
  return out;
}

template <UniqueResult (*F)(const LazyTensor&, AxisIndex, std::int64_t, FillValue)>
Results call_unique_along(Tensors x, const Arguments& a) {
  const UniqueResult found =
      F(x[0], static_cast<int>(a.axis("axis", 0)), a.integer("size", 1), a.integer("fill", 0));
  return {found.values, astype(found.inverse, x[0].dtype()), astype(found.counts, x[0].dtype())};
}

std::vector<Sample> unique_along_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  const auto sized = [&](const Shape& shape, std::int64_t axis, std::int64_t size) {
    return Sample{{{shape, range}}, {{"axis", axis}, {"size", size}}};
  };
  std::vector<Sample> out{sized({5, 3}, 0, 5), sized({2, 6}, 1, 4), sized({2, 4, 2}, -2, 3),
                          sized({1, 4}, 0, 1), sized({7}, 0, 7),    sized({6, 1}, 0, 0)};
  out.push_back(sized({3, 2}, 0, 5));
  out.back().arguments.set("fill", std::int64_t{1});
  return out;
}

std::vector<ErrorSample> unique_along_errors(const Operation&) {
  return {{Refusal::value, {{{3, 2}}}, {{"axis", std::int64_t{0}}, {"size", std::int64_t{-1}}}, "-1"},
          {Refusal::shape, {{{3, 2}}}, {{"axis", std::int64_t{2}}, {"size", std::int64_t{1}}}, "(3, 2)"},
          {Refusal::shape, {{{3, 0}}}, {{"axis", std::int64_t{0}}, {"size", std::int64_t{1}}}, "empty"}};
}

std::vector<ErrorSample> unique_errors(const Operation&) {
  return {{Refusal::value, {{{3}}}, {{"size", std::int64_t{-1}}}, "-1"}};
}

Results call_bincount(Tensors x, const Arguments& a) {
  return {bincount(
      x[0], {.weights = x[1], .minlength = a.integer("minlength", 0), .length = a.integer("length", 1)})};
}

std::vector<Sample> bincount_samples(const Operation&) {
  const auto counted = [](const Shape& shape, std::vector<double> values, std::int64_t length,
                          std::int64_t minlength) {
    return Sample{{indices(shape, std::move(values)), {shape}},
                  {{"length", length}, {"minlength", minlength}}};
  };
  return {counted({6}, {2, 0, 4, 2, 2, 0}, 5, 0), counted({3}, {1, 1, 0}, 6, 4), counted({1}, {0}, 1, 0),
          counted({4}, {3, 0, 7, 3}, 4, 0), counted({0}, {}, 2, 2)};
}

std::vector<ErrorSample> bincount_errors(const Operation&) {
  return {{Refusal::dtype, {{{3}}, {{3}}}, {}, "float32"},
          {Refusal::shape, {indices({2, 1}, {0, 1}), {{2, 1}}}, {}, "(2, 1)"},
          {Refusal::shape, {indices({2}, {0, 1}), {{3}}}, {}, "(3,)"},
          {Refusal::value, {indices({2}, {0, 1}), {{2}}}, {{"minlength", std::int64_t{-1}}}, "-1"},
          {Refusal::value,
           {indices({2}, {0, 1}), {{2}}},
           {{"length", std::int64_t{1}}, {"minlength", std::int64_t{2}}},
           "length is 1"}};
}

Results call_histc(Tensors x, const Arguments& a) {
  return {histc(x[0], a.integer("bins", 100), a.real("low", 0), a.real("high", 0))};
}

std::vector<Sample> histc_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  const auto binned = [&](const Shape& shape, std::int64_t bins, double low, double high) {
    return Sample{{{shape, range}}, {{"bins", bins}, {"low", low}, {"high", high}}};
  };
  return {binned({33}, 5, 0, 0),  binned({2, 7}, 7, -1.3, 1.1), binned({7}, 1, 0, 0), binned({1}, 3, 0, 0),
          binned({}, 4, -2, 2.1), binned({9}, 3, 5, 6),         binned({0}, 2, 0, 0)};
}

std::vector<ErrorSample> histc_errors(const Operation&) {
  return {{Refusal::value, {{{3}}}, {{"bins", std::int64_t{0}}}, "0 bins"},
          {Refusal::value, {{{3}}}, {{"low", 1.0}, {"high", 0.0}}, "from 1 to 0"}};
}

Results call_histogram(Tensors x, const Arguments& a) {
  HistogramOptions options{.density = a.flag("density", false)};
  if (a.has("range")) options.range = std::pair(-1.1, 1.3);
  const bool has_edges = a.flag("edges", false);
  if (x.size() > (has_edges ? 2U : 1U)) options.weight = x[1];
  const HistogramResult found =
      has_edges ? histogram(x[0], x.back(), options) : histogram(x[0], a.integer("bins", 5), options);
  return {found.hist, found.bin_edges};
}

std::vector<Sample> histogram_samples(const Operation& operation) {
  const Range range = operation.ranges[0], edges{.distinct = true};
  std::vector<Sample> out;
  for (const bool density : {false, true}) {
    out.push_back({{{{9}, range}}, {{"bins", std::int64_t{5}}, {"density", density}}});
    out.push_back({{{{2, 5}, range}, {{2, 5}, {.low = 0.5, .high = 2}}},
                   {{"bins", std::int64_t{3}}, {"density", density}, {"range", true}}});
    out.push_back(
        {{{{2, 5}, range}, {{2, 5}, {.low = 0.5, .high = 2}}, {{4}, edges, {}, {-1.5, -0.25, 0.375, 2}}},
         {{"edges", true}, {"density", density}}});
  }
  out.push_back({{{{}, range}}, {{"bins", std::int64_t{2}}}});
  return out;
}

std::vector<ErrorSample> histogram_errors(const Operation&) {
  return {{Refusal::value, {{{3}}}, {{"bins", std::int64_t{0}}}, "0 bins"},
          {Refusal::shape, {{{3}}, {{2}}}, {}, "(2,)"},
          {Refusal::shape, {{{3}}, {{1}}}, {{"edges", true}}, "(1,)"},
          {Refusal::value, {{{3}}, {{2}}}, {{"edges", true}, {"range", true}}, "exclude"}};
}

struct How {
  const char* name;
  ScatterReduce how;
};
constexpr How kHows[] = {{"sum", ScatterReduce::sum},
                         {"prod", ScatterReduce::prod},
                         {"mean", ScatterReduce::mean},
                         {"amax", ScatterReduce::amax},
                         {"amin", ScatterReduce::amin}};

Results call_scatter_reduce(Tensors x, const Arguments& a) {
  for (const How& how : kHows) {
    if (a.text("how", "sum") == how.name)
      return {scatter_reduce(x[0], x[1], x[2], a.axis("axis", 0), how.how, a.flag("include_self", true))};
  }
  throw Error("scatter_reduce: no such way to combine values");
}

std::vector<Sample> scatter_reduce_samples(const Operation& operation) {
  const Range base = operation.ranges[0], values = operation.ranges[1];
  std::vector<Sample> out;
  for (const How& how : kHows) {
    for (const bool include_self : {true, false}) {
      const auto add = [&](std::vector<Operand> operands, std::int64_t axis) {
        out.push_back({std::move(operands),
                       {{"axis", axis}, {"how", std::string(how.name)}, {"include_self", include_self}}});
      };
      add({{{5}, base}, indices({6}, {4, 0, 4, 1, 4, 0}), {{6}, values}}, 0);
      add({{{2, 3}, base}, indices({2, 3}, {2, 0, 2, 1, 1, 1}), {{2, 3}, values}}, -1);
      add({{{3, 2}, base}, indices({4, 2}, {2, 0, 2, 1, 0, 1, 2, -1}), {{4, 2}, values}}, 0);
    }
  }
  out.push_back({{{{2, 3}, base}, indices({2, 0}, {}), {{1}, values}},
                 {{"axis", std::int64_t{1}}, {"how", std::string("prod")}}});
  return out;
}

std::vector<ErrorSample> scatter_reduce_errors(const Operation&) {
  return {{Refusal::dtype, {{{3}}, {{2}}, {{2}}}, {}, "float32"},
          {Refusal::shape, {{{3}}, indices({1}, {0}), {{1}}}, {{"axis", std::int64_t{1}}}, "(3,)"},
          {Refusal::shape, {{{3, 2}}, indices({2}, {0, 1}), {{2}}}, {}, "(2,)"},
          {Refusal::shape, {{{3, 2}}, indices({2, 1}, {0, 1}), {{2, 3}}}, {}, "(2, 3)"}};
}

/// Of integers these are -1, 0 and 1, so that slices are equal.
constexpr Range kFewValues{-0.375, 0.375};
constexpr EntriesOf entry{"scatter", kNumeric}, anything{"scatter", kAnyType}, floats{"scatter", kFloating};

}  // namespace

std::span<const Operation> group_operations() {
  static const Operation kTable[] = {
      anything(
          "unique", "unique(x, size, fill=0)",
          "The different elements, ascending, `fill` where there are fewer than size; which of them each "
          "element "
          "is; how often each is there. Without a size that is computed first.",
          call_unique<caldera::unique>, unique_samples, unique_errors),
      anything("unique_consecutive", "unique_consecutive(x, size, fill=0)",
               "As unique, of runs of equal neighbours in row-major order.",
               call_unique<caldera::unique_consecutive>, unique_samples, unique_errors, Range{-0.375, 0.375}),
      anything(
          "unique_along", "unique_along(x, axis, size, fill=0)",
          "The different slices along an axis, ascending by their first elements, then by the next; which "
          "of them each slice is; how often each is there.",
          call_unique_along<caldera::unique_along>, unique_along_samples, unique_along_errors),
      anything("unique_consecutive_along", "unique_consecutive_along(x, axis, size, fill=0)",
               "As unique_along, of runs of equal neighbours along the axis.",
               call_unique_along<caldera::unique_consecutive_along>, unique_along_samples,
               unique_along_errors, kFewValues),
      entry("bincount", "bincount(x, weights, {minlength=0, length})",
            "How often each of 0, 1, ... is an element, or the sums of their weights. Without a length it is "
            "computed first.",
            call_bincount, bincount_samples, bincount_errors),
      floats("histc", "histc(x, bins=100, low=0, high=0)",
             "How many elements are in each of bins intervals of one width.", call_histc, histc_samples,
             histc_errors, Gradient::zero, Range{-1.5, 1.75, 0, 1.0 / 128}),
      floats("histogram", "histogram(x, bins or edges, {range, weight, density=false})",
             "How many elements, or what weights of such, are in each interval; and where the intervals end.",
             call_histogram, histogram_samples, histogram_errors, Range{-1.5, 1.75, 0, 1.0 / 128}),
      entry(
          "scatter_reduce", "scatter_reduce(base, indices, values, axis, how, include_self=true)",
          "base with the values that put_along_axis would write combined: sum, prod, mean, amax, amin; with "
          "base's own unless include_self is false.",
          call_scatter_reduce, scatter_reduce_samples, scatter_reduce_errors,
          Ranges{Range{.distinct = true}, Range{.offset = 1.0 / 128, .distinct = true}, Range{}}),
  };
  return kTable;
}

}  // namespace caldera::catalogue
