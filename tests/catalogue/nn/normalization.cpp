// The entries of the family `normalization`.
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

std::vector<Sample> norm_samples(std::size_t parameters) {
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{7}, Shape{1, 33}, Shape{2, 3, 5}, Shape{0, 3}}) {
    for (std::size_t count = 0; count <= parameters; ++count) {
      Sample sample{{{shape}}, {{"eps", 0.0625}}};
      for (std::size_t i = 0; i < count; ++i) sample.operands.push_back({Shape{shape.back()}});
      out.push_back(sample);
    }
  }
  return out;
}

std::vector<ErrorSample> norm_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{2}}}, .mentions = "(2,)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3}}, {{1, 3}}}, .mentions = "(1, 3)"}};
}

std::vector<Sample> layer_norm_samples(const Operation&) {
  std::vector<Sample> out = norm_samples(2);
  for (const std::size_t parameters : {0, 1, 2}) {
    for (const auto& [shape, last] : {std::pair<Shape, Shape>{{2, 3, 4}, {3, 4}},
                                      {{3, 5}, {3, 5}},
                                      {{2, 1, 3, 2}, {1, 3, 2}},
                                      {{0, 3, 2}, {3, 2}}}) {
      Sample sample{{{shape}}, {{"eps", 0.0625}, {"axes", std::int64_t{last.rank()}}}};
      for (std::size_t i = 0; i < parameters; ++i) sample.operands.push_back({last});
      out.push_back(std::move(sample));
    }
  }
  return out;
}

std::vector<ErrorSample> layer_norm_errors(const Operation& op) {
  std::vector<ErrorSample> out = norm_errors(op);
  out.push_back({Refusal::shape, {{{2, 3}}}, {{"axes", std::int64_t{3}}}, "(2, 3)"});
  out.push_back({Refusal::shape, {{{2, 3}}}, {{"axes", std::int64_t{0}}}, "(2, 3)"});
  out.push_back({Refusal::shape, {{{2, 3}}, {{3}}}, {{"axes", std::int64_t{2}}}, "(3,)"});
  return out;
}

template <LazyTensor (*F)(const LazyTensor&, AxisIndex)>
std::vector<LazyTensor> call_along(Tensors x, const Arguments& a) {
  return {F(x[0], a.axis("axis", -1))};
}

std::vector<Sample> one_hot_samples(const Operation&) {
  const Operand four{.shape = {4}, .dtype = DType::i32, .values = {0, 2, 1, 4}};
  const Operand matrix{.shape = {2, 2}, .dtype = DType::i32, .values = {-1, 1, 2, 3}};
  std::vector<Sample> out;
  for (const DType type : {DType::f32, DType::f64, DType::i32, DType::boolean}) {
    for (const Operand& indices : {four, matrix, index_operand({0, 2}, {})}) {
      out.push_back({{indices}, {{"classes", std::int64_t{3}}, {"dtype", type}}});
    }
  }
  return out;
}

}  // namespace

std::span<const Operation> normalization_operations() {
  static const Operation kTable[] = {
      {.name = "softmax",
       .family = "normalization",
       .signature = "softmax(x, axis=-1)",
       .summary = "exp(x) over its sum along an axis, computed from x - max(x).",
       .types = kAnyType,
       .result = ResultType::floating,
       .call = call_along<caldera::softmax>,
       .samples = axis_samples,
       .errors = axis_errors},
      {.name = "log_softmax",
       .family = "normalization",
       .signature = "log_softmax(x, axis=-1)",
       .summary = "The logarithm of softmax, without its cancellation.",
       .types = kAnyType,
       .result = ResultType::floating,
       .call = call_along<caldera::log_softmax>,
       .samples = axis_samples,
       .errors = axis_errors},
      {.name = "logsumexp",
       .family = "normalization",
       .signature = "logsumexp(x, axis=-1, keepdims=false)",
       .summary = "log(sum(exp(x))) over one axis or several, without overflow.",
       .types = kAnyType,
       .result = ResultType::floating,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         const Axes axes = a.has("axes") ? Axes(a.axes("axes")) : Axes(a.axis("axis", -1));
         return {caldera::logsumexp(x[0], axes, a.flag("keepdims", false))};
       },
       .samples =
           [](const Operation& op) {
             std::vector<Sample> out = axis_samples(op);
             out.push_back({{{{3, 5}}}, {{"axis", std::int64_t{0}}, {"keepdims", true}}});
             out.push_back({{{{3, 0}}}});
             out.push_back({{{{3, 0}}}, {{"keepdims", true}}});
             out.push_back({{{{2, 3, 4}}}, {{"axes", Arguments::Integers{0, -1}}}});
             out.push_back({{{{2, 3, 4}}}, {{"axes", Arguments::Integers{2, 1}}, {"keepdims", true}}});
             return out;
           },
       .errors = axis_errors},
      {.name = "rms_norm",
       .family = "normalization",
       .signature = "rms_norm(x, eps, weight=none)",
       .summary = "x / sqrt(mean(x^2) + eps) over the last axis (Zhang and Sennrich 2019), times weight.",
       .types = kFloating,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::rms_norm(x[0], a.real("eps", 1e-5), optional_operand(x, 1))};
       },
       .samples = [](const Operation&) { return norm_samples(1); },
       .errors =
           [](const Operation& op) {
             std::vector<ErrorSample> out = norm_errors(op);
             out.push_back({.refusal = Refusal::shape, .operands = {{{}}}, .mentions = "()"});
             return out;
           }},
      {.name = "layer_norm",
       .family = "normalization",
       .signature = "layer_norm(x, eps, weight=none, bias=none, axes=1)",
       .summary = "(x - mean) / sqrt(variance + eps) over the last `axes` axes together (Ba, Kiros and "
                  "Hinton 2016), times weight, plus bias.",
       .types = kFloating,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::layer_norm(x[0], a.real("eps", 1e-5), optional_operand(x, 1),
                                     optional_operand(x, 2), a.axis("axes", 1))};
       },
       .samples = layer_norm_samples,
       .errors = layer_norm_errors},
      {.name = "one_hot",
       .family = "normalization",
       .signature = "one_hot(indices, classes, dtype=float32)",
       .summary = "1 where the new last axis' coordinate is the index, else 0; all 0 for an index outside.",
       .types = {},
       .result = ResultType::argument,
       .gradient = Gradient::none,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::one_hot(x[0], a.integer("classes", 0), a.dtype("dtype", DType::f32))};
       },
       .samples = one_hot_samples,
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{Refusal::value, {index_operand({2}, {0, 1})}, {{"classes", std::int64_t{-99}}}, "-99"}};
       }},
  };
  return kTable;
}

}  // namespace caldera::catalogue
