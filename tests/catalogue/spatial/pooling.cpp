// The entries of the family `pooling`.
#include <cstdint>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;

PoolOptions pool_options(const Arguments& a) {
  PoolOptions options{.stride = a.integers("stride"),
                      .padding = a.integers("padding", {0}),
                      .dilation = a.integers("dilation", {1}),
                      .count_include_pad = a.flag("count_include_pad", true),
                      .ceil_mode = a.flag("ceil_mode", false)};
  if (a.has("divisor_override")) options.divisor_override = a.integer("divisor_override", 0);
  return options;
}
template <auto F>
Results call_pool(Tensors x, const Arguments& a) {
  return {F(x[0], a.integers("kernel"), pool_options(a))};
}
Results call_lp_pool(Tensors x, const Arguments& a) {
  return {lp_pool(x[0], a.real("p", 2), a.integers("kernel"), pool_options(a))};
}
Results call_max_pool_with_indices(Tensors x, const Arguments& a) {
  const IndexedMaxResult found = max_pool_with_indices(x[0], a.integers("kernel"), pool_options(a));
  return {found.values, astype(found.indices, x[0].dtype())};
}
Results call_max_unpool(Tensors x, const Arguments& a) {
  return {max_unpool(x[0], x[1], a.integers("kernel"),
                     {.stride = a.integers("stride"),
                      .padding = a.integers("padding", {0}),
                      .output_size = a.integers("output_size")})};
}
template <auto F>
Results call_adaptive(Tensors x, const Arguments& a) {
  return {F(x[0], a.integers("output_size"))};
}
Results call_adaptive_with_indices(Tensors x, const Arguments& a) {
  const IndexedMaxResult found = adaptive_max_pool_with_indices(x[0], a.integers("output_size"));
  return {found.values, astype(found.indices, x[0].dtype())};
}

Sample ceiled(const Operand& x, Spatial kernel, Spatial stride, Spatial padding) {
  return {{x},
          {{"kernel", std::move(kernel)},
           {"stride", std::move(stride)},
           {"padding", std::move(padding)},
           {"ceil_mode", true}}};
}

std::vector<Sample> pool_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  return {
      {{{{2, 3, 7}, range}}, {{"kernel", Integers{2}}}},
      {{{{0, 3, 7}, range}}, {{"kernel", Integers{2}}}},
      {{{{1, 2, 8}, range}}, {{"kernel", Integers{3}}, {"stride", Integers{2}}, {"padding", Integers{1}}}},
      {{{{1, 2, 5, 6}, range}}, {{"kernel", Integers{2, 3}}}},
      {{{{1, 2, 5, 6}, range}}, {{"kernel", Integers{3}}, {"stride", Integers{1}}, {"padding", Integers{1}}}},
      {{{{1, 1, 4, 4, 4}, range}}, {{"kernel", Integers{2}}}},
      {{{{1, 2, 6}, range}}, {{"kernel", Integers{1}}}},
      ceiled({{1, 2, 8}, range}, {3}, {2}, {0}),
      ceiled({{1, 2, 8}, range}, {3}, {2}, {1}),
      ceiled({{1, 2, 7}, range}, {2}, {2}, {1}),
      ceiled({{1, 1, 5}, range}, {2}, {4}, {1}),
      ceiled({{1, 2, 5, 6}, range}, {2, 3}, {3, 2}, {1, 0}),
      ceiled({{1, 1, 4, 5, 4}, range}, {2}, {3}, {0})};
}

std::vector<Sample> max_pool_samples(const Operation& operation) {
  std::vector<Sample> out = pool_samples(operation);
  out.push_back({{{{1, 2, 9}, operation.ranges[0]}},
                 {{"kernel", Integers{3}}, {"stride", Integers{1}}, {"dilation", Integers{2}}}});
  out.push_back(ceiled({{1, 2, 10}, operation.ranges[0]}, {3}, {2}, {1}));
  out.back().arguments.set("dilation", Integers{2});
  return out;
}

std::vector<Sample> avg_pool_samples(const Operation& operation) {
  std::vector<Sample> out = pool_samples(operation);
  out.push_back({{{{1, 2, 8}, operation.ranges[0]}},
                 {{"kernel", Integers{3}},
                  {"stride", Integers{2}},
                  {"padding", Integers{1}},
                  {"count_include_pad", false}}});
  out.push_back(ceiled({{1, 2, 8}, operation.ranges[0]}, {3}, {2}, {1}));
  out.back().arguments.set("count_include_pad", false);
  out.push_back({{{{1, 2, 9}, operation.ranges[0]}},
                 {{"kernel", Integers{3}},
                  {"stride", Integers{1}},
                  {"padding", Integers{1}},
                  {"dilation", Integers{2}}}});
  out.push_back({{{{1, 1, 6, 7}, operation.ranges[0]}},
                 {{"kernel", Integers{2, 3}}, {"stride", Integers{2}}, {"dilation", Integers{3, 2}}}});
  return out;
}

