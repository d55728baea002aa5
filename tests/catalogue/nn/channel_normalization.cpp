// The entries of the family `channel_normalization`.
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/operands.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
constexpr Range kVariance{.low = 0.25, .high = 2};

/// Of running statistics, weight and bias none, the first two or all; `parameters` is where weight and bias
/// begin.
Results call_batch_norm(Tensors x, const Arguments& a) {
  const bool training = a.flag("training", false);
  // A call in training without running statistics has x, or x, weight and bias.
  const bool tracked = a.flag("tracked", true);
  const std::size_t parameters = tracked ? 3 : 1;
  const BatchNormResult y =
      batch_norm(x[0], tracked ? x[1] : LazyTensor(), tracked ? x[2] : LazyTensor(),
                 optional_operand(x, parameters), optional_operand(x, parameters + 1),
                 {.training = training, .momentum = a.real("momentum", 0.1), .eps = a.real("eps", 1e-5)});
  if (training && tracked) return {y.output, y.running_mean, y.running_var};
  return {y.output};
}

std::vector<Sample> batch_norm_samples(const Operation&) {
  std::vector<Sample> out;
  const auto add = [&](const Shape& shape, bool tracked, std::size_t parameters, const Arguments& arguments) {
    const Shape channels{shape[1]};
    Sample sample{{{shape}}, arguments};
    if (tracked) {
      sample.operands.push_back({channels});
      sample.operands.push_back({channels, kVariance});
    } else {
      sample.arguments.set("tracked", false);
    }
    for (std::size_t i = 0; i < parameters; ++i) sample.operands.push_back({channels});
    out.push_back(std::move(sample));
  };
  for (const Shape& shape : {Shape{5, 3}, Shape{2, 3, 4}, Shape{2, 1, 3, 2}, Shape{1, 2, 2, 2, 2}}) {
    for (const std::size_t parameters : {0, 1, 2}) {
      add(shape, true, parameters, {{"training", false}, {"eps", 0.0625}});
      add(shape, true, parameters, {{"training", true}, {"eps", 0.0625}});
    }
    add(shape, false, 2, {{"training", true}, {"momentum", 0.25}});
    add(shape, true, 2, {{"training", true}, {"momentum", 0.25}});
  }
  add({3, 33}, true, 2, {});
  add({0, 3}, true, 2, {});
  return out;
}

std::vector<ErrorSample> batch_norm_errors(const Operation&) {
  const Arguments training{{"training", true}};
  return {{Refusal::shape, {{{3}}, {{3}}, {{3}}}, {}, "(3,)"},
          {Refusal::shape, {{{2, 3}}, {{2}}, {{3}}}, {}, "(2,)"},
          {Refusal::shape, {{{2, 3}}, {{3}}, {{1, 3}}}, {}, "(1, 3)"},
          {Refusal::shape, {{{2, 3}}, {{3}}, {{3}}, {{4}}}, {}, "(4,)"},
          {Refusal::shape, {{{2, 3}}, {{3}}, {{3}}, {{3}}, {{}}}, {}, "bias ()"},
          {Refusal::shape, {{{1, 3}}, {{3}}, {{3}}}, training, "(1, 3)"},
          {Refusal::shape, {{{}}, {{3}}, {{3}}}, {}, "channels, ...)"},
          {Refusal::value, {{{2, 3}}, {{3}}, {{3}}}, {{"eps", -1.0}}, "eps is -1"},
          {Refusal::value, {{{2, 3}}}, {{"tracked", false}}, "not given"}};
}

std::vector<Sample> affine_samples(const std::vector<Shape>& shapes,
                                   const std::vector<std::int64_t>& groups) {
  std::vector<Sample> out;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const Shape channels{shapes[k][1]};
    for (const std::size_t parameters : {0, 1, 2}) {
      Sample sample{{{shapes[k]}}, {{"eps", 0.0625}}};
      if (!groups.empty()) sample.arguments = {{"groups", groups[k]}, {"eps", 0.0625}};
      for (std::size_t i = 0; i < parameters; ++i) sample.operands.push_back({channels});
      out.push_back(std::move(sample));
    }
  }
  return out;
}

}  // namespace

std::span<const Operation> channel_normalization_operations() {
  static const Operation kTable[] = {
      {.name = "batch_norm",
       .family = "channel_normalization",
       .signature =
           "batch_norm(x, running_mean, running_var, weight=none, bias=none, {training=false, momentum=0.1, "
           "eps=1e-5})",
       .summary =
           "(x - mean) / sqrt(var + eps) for each channel (axis 1), times weight, plus bias; with the new "
           "running statistics beside it. In training the statistics are those of x, otherwise the "
           "running ones.",
       .types = kFloating,
       .call = call_batch_norm,
       .samples = batch_norm_samples,
       .errors = batch_norm_errors},
      {.name = "group_norm",
       .family = "channel_normalization",
       .signature = "group_norm(x, groups, weight=none, bias=none, eps=1e-5)",
       .summary =
           "(x - mean) / sqrt(var + eps) for each example and group of channels, times weight, plus bias.",
       .types = kFloating,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {group_norm(x[0], a.integer("groups", 1), optional_operand(x, 1), optional_operand(x, 2),
                            a.real("eps", 1e-5))};
       },
       .samples =
           [](const Operation&) {
             return affine_samples({{5, 4}, {2, 6, 3}, {2, 6, 3}, {2, 4, 3, 2}, {1, 3, 1, 2, 2}, {0, 4, 2}},
                                   {2, 3, 1, 4, 3, 2});
           },
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{Refusal::shape, {{{4}}}, {{"groups", std::int64_t{1}}}, "(4,)"},
                 {Refusal::shape, {{{2, 4}}}, {{"groups", std::int64_t{3}}}, "(2, 4)"},
                 {Refusal::shape, {{{2, 4}}}, {{"groups", std::int64_t{0}}}, "(2, 4)"},
                 {Refusal::value, {{{2, 4}}}, {{"groups", std::int64_t{2}}, {"eps", -1.0}}, "eps is -1"},
                 {Refusal::shape, {{{2, 4}}, {{2}}}, {{"groups", std::int64_t{2}}}, "(2,)"}};
       }},
      {.name = "instance_norm",
       .family = "channel_normalization",
       .signature = "instance_norm(x, weight=none, bias=none, eps=1e-5)",
       .summary = "(x - mean) / sqrt(var + eps) for each channel of each example, times weight, plus bias.",
       .types = kFloating,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {instance_norm(x[0], optional_operand(x, 1), optional_operand(x, 2), a.real("eps", 1e-5))};
       },
       .samples =
           [](const Operation&) {
             return affine_samples({{2, 3, 7}, {1, 1, 33}, {2, 3, 2, 2}, {1, 2, 2, 1, 3}, {0, 2, 3}}, {});
           },
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{Refusal::shape, {{{2, 3}}}, {}, "(2, 3)"},
                 {Refusal::shape, {{{2, 3, 1}}}, {}, "(2, 3, 1)"},
                 {Refusal::value, {{{2, 3, 4}}}, {{"eps", -1.0}}, "eps is -1"},
                 {Refusal::shape, {{{2, 3, 4}}, {{4}}}, {}, "(4,)"}};
       }},
  };
  return kTable;
}

}  // namespace caldera::catalogue
