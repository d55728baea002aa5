// The entries of the family `pooling`.
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;

template <auto F>
Results call_pool(Tensors x, const Arguments& a) {
  return {F(x[0], a.integers("kernel"),
            {.stride = a.integers("stride"),
             .padding = a.integers("padding", {0}),
             .dilation = a.integers("dilation", {1}),
             .count_include_pad = a.flag("count_include_pad", true),
             .ceil_mode = a.flag("ceil_mode", false)})};
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

std::vector<ErrorSample> pool_errors(const Operation&) {
  return {{Refusal::shape, {{{1, 1, 0}}}, {{"kernel", Integers{2}}, {"padding", Integers{1}}}, "(1, 1, 0)"},
          {Refusal::shape, {{{2, 3}}}, {{"kernel", Integers{2}}}, "(2, 3)"},
          {Refusal::shape, {{{1, 2, 3}}}, {{"kernel", Integers{4}}}, "4"},
          {Refusal::value, {{{1, 2, 3}}}, {{"kernel", Integers{2}}, {"padding", Integers{2}}}, "padding 2"},
          {Refusal::value, {{{1, 2, 3}}}, {{"kernel", Integers{0}}}, "kernel is 0"},
          {Refusal::value, {{{1, 2, 3}}}, {{"kernel", Integers{2}}, {"stride", Integers{0}}}, "stride is 0"}};
}

constexpr EntriesOf entry{"convolution", kFloating};

}  // namespace

std::span<const Operation> pooling_operations() {
  static const Operation kTable[] = {
      entry("max_pool", "max_pool(x, kernel, {stride=kernel, padding, dilation, ceil_mode})",
            "The largest element of each window; NaN if one is. Of ties the first has the gradient.",
            call_pool<caldera::max_pool>, max_pool_samples, pool_errors, Range{.distinct = true}),
      entry("avg_pool",
            "avg_pool(x, kernel, {stride=kernel, padding, dilation, ceil_mode, count_include_pad=true})",
            "The mean of each window.", call_pool<caldera::avg_pool>, avg_pool_samples, pool_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
