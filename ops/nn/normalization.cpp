// Softmax and its relatives, RMSNorm, LayerNorm, gates: composites of primitives.
#include <fmt/core.h>

#include <limits>
#include <string>
#include <utility>

#include "ops/core/node_builder.h"
#include "ops/table/families.h"
#include "ops/table/operands.h"
#include "ops/table/samples.h"

namespace caldera {
namespace {

/// Subtracting the maximum cannot change the result, so no gradient needs to pass through it.
LazyTensor shifted(const LazyTensor& x, int axis) { return x - stop_gradient(max(x, axis, true)); }

/// The type of the result: that of x, if it is floating.
DType result_type(const LazyTensor& x) { return is_floating(x.dtype()) ? x.dtype() : DType::f32; }

/// What is computed with. 16-bit types become f32, and the result is rounded to them once: sums of squares
/// and of exponentials would lose most digits, or overflow.
LazyTensor as_computed(const LazyTensor& x) { return astype(x, compute_type(result_type(x))); }

/// A parameter of the last `axes` axes of x.
void check_parameter(const char* op, const LazyTensor& x, const LazyTensor& parameter, int axes = 1) {
  bool fits = parameter.rank() == axes && x.rank() >= axes;
  for (int i = 1; fits && i <= axes; ++i) fits = parameter.shape(-i) == x.shape(-i);
  if (fits) return;
  throw ShapeError(fmt::format("{}: parameter {} must be one value for each element of the last {} of {}", op,
                               parameter.shape().to_string(),
                               axes == 1 ? std::string("axis") : fmt::format("{} axes", axes),
                               x.shape().to_string()));
}

/// x with the last `axes` axes as one.
LazyTensor flattened(const LazyTensor& x, int axes) {
  if (axes == 1) return x;
  Shape shape;
  for (int i = 0; i + axes < x.rank(); ++i) shape.push_back(x.shape(i));
  std::int64_t together = 1;
  for (int i = 1; i <= axes; ++i) together *= x.shape(-i);
  shape.push_back(together);
  return reshape(x, shape);
}

}  // namespace

LazyTensor softmax(const LazyTensor& x, int axis) {
  return ops::along_axis("softmax", x, axis, [](const LazyTensor& given, int at) {
    if (given.numel() == 0) return astype(given, result_type(given));
    const LazyTensor e = exp(shifted(as_computed(given), at));
    return astype(e / sum(e, at, true), result_type(given));
  });
}

LazyTensor log_softmax(const LazyTensor& x, int axis) {
  return ops::along_axis("log_softmax", x, axis, [](const LazyTensor& given, int at) {
    if (given.numel() == 0) return astype(given, result_type(given));
    const LazyTensor d = shifted(as_computed(given), at);
    return astype(d - log(sum(exp(d), at, true)), result_type(given));
  });
}

LazyTensor logsumexp(const LazyTensor& x, int axis, bool keepdims) {
  return ops::along_axis("logsumexp", x, axis, [&](const LazyTensor& given, int at) {
    const LazyTensor y = as_computed(given);
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (given.shape(at) == 0) return astype(sum(y, at, keepdims) - kInfinity, result_type(given));  // log(0)
    const LazyTensor highest = stop_gradient(max(y, at, true));
    // An infinite maximum is not subtracted: inf - inf would be NaN where the limit is that infinity.
    const LazyTensor infinite = abs(highest) == kInfinity;
    const LazyTensor top = where(infinite, zeros_like(highest), highest);
    const LazyTensor out = astype(log(sum(exp(y - top), at, true)) + top, result_type(given));
    return keepdims ? out : squeeze(out, at);
  });
}

LazyTensor rms_norm(const LazyTensor& x, double eps, const LazyTensor& weight) {
  ops::check_domain("rms_norm", ScalarDomain::floating, x.dtype());
  if (x.rank() == 0) throw ShapeError("rms_norm: () has no last axis");
  const LazyTensor y = as_computed(x);
  LazyTensor scaled = y * rsqrt(mean(y * y, -1, true) + eps);
  if (!weight.defined()) return astype(scaled, result_type(x));
  check_parameter("rms_norm", x, weight);
  return astype(scaled * weight, promote(result_type(x), weight.dtype()));
}

LazyTensor layer_norm(const LazyTensor& x, double eps, const LazyTensor& weight, const LazyTensor& bias,
                      int axes) {
  ops::check_domain("layer_norm", ScalarDomain::floating, x.dtype());
  if (axes < 1 || axes > x.rank())
    throw ShapeError(fmt::format("layer_norm: {} has no last {} axes", x.shape().to_string(), axes));
  const LazyTensor y = flattened(as_computed(x), axes);
  const LazyTensor centred = y - mean(y, -1, true);
  LazyTensor out = centred * rsqrt(mean(centred * centred, -1, true) + eps);
  DType type = result_type(x);
  if (weight.defined()) {
    check_parameter("layer_norm", x, weight, axes);
    type = promote(type, weight.dtype());
    out = out * flattened(weight, axes);
  }
  if (bias.defined()) {
    check_parameter("layer_norm", x, bias, axes);
    type = promote(type, bias.dtype());
    out = out + flattened(bias, axes);
  }
  out = astype(out, type);
  return axes == 1 ? out : reshape(out, x.shape());
}

LazyTensor one_hot(const LazyTensor& indices, std::int64_t classes, DType dtype) {
  if (classes < 0) throw ValueError(fmt::format("one_hot: there are no {} classes", classes));
  Shape shape = indices.shape();
  shape.push_back(classes);
  return astype(expand_dims(indices, -1) == iota(shape, -1, DType::i32, indices.device()), dtype);
}

namespace ops {
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

template <LazyTensor (*F)(const LazyTensor&, int)>
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
       .summary = "log(sum(exp(x))) along an axis, without overflow.",
       .types = kAnyType,
       .result = ResultType::floating,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::logsumexp(x[0], a.axis("axis", -1), a.flag("keepdims", false))};
       },
       .samples =
           [](const Operation& op) {
             std::vector<Sample> out = axis_samples(op);
             out.push_back({{{{3, 5}}}, {{"axis", std::int64_t{0}}, {"keepdims", true}}});
             out.push_back({{{{3, 0}}}});
             out.push_back({{{{3, 0}}}, {{"keepdims", true}}});
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
                  "Hinton 2016), times "
                  "weight, plus bias.",
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

}  // namespace ops
}  // namespace caldera