std::vector<Sample> divided_samples(const Operation& operation) {
  std::vector<Sample> out = avg_pool_samples(operation);
  out.push_back({{{{1, 2, 5, 6}, operation.ranges[0]}},
                 {{"kernel", Integers{3}},
                  {"stride", Integers{2}},
                  {"padding", Integers{1}},
                  {"divisor_override", std::int64_t{5}}}});
  out.push_back({{{{1, 2, 5, 6}, operation.ranges[0]}},
                 {{"kernel", Integers{2, 3}}, {"divisor_override", std::int64_t{-2}}}});
  return out;
}

std::vector<Sample> lp_pool_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  std::vector<Sample> out;
  for (const double p : {2.0, 3.0, 1.0, 1.5}) {
    out.push_back({{{{2, 3, 7}, range}}, {{"p", p}, {"kernel", Integers{2}}}});
    out.push_back(
        {{{{1, 2, 5, 6}, range}}, {{"p", p}, {"kernel", Integers{2, 3}}, {"stride", Integers{1, 2}}}});
    out.push_back(ceiled({{1, 2, 5, 7}, range}, {2, 3}, {2, 2}, {0}));
    out.back().arguments.set("p", p);
  }
  return out;
}

std::vector<ErrorSample> lp_pool_errors(const Operation&) {
  const auto bad = [](double p, const char* name, std::int64_t value, const char* says) {
    return ErrorSample{
        Refusal::value, {{{1, 2, 6}}}, {{"p", p}, {"kernel", Integers{2}}, {name, Integers{value}}}, says};
  };
  return {bad(0, "stride", 1, "p is 0"),
          bad(2, "padding", 1, "padding is 1"),
          bad(2, "dilation", 2, "dilation is 2"),
          {Refusal::shape, {{{2, 3}}}, {{"p", 2.0}, {"kernel", Integers{2}}}, "(2, 3)"}};
}

Operand places(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::i32, .values = std::move(values)};
}

std::vector<Sample> unpool_samples(const Operation&) {
  return {{{{{1, 2, 3}}, places({1, 2, 3}, {0, 3, 4, 1, 2, 5})}, {{"kernel", Integers{2}}}},
          {{{{1, 1, 2, 2}}, places({1, 1, 2, 2}, {0, 3, 8, 14})}, {{"kernel", Integers{2}}}},
          {{{{1, 1, 2, 2}}, places({1, 1, 2, 2}, {0, 4, 20, 23})},
           {{"kernel", Integers{2}}, {"output_size", Integers{5, 5}}}},
          {{{{1, 2, 2, 3}}, places({1, 2, 2, 3}, {0, 2, 4, 10, 12, 14, 1, 3, 4, 13, 12, 11})},
           {{"kernel", Integers{3}}, {"stride", Integers{2}}, {"padding", Integers{1}}}},
          {{{{1, 1, 2, 1, 2}}, places({1, 1, 2, 1, 2}, {0, 7, 17, 31})}, {{"kernel", Integers{2}}}}};
}

std::vector<ErrorSample> unpool_errors(const Operation&) {
  return {{Refusal::shape, {{{1, 1, 2}}, places({1, 2}, {0, 1})}, {{"kernel", Integers{2}}}, "(1, 2)"},
          {Refusal::dtype, {{{1, 1, 2}}, {{1, 1, 2}}}, {{"kernel", Integers{2}}}, "float32"},
          {Refusal::shape,
           {{{1, 1, 2}}, places({1, 1, 2}, {0, 1})},
           {{"kernel", Integers{2}}, {"padding", Integers{3}}},
           "padding 3"},
          {Refusal::shape, {{{1, 2}}, places({1, 2}, {0, 1})}, {{"kernel", Integers{2}}}, "(1, 2)"}};
}

std::vector<Sample> adaptive_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  std::vector<Sample> out;
  for (const std::int64_t size : {1, 2, 3, 5, 7, 9, 16, 0, -1})
    out.push_back({{{{1, 2, 7}, range}}, {{"output_size", Integers{size}}}});
  out.push_back({{{{0, 2, 7}, range}}, {{"output_size", Integers{3}}}});
  out.push_back({{{{2, 1, 6, 5}, range}}, {{"output_size", Integers{3, 2}}}});
  out.push_back({{{{1, 2, 5, 7}, range}}, {{"output_size", Integers{4}}}});
  out.push_back({{{{1, 1, 4, 3}, range}}, {{"output_size", Integers{-1, 2}}}});
  out.push_back({{{{1, 1, 4, 3, 5}, range}}, {{"output_size", Integers{2, 2, 3}}}});
  return out;
}

