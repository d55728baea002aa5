// Of the suite "ops": functions and quotients of elements, order, windows, picked elements.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "benches/suites/op_case.h"
#include "ops/core/arithmetic.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/loss/cross_entropy.h"
#include "ops/sort/order_statistics.h"
#include "ops/sort/sorting.h"
#include "ops/spatial/convolution.h"
#include "ops/spatial/pooling.h"

namespace caldera::bench {
namespace {

const Shape kMillion{1'000'000};

void add_angles_and_quotients(std::vector<Case>& cases) {
  const double n = static_cast<double>(kMillion.numel());
  const auto unary = [&](const std::string& name, LazyTensor (*function)(const LazyTensor&)) {
    add(cases, {.name = "elementwise/" + name,
                .operands = {kMillion},
                .function = [=](const Tensors& t) { return function(t[0]); },
                .peer = name,
                .flops = n});
  };
  unary("tan", tan);
  unary("asin", asin);
  unary("acos", acos);
  unary("atan", atan);
  const auto binary = [&](const std::string& name,
                          LazyTensor (*function)(const LazyTensor&, const LazyTensor&)) {
    add(cases, {.name = "elementwise/" + name,
                .operands = {kMillion, kMillion},
                .function = [=](const Tensors& t) { return function(t[0], t[1]); },
                .peer = name,
                .flops = n});
  };
  binary("atan2", atan2);
  binary("remainder", remainder);
  binary("floor_divide", floor_divide);
}

void add_order(std::vector<Case>& cases) {
  const Shape rows{1000, 10000}, short_rows{32000, 8};
  const auto ordered = [&](const std::string& name, const Shape& shape, const std::string& peer,
                           nlohmann::json parameters, TensorFunction function) {
    return OpCase{.name = "sort/" + name,
                  .operands = {shape},
                  .function = std::move(function),
                  .peer = peer,
                  .parameters = std::move(parameters)};
  };
  const nlohmann::json none = nlohmann::json::object();
  add(cases, ordered("million", kMillion, "sort", none, [](const Tensors& t) { return sort(t[0]); }));
  add_both(cases, ordered("rows", short_rows, "sort", none, [](const Tensors& t) { return sort(t[0]); }), 1,
           0);
  add_both(cases,
           ordered("median", short_rows, "median", none, [](const Tensors& t) { return median(t[0]); }), 1,
           0);
  add(cases, ordered("topk_of_million", kMillion, "topk", {{"k", 1000}},
                     [](const Tensors& t) { return topk(t[0], 1000).values; }));
  add(cases, ordered("topk_of_rows", rows, "topk", {{"k", 50}},
                     [](const Tensors& t) { return topk(t[0], 50).values; }));
}

void add_windows(std::vector<Case>& cases) {
  const Shape image{1, 3, 224, 224};
  for (const std::int64_t k : {2, 28}) {
    add_both(cases,
             {.name = fmt::format("pool/max_{}", k),
              .operands = {image},
              .function =
                  [=](const Tensors& t) {
                    return max_pool(t[0], {k, k});
                  },
              .peer = "max_pool2d",
              .parameters = {{"kernel", k}, {"stride", k}, {"padding", 0}}},
             1, 0);
  }
  add_both(cases,
           {.name = "pool/max_3_overlapping",
            .operands = {image},
            .function =
                [](const Tensors& t) {
                  return max_pool(t[0], {3, 3}, {.stride = {2}, .padding = {1}});
                },
            .peer = "max_pool2d",
            .parameters = {{"kernel", 3}, {"stride", 2}, {"padding", 1}}},
           1, 0);
  const double taps = 4.0 * 64 * 56 * 56 * 9;
  add_both(cases,
           {.name = "conv/depthwise",
            .operands = {{4, 64, 56, 56}, {64, 1, 3, 3}},
            .function = [](const Tensors& t) { return conv(t[0], t[1], {}, {.padding = {1}, .groups = 64}); },
            .peer = "conv2d",
            .parameters = {{"padding", 1}, {"groups", 64}},
            .flops = 2 * taps},
           2, 4 * taps);
  const double products = 2.0 * 8 * 8 * 27 * 16 * 16 * 16;
  add(cases, {.name = "conv/transposed_volume",
              .operands = {{2, 8, 16, 16, 16}, {8, 8, 3, 3, 3}},
              .function = [](const Tensors& t) { return conv_transpose(t[0], t[1], {}, {.stride = {2}}); },
              .peer = "conv_transpose3d",
              .parameters = {{"stride", 2}},
              .flops = 2 * products});
  constexpr std::int64_t kRows = 2048, kClasses = 10000;
  add(cases, {.name = "loss/nll",
              .operands = {{kRows, kClasses}},
              .function = [](const Tensors& t) { return nll_loss(t[0], t[1]); },
              .peer = "nll_loss",
              .flops = static_cast<double>(kRows),
              .indices = kRows,
              .index_limit = kClasses,
              .bytes = f32_bytes(static_cast<double>(kRows))});
}

}  // namespace

void add_windowed_and_ordered(std::vector<Case>& cases) {
  add_angles_and_quotients(cases);
  add_order(cases);
  add_windows(cases);
}

}  // namespace caldera::bench
