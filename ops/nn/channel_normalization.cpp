#include "ops/nn/channel_normalization.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "ops/core/node_builder.h"
#include "ops/table/families.h"
#include "ops/table/operands.h"

namespace caldera {
namespace {

void check_image(const char* op, const LazyTensor& x, int rank) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  if (x.rank() < rank)
    throw ShapeError(fmt::format("{}: {} is not (batch, channels{})", op, x.shape().to_string(),
                                 rank == 2 ? ", ..." : ", extent, ..."));
}

void check_eps(const char* op, double eps) {
  // Written so that NaN is refused too.
  if (!(eps >= 0)) throw ValueError(fmt::format("{}: eps is {}, want 0 or more", op, eps));
}

void check_channels(const char* op, const char* what, const LazyTensor& x, const LazyTensor& parameter) {
  if (!parameter.defined()) return;
  if (parameter.shape() != Shape{x.shape(1)})
    throw ShapeError(fmt::format("{}: {} {} is not one value for each channel of {}", op, what,
                                 parameter.shape().to_string(), x.shape().to_string()));
  ops::check_domain(op, ScalarDomain::floating, parameter.dtype());
}

/// A value for each channel as it broadcasts to x.
LazyTensor across(const LazyTensor& parameter, const LazyTensor& x) {
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) shape.push_back(i == 1 ? x.shape(1) : 1);
  return reshape(parameter, shape);
}

/// normalised * weight + bias, in the type of the result. `x` is what was normalised.
LazyTensor scaled(const char* op, const LazyTensor& x, const LazyTensor& normalised, const LazyTensor& weight,
                  const LazyTensor& bias) {
  check_channels(op, "weight", x, weight);
  check_channels(op, "bias", x, bias);
  DType type = x.dtype();
  LazyTensor out = normalised;
  if (weight.defined()) {
    type = promote(type, weight.dtype());
    out = out * across(weight, x);
  }
  if (bias.defined()) {
    type = promote(type, bias.dtype());
    out = out + across(bias, x);
  }
  return astype(out, type);
}

/// layer_norm over groups of each example's channels.
LazyTensor grouped(const LazyTensor& x, std::int64_t groups, double eps) {
  const std::int64_t batch = x.shape(0);
  const std::int64_t values = x.numel() == 0 ? 0 : x.numel() / (batch * groups);
  LazyTensor y = astype(x, compute_type(x.dtype()));
  if (x.numel() == 0) return y;
  return reshape(layer_norm(reshape(y, Shape{batch, groups, values}), eps), x.shape());
}

/// One step of an exponential average, in the type of the average.
LazyTensor moved(const LazyTensor& running, const LazyTensor& now, double momentum) {
  if (!running.defined()) return running;
  const LazyTensor before = astype(running, now.dtype());
  return astype(before * (1 - momentum) + now * momentum, running.dtype());
}

}  // namespace

BatchNormResult batch_norm(const LazyTensor& x, const LazyTensor& running_mean, const LazyTensor& running_var,
                           const LazyTensor& weight, const LazyTensor& bias,
                           const BatchNormOptions& options) {
  constexpr const char* kOp = "batch_norm";
  check_image(kOp, x, 2);
  check_eps(kOp, options.eps);
  check_channels(kOp, "running_mean", x, running_mean);
  check_channels(kOp, "running_var", x, running_var);
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  BatchNormResult out{{}, running_mean, running_var};
  LazyTensor centre, variance;  // (1, channels, 1, ...)
  if (options.training) {
    const std::int64_t count = x.numel() / std::max<std::int64_t>(1, x.shape(1));
    if (count < 2 && x.shape(1) > 0)
      throw ShapeError(fmt::format("batch_norm: {} has {} values a channel; training needs at least 2",
                                   x.shape().to_string(), count));
    std::vector<int> others{0};
    for (int i = 2; i < x.rank(); ++i) others.push_back(i);
    centre = mean(y, others, true);
    variance = var(y, others, 0, true);
    const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
    const Shape channels{x.shape(1)};
    out.running_mean = moved(running_mean, reshape(centre, channels), options.momentum);
    out.running_var = moved(running_var, reshape(variance, channels) * unbiased, options.momentum);
  } else {
    if (!running_mean.defined() || !running_var.defined())
      throw ValueError("batch_norm: running statistics are not given, and it is not training");
    centre = across(astype(running_mean, y.dtype()), x);
    variance = across(astype(running_var, y.dtype()), x);
  }
  out.output = scaled(kOp, x, (y - centre) * rsqrt(variance + options.eps), weight, bias);
  return out;
}

LazyTensor group_norm(const LazyTensor& x, std::int64_t groups, const LazyTensor& weight,
                      const LazyTensor& bias, double eps) {
  check_image("group_norm", x, 2);
  check_eps("group_norm", eps);
  if (groups < 1 || x.shape(1) % groups != 0)
    throw ShapeError(
        fmt::format("group_norm: {} groups do not divide the channels of {}", groups, x.shape().to_string()));
  return scaled("group_norm", x, grouped(x, groups, eps), weight, bias);
}

LazyTensor instance_norm(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias, double eps) {
  check_image("instance_norm", x, 3);
  check_eps("instance_norm", eps);
  if (x.numel() > 0 && x.numel() == x.shape(0) * x.shape(1))
    throw ShapeError(fmt::format("instance_norm: {} has one value a channel, which is its own mean",
                                 x.shape().to_string()));
  return scaled("instance_norm", x, grouped(x, std::max<std::int64_t>(1, x.shape(1)), eps), weight, bias);
}

namespace ops {
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
           "running "
           "statistics beside it. In training the statistics are those of x, otherwise the running ones.",
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

}  // namespace ops
}  // namespace caldera