std::vector<ErrorSample> adaptive_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}}, {{"output_size", Integers{2}}}, "(2, 3)"},
          {Refusal::shape, {{{1, 1, 0}}}, {{"output_size", Integers{2}}}, "(1, 1, 0)"},
          {Refusal::value, {{{1, 1, 3}}}, {{"output_size", Integers{2, 2}}}, "2 values"},
          {Refusal::value, {{{1, 1, 3}}}, {{"output_size", Integers{-2}}}, "output_size is -2"}};
}

std::vector<ErrorSample> pool_errors(const Operation&) {
  return {{Refusal::shape, {{{1, 1, 0}}}, {{"kernel", Integers{2}}, {"padding", Integers{1}}}, "(1, 1, 0)"},
          {Refusal::shape, {{{2, 3}}}, {{"kernel", Integers{2}}}, "(2, 3)"},
          {Refusal::shape, {{{1, 2, 3}}}, {{"kernel", Integers{4}}}, "4"},
          {Refusal::value, {{{1, 2, 3}}}, {{"kernel", Integers{2}}, {"padding", Integers{2}}}, "padding 2"},
          {Refusal::value, {{{1, 2, 3}}}, {{"kernel", Integers{0}}}, "kernel is 0"},
          {Refusal::value, {{{1, 2, 3}}}, {{"kernel", Integers{2}}, {"stride", Integers{0}}}, "stride is 0"}};
}

std::vector<ErrorSample> divided_errors(const Operation& operation) {
  std::vector<ErrorSample> out = pool_errors(operation);
  out.push_back({Refusal::value,
                 {{{1, 2, 3}}},
                 {{"kernel", Integers{2}}, {"divisor_override", std::int64_t{0}}},
                 "divisor_override is 0"});
  return out;
}

constexpr EntriesOf entry{"convolution", kFloating};

}  // namespace

std::span<const Operation> pooling_operations() {
  static const Operation kTable[] = {
      entry("max_pool", "max_pool(x, kernel, {stride=kernel, padding, dilation, ceil_mode})",
            "The largest element of each window; NaN if one is. Of ties the first has the gradient.",
            call_pool<caldera::max_pool>, max_pool_samples, pool_errors, Range{.distinct = true}),
      entry("avg_pool",
            "avg_pool(x, kernel, {stride=kernel, padding, dilation, ceil_mode, count_include_pad=true, "
            "divisor_override=none})",
            "The mean of each window, or its sum over divisor_override.", call_pool<caldera::avg_pool>,
            divided_samples, divided_errors),
      entry("lp_pool", "lp_pool(x, p, kernel, {stride=kernel, ceil_mode})",
            "(sum of x^p over each window)^(1 / p).", call_lp_pool, lp_pool_samples, lp_pool_errors,
            Range{.low = 0.25, .high = 2}),
      entry("max_pool_with_indices",
            "max_pool_with_indices(x, kernel, {stride=kernel, padding, dilation, ceil_mode})",
            "max_pool, and where in its channel each element is, in row-major order of the spatial axes.",
            call_max_pool_with_indices, max_pool_samples, pool_errors, Range{.distinct = true}),
      entry("max_unpool", "max_unpool(x, indices, kernel, {stride=kernel, padding, output_size})",
            "Zeros with the elements of x where max_pool_with_indices found them. Of elements with one index "
            "the last is left; those with an index outside are dropped.",
            call_max_unpool, unpool_samples, unpool_errors),
      entry("adaptive_avg_pool", "adaptive_avg_pool(x, output_size)",
            "The means of windows that divide each spatial axis into a given number, overlapping by at most "
            "one "
            "element; -1 keeps the extent.",
            call_adaptive<caldera::adaptive_avg_pool>, adaptive_samples, adaptive_errors),
      entry(
          "adaptive_max_pool", "adaptive_max_pool(x, output_size)",
          "The largest elements of windows as of adaptive_avg_pool; NaN if one is. Of ties the first has the "
          "gradient.",
          call_adaptive<caldera::adaptive_max_pool>, adaptive_samples, adaptive_errors,
          Range{.distinct = true}),
      entry("adaptive_max_pool_with_indices", "adaptive_max_pool_with_indices(x, output_size)",
            "adaptive_max_pool, and where in its channel each element is.", call_adaptive_with_indices,
            adaptive_samples, adaptive_errors, Range{.distinct = true}),
  };
  return kTable;
}

}  // namespace caldera::catalogue
