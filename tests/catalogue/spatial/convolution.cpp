// The entries of the family `convolution`.
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;

ConvOptions conv_options(const Arguments& a) {
  return {.stride = a.integers("stride", {1}),
          .padding = a.integers("padding", {0}),
          .dilation = a.integers("dilation", {1}),
          .groups = a.integer("groups", 1),
          .output_padding = a.integers("output_padding", {0}),
          .same = a.flag("same", false)};
}
template <auto F>
Results call_conv(Tensors x, const Arguments& a) {
  return {F(x[0], x[1], x.size() > 2 ? x[2] : LazyTensor(), conv_options(a))};
}
/// A convolution, by default without a bias.
Sample settings(const Shape& x, const Shape& weight, Spatial stride, Spatial padding, Spatial dilation,
                std::int64_t groups, bool bias = false, Spatial output_padding = {}) {
  Sample out{{{x}, {weight}},
             {{"stride", std::move(stride)},
              {"padding", std::move(padding)},
              {"dilation", std::move(dilation)},
              {"groups", groups}}};
  const bool transposed = !output_padding.empty();
  if (bias) out.operands.push_back({{transposed ? weight[1] * groups : weight[0]}});
  if (transposed) out.arguments.set("output_padding", std::move(output_padding));
  return out;
}

std::vector<Sample> conv_samples(const Operation&) {
  return {{{{{2, 3, 7}}, {{4, 3, 3}}}},
          {{{{2, 3, 7}}, {{4, 3, 3}}, {{4}}}, {{"stride", Integers{2}}, {"padding", Integers{1}}}},
          {{{{1, 4, 9}}, {{6, 2, 2}}, {{6}}}, {{"groups", std::int64_t{2}}, {"dilation", Integers{3}}}},
          {{{{2, 2, 5, 6}}, {{3, 2, 3, 3}}, {{3}}}},
          {{{{1, 2, 5, 6}}, {{3, 2, 3, 2}}}, {{"stride", Integers{2, 1}}, {"padding", Integers{1, 2}}}},
          {{{{1, 4, 5, 5}}, {{4, 1, 3, 3}}, {{4}}}, {{"groups", std::int64_t{4}}, {"padding", Integers{1}}}},
          {{{{1, 2, 7, 7}}, {{2, 2, 3, 3}}}, {{"dilation", Integers{2, 3}}}},
          {{{{1, 3, 4, 4}}, {{2, 3, 1, 1}}}},
          {{{{1, 2, 3, 4, 3}}, {{2, 2, 2, 2, 2}}, {{2}}}, {{"padding", Integers{1, 0, 1}}}},
          {{{{0, 2, 5}}, {{3, 2, 3}}}},
          // Every option with every other, over 1, 2 and 3 axes.
          settings({2, 2, 9}, {4, 2, 3}, {2}, {0}, {2}, 1),
          settings({1, 4, 9}, {4, 2, 3}, {2}, {2}, {2}, 2, true),
          settings({1, 2, 11}, {2, 2, 4}, {3}, {3}, {2}, 1, true),
          settings({2, 3, 5}, {6, 1, 2}, {1}, {1}, {1}, 3),
          settings({1, 1, 1}, {1, 1, 1}, {1}, {0}, {1}, 1),
          settings({1, 2, 6, 7}, {4, 1, 2, 3}, {2, 1}, {1, 0}, {1, 2}, 2, true),
          settings({2, 2, 7, 5}, {2, 2, 3, 2}, {3, 2}, {2, 1}, {2, 3}, 1),
          settings({1, 3, 6, 6}, {3, 1, 3, 3}, {1}, {2}, {2}, 3),
          settings({1, 2, 1, 7}, {3, 2, 1, 5}, {1, 2}, {0, 2}, {1}, 1, true),
          settings({1, 2, 4, 3, 4}, {4, 1, 2, 1, 3}, {2, 1, 1}, {0, 1, 1}, {1}, 2, true),
          settings({1, 1, 5, 4, 5}, {2, 1, 2, 2, 2}, {2}, {1}, {2}, 1),
          settings({2, 2, 3, 3, 3}, {2, 2, 3, 3, 3}, {1}, {1}, {1}, 1),
          settings({1, 4, 5, 6}, {2, 2, 3, 3}, {2}, {1}, {1}, 2, true),
          {{{{2, 3, 7}}, {{4, 3, 3}}}, {{"same", true}}},
          {{{{2, 2, 7}}, {{4, 1, 4}}, {{4}}},
           {{"same", true}, {"groups", std::int64_t{2}}, {"dilation", Integers{3}}}},
          {{{{1, 2, 5, 6}}, {{3, 2, 2, 3}}, {{3}}}, {{"same", true}, {"dilation", Integers{1, 2}}}},
          {{{{1, 2, 3, 4, 3}}, {{2, 2, 2, 1, 3}}}, {{"same", true}}}};
}

std::vector<ErrorSample> conv_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4, 3}}}, .mentions = "(2, 3)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3, 7}}, {{4, 2, 3}}}, .mentions = "(4, 2, 3)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3, 7}}, {{4, 3, 3, 3}}}, .mentions = "(4, 3, 3, 3)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3, 7}}, {{4, 3, 8}}}, .mentions = "8"},
          {.refusal = Refusal::shape, .operands = {{{2, 3, 7}}, {{4, 3, 0}}}, .mentions = "(4, 3, 0)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3, 7}}, {{4, 3, 3}}, {{3}}}, .mentions = "(3,)"},
          {.refusal = Refusal::value,
           .operands = {{{2, 3, 7}}, {{4, 3, 3}}},
           .arguments = {{"stride", Integers{0}}},
           .mentions = "stride is 0"},
          {.refusal = Refusal::value,
           .operands = {{{2, 3, 7}}, {{4, 3, 3}}},
           .arguments = {{"stride", Integers{std::numeric_limits<std::int64_t>::max()}}},
           .mentions = "less than 2^31"},
          {.refusal = Refusal::value,
           .operands = {{{2, 3, 7}}, {{4, 3, 3}}},
           .arguments = {{"padding", Integers{1, 1}}},
           .mentions = "2 values"},
          {.refusal = Refusal::value,
           .operands = {{{2, 3, 7}}, {{4, 3, 3}}},
           .arguments = {{"groups", std::int64_t{0}}},
           .mentions = "groups is 0"},
          {.refusal = Refusal::value,
           .operands = {{{2, 3, 7}}, {{4, 3, 3}}},
           .arguments = {{"same", true}, {"stride", Integers{2}}},
           .mentions = "strides of 1"},
          {.refusal = Refusal::value,
           .operands = {{{2, 3, 7}}, {{4, 3, 3}}},
           .arguments = {{"same", true}, {"padding", Integers{1}}},
           .mentions = "no padding"}};
}

std::vector<Sample> transpose_samples(const Operation&) {
  return {
      {{{{2, 3, 5}}, {{3, 4, 3}}}},
      {{{{2, 3, 5}}, {{3, 4, 3}}, {{4}}},
       {{"stride", Integers{2}}, {"padding", Integers{1}}, {"output_padding", Integers{1}}}},
      {{{{1, 4, 4}}, {{4, 3, 2}}, {{6}}}, {{"groups", std::int64_t{2}}, {"dilation", Integers{3}}}},
      {{{{1, 2, 3, 4}}, {{2, 3, 3, 2}}, {{3}}}, {{"stride", Integers{2, 1}}, {"padding", Integers{1, 0}}}},
      {{{{0, 3, 5}}, {{3, 4, 3}}}},
      {{{{1, 2, 6}}, {{2, 2, 2}}}, {{"padding", Integers{3}}}},
      {{{{1, 2, 2, 3, 2}}, {{2, 2, 2, 1, 2}}}, {{"stride", Integers{2}}}},
      settings({2, 2, 4}, {2, 3, 3}, {3}, {1}, {2}, 1, true, {2}),
      settings({1, 4, 5}, {4, 1, 2}, {2}, {0}, {1}, 2, false, {1}),
      settings({1, 2, 3}, {2, 2, 4}, {1}, {2}, {1}, 1, true, {0}),
      settings({1, 2, 3, 4}, {2, 1, 2, 3}, {2, 1}, {1, 0}, {1, 2}, 2, true, {1, 1}),
      settings({1, 2, 4, 3}, {2, 2, 3, 3}, {2}, {1}, {1}, 1, false, {1}),
      settings({2, 1, 2, 2}, {1, 2, 2, 2}, {3, 2}, {0, 1}, {2, 1}, 1, true, {2, 0}),
      settings({1, 4, 3, 3}, {4, 1, 3, 1}, {1, 2}, {1, 0}, {1}, 4, true, {0, 1}),
      settings({1, 2, 2, 2, 3}, {2, 1, 2, 3, 1}, {2, 1, 2}, {0, 1, 0}, {1}, 2, true, {1, 0, 1}),
      settings({1, 1, 3, 2, 2}, {1, 2, 2, 2, 2}, {1}, {1}, {2}, 1, false, {0})};
}

std::vector<ErrorSample> transpose_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3, 7}}, {{4, 3, 3}}}, .mentions = "(4, 3, 3)"},
          {.refusal = Refusal::shape,
           .operands = {{{2, 3, 2}}, {{3, 4, 1}}},
           .arguments = {{"padding", Integers{5}}},
           .mentions = "(2, 3, 2)"},
          {.refusal = Refusal::value,
           .operands = {{{2, 3, 7}}, {{3, 4, 3}}},
           .arguments = {{"output_padding", Integers{1}}},
           .mentions = "output_padding 1"},
          {.refusal = Refusal::value,
           .operands = {{{2, 3, 7}}, {{3, 4, 3}}},
           .arguments = {{"same", true}},
           .mentions = "conv alone"}};
}

constexpr EntriesOf entry{"convolution", kFloating};

}  // namespace

std::span<const Operation> convolution_operations() {
  static const Operation kTable[] = {
      entry(
          "conv", "conv(x, weight, bias=none, {stride, padding, dilation, groups, same=false})",
          "Cross-correlation over 1, 2 or 3 spatial axes: x (N, C, D...), weight (O, C / groups, K...). With "
          "same the result has x's extents.",
          call_conv<caldera::conv>, conv_samples, conv_errors),
      entry(
          "conv_transpose",
          "conv_transpose(x, weight, bias=none, {stride, padding, dilation, groups, output_padding})",
          "The transposed convolution, the gradient of conv with respect to x: weight (C, O / groups, K...).",
          call_conv<caldera::conv_transpose>, transpose_samples, transpose_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
