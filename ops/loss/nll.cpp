#include "ops/loss/nll.h"

#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include "ops/core/node_builder.h"
#include "ops/loss/loss_operands.h"
#include "ops/table/families.h"

namespace caldera {
namespace {

constexpr double kLeastLogarithm = -100;  // of binary_cross_entropy

/// max(log(x), -100). At 0 the logarithm of something else is taken: its slope would be infinite, times 0.
LazyTensor limited_log(const LazyTensor& x) {
  const LazyTensor zero = equal(x, 0.0);
  const LazyTensor logarithm = log(where(zero, ones_like(x), x));
  return where(logical_or(zero, less(logarithm, kLeastLogarithm)), full_like(x, kLeastLogarithm), logarithm);
}

/// x * log(x), and 0 at 0.
LazyTensor times_log(const LazyTensor& x) {
  const LazyTensor zero = equal(x, 0.0);
  return where(zero, zeros_like(x), x * log(where(zero, ones_like(x), x)));
}

/// `var` as it broadcasts to the input: of its shape, or with 1 or nothing in place of the last axis. Other
/// shapes that would broadcast are refused, as in PyTorch: (3) beside (2, 3) means something else than beside
/// (3, 3).
LazyTensor variance_for(const LazyTensor& input, const LazyTensor& var) {
  if (var.rank() == 0 || var.shape() == input.shape()) return var;
  Shape rows;
  for (int i = 0; i + 1 < input.rank(); ++i) rows.push_back(input.shape(i));
  if (var.shape() == rows) return expand_dims(var, -1);
  rows.push_back(1);
  if (var.shape() == rows) return var;
  throw ShapeError(
      fmt::format("gaussian_nll_loss: var {} must have the shape of the input {}, with 1 or nothing in "
                  "place of the last axis if it is shared along it",
                  var.shape().to_string(), input.shape().to_string()));
}

void check_same_shape(const char* op, const LazyTensor& input, const LazyTensor& target) {
  if (input.shape() != target.shape())
    throw ShapeError(fmt::format("{}: input {} and target {} must have the same shape", op,
                                 input.shape().to_string(), target.shape().to_string()));
}

}  // namespace

LazyTensor binary_cross_entropy(const LazyTensor& input, const LazyTensor& target, const LazyTensor& weight,
                                Reduction reduction) {
  check_same_shape("binary_cross_entropy", input, target);
  const ops::LossOperands x("binary_cross_entropy", {input, target}, {weight});
  LazyTensor losses = (x[1] - 1) * limited_log(1 - x[0]) - x[1] * limited_log(x[0]);
  if (weight.defined()) losses = losses * x.beside(weight, "weight");
  return x.reduced(losses, reduction);
}

LazyTensor binary_cross_entropy_with_logits(const LazyTensor& input, const LazyTensor& target,
                                            const LazyTensor& weight, Reduction reduction,
                                            const LazyTensor& pos_weight) {
  check_same_shape("binary_cross_entropy_with_logits", input, target);
  const ops::LossOperands x("binary_cross_entropy_with_logits", {input, target}, {weight, pos_weight});
  // -log(1 - sigmoid(x)) = x - log(sigmoid(x)).
  LazyTensor logarithm = log_sigmoid(x[0]);
  if (pos_weight.defined()) logarithm = logarithm * (x[1] * (x.beside(pos_weight, "pos_weight") - 1) + 1);
  LazyTensor losses = (1 - x[1]) * x[0] - logarithm;
  if (weight.defined()) losses = losses * x.beside(weight, "weight");
  return x.reduced(losses, reduction);
}

LazyTensor kl_div(const LazyTensor& input, const LazyTensor& target, Reduction reduction, bool log_target) {
  const ops::LossOperands x("kl_div", {input, target});
  return x.reduced(log_target ? exp(x[1]) * (x[1] - x[0]) : times_log(x[1]) - x[1] * x[0], reduction);
}

LazyTensor gaussian_nll_loss(const LazyTensor& input, const LazyTensor& target, const LazyTensor& var,
                             bool full, double eps, Reduction reduction) {
  if (!(eps > 0)) throw ValueError(fmt::format("gaussian_nll_loss: eps is {}, want it above 0", eps));
  const ops::LossOperands x("gaussian_nll_loss", {input, target, variance_for(input, var)});
  const LazyTensor below = where(less(x[2], eps), eps - x[2], zeros_like(x[2]));
  const LazyTensor variance = x[2] + stop_gradient(below);
  LazyTensor losses = (log(variance) + square(x[0] - x[1]) / variance) * 0.5;
  if (full) losses = losses + std::log(2 * std::numbers::pi) / 2;
  return x.reduced(losses, reduction);
}

LazyTensor poisson_nll_loss(const LazyTensor& input, const LazyTensor& target, bool log_input, bool full,
                            double eps, Reduction reduction) {
  const ops::LossOperands x("poisson_nll_loss", {input, target});
  LazyTensor losses = log_input ? exp(x[0]) - x[1] * x[0] : x[0] - x[1] * log(x[0] + eps);
  if (full) {
    const LazyTensor above = greater(x[1], 1.0);
    const LazyTensor t = where(above, x[1], ones_like(x[1]));
    const LazyTensor stirling = t * log(t) - t + log(t * (2 * std::numbers::pi)) * 0.5;
    losses = losses + where(above, stirling, zeros_like(stirling));
  }
  return x.reduced(losses, reduction);
}

namespace ops {
namespace {

using Results = std::vector<LazyTensor>;

Operation entry(std::string_view name, std::string_view signature, std::string_view summary,
                std::array<Range, 3> ranges, Results (*call)(Tensors, const Arguments&),
                std::vector<Sample> (*samples)(const Operation&),
                std::vector<ErrorSample> (*errors)(const Operation&) = loss_errors) {
  return {.name = name,
          .family = "likelihoods",
          .signature = signature,
          .summary = summary,
          .types = kFloating,
          .call = call,
          .ranges = ranges,
          .samples = samples,
          .errors = errors};
}

constexpr Range kPositive{.low = 0.25, .high = 2};

/// With weights of the shape, of one axis, and (where there are two) of both kinds.
std::vector<Sample> weighted_samples(const Operation& op, std::size_t kinds) {
  std::vector<Sample> out = unbroadcast_loss_samples(op);
  for (const Shape& shape : {Shape{2, 3}, Shape{3}, Shape{2, 1}, Shape{}}) {
    out.push_back({{{{2, 3}, op.ranges[0]}, {{2, 3}, op.ranges[1]}, {shape, kPositive}},
                   {{"reduction", std::string("none")}}});
  }
  for (const char* reduction : {"mean", "sum", "none"}) {
    out.push_back({{{{3, 4}, op.ranges[0]}, {{3, 4}, op.ranges[1]}, {{4}, kPositive}},
                   {{"reduction", std::string(reduction)}}});
    if (kinds == 1) continue;
    out.push_back({{{{2, 5}, op.ranges[0]}, {{2, 5}, op.ranges[1]}, {{2, 1}, kPositive}, {{5}, kPositive}},
                   {{"reduction", std::string(reduction)}}});
  }
  return out;
}

std::vector<ErrorSample> weighted_errors(const Operation& op) {
  std::vector<ErrorSample> out = loss_errors(op);
  out.push_back({Refusal::shape, {{{2, 3}}, {{3}}}, {}, "(3,)"});  // PyTorch broadcasts none of these either
  out.push_back({Refusal::shape, {{{2, 3}}, {{2, 3}}, {{2}}}, {}, "(2,)"});
  out.push_back({Refusal::shape, {{{3}}, {{3}}, {{2, 3}}}, {}, "(2, 3)"});
  out.push_back({Refusal::dtype, {{{3}}, {{3}}, {.shape = {3}, .dtype = DType::boolean}}, {}, "bool"});
  return out;
}

std::vector<Sample> gaussian_samples(const Operation& op) {
  std::vector<Sample> out;
  const auto add = [&](const Shape& a, const Shape& b, const Shape& c, Arguments arguments) {
    out.push_back({{{a, op.ranges[0]}, {b, op.ranges[1]}, {c, op.ranges[2]}}, std::move(arguments)});
  };
  for (const bool full : {false, true}) {
    add({33}, {33}, {33}, {{"full", full}});
    add({}, {}, {}, {{"full", full}});
    for (const char* reduction : {"mean", "sum", "none"}) {
      const Arguments arguments{{"full", full}, {"reduction", std::string(reduction)}};
      add({2, 3}, {2, 3}, {2, 3}, arguments);
    }
    add({2, 3}, {2, 3}, {2}, {{"full", full}, {"reduction", std::string("none")}});
    add({2, 5}, {2, 5}, {2, 1}, {{"full", full}});
    add({2, 5}, {5}, {}, {{"full", full}});
  }
  add({0, 3}, {0, 3}, {0, 3}, {{"reduction", std::string("none")}});
  add({7}, {7}, {7}, {{"eps", 0.125}});
  return out;
}

std::vector<Sample> poisson_samples(const Operation& op) {
  std::vector<Arguments> variants;
  for (const bool full : {false, true}) {
    variants.push_back({{"full", full}, {"log_input", false}});
    variants.push_back({{"full", full}, {"log_input", false}, {"eps", 0.25}});
  }
  variants.push_back({{"full", true}});
  return loss_samples(op, variants);
}

}  // namespace

std::span<const Operation> likelihood_operations() {
  static const Operation kTable[] = {
      entry(
          "binary_cross_entropy", "binary_cross_entropy(input, target, weight=none, reduction=mean)",
          "-(target * log(input) + (1 - target) * log(1 - input)), weighted and reduced. The logarithms are "
          "at least "
          "-100, without slope there.",
          {kProbability, kProbability},
          [](Tensors x, const Arguments& a) -> Results {
            return {binary_cross_entropy(x[0], x[1], optional_operand(x, 2), reduction_of(a))};
          },
          [](const Operation& op) { return weighted_samples(op, 1); }, weighted_errors),
      entry(
          "binary_cross_entropy_with_logits",
          "binary_cross_entropy_with_logits(input, target, weight=none, reduction=mean, pos_weight=none)",
          "binary_cross_entropy of sigmoid(input), without overflow; pos_weight multiplies the target's "
          "term.",
          {Range{.low = -4, .high = 4}, kProbability},
          [](Tensors x, const Arguments& a) -> Results {
            return {binary_cross_entropy_with_logits(x[0], x[1], optional_operand(x, 2), reduction_of(a),
                                                     optional_operand(x, 3))};
          },
          [](const Operation& op) { return weighted_samples(op, 2); }, weighted_errors),
      entry(
          "kl_div", "kl_div(input, target, reduction=mean, log_target=false)",
          "target * (log(target) - input), reduced; 0 where the target is 0. The input is a logarithm, with "
          "log_target "
          "the target is, too.",
          {Range{}, kProbability},
          [](Tensors x, const Arguments& a) -> Results {
            return {kl_div(x[0], x[1], reduction_of(a), a.flag("log_target", false))};
          },
          [](const Operation& op) {
            return loss_samples(op, {{{"log_target", true}}});
          }),
      entry(
          "gaussian_nll_loss", "gaussian_nll_loss(input, target, var, full=false, eps=1e-6, reduction=mean)",
          "(log(var) + (input - target)^2 / var) / 2, with full also log(2 pi) / 2, reduced. var is at least "
          "eps, but "
          "keeps its gradient below.",
          {Range{}, Range{}, kPositive},
          [](Tensors x, const Arguments& a) -> Results {
            return {gaussian_nll_loss(x[0], x[1], x[2], a.flag("full", false), a.real("eps", 1e-6),
                                      reduction_of(a))};
          },
          gaussian_samples,
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{Refusal::shape, {{{2, 3}}, {{4}}, {{2, 3}}}, {}, "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}, {{2, 3}}, {{3}}}, {}, "(3,)"},
                    {Refusal::value, {{{3}}, {{3}}, {{3}}}, {{"eps", 0.0}}, "0"}};
          }),
      entry(
          "poisson_nll_loss",
          "poisson_nll_loss(input, target, log_input=true, full=false, eps=1e-8, reduction=mean)",
          "exp(input) - target * input, or without log_input input - target * log(input + eps), reduced; "
          "with full also "
          "Stirling's approximation where the target is above 1.",
          {kPositive, Range{.low = 0, .high = 1.9375, .offset = 1.0 / 128}},
          [](Tensors x, const Arguments& a) -> Results {
            return {poisson_nll_loss(x[0], x[1], a.flag("log_input", true), a.flag("full", false),
                                     a.real("eps", 1e-8), reduction_of(a))};
          },
          poisson_samples),
  };
  return kTable;
}

}  // namespace ops
}  // namespace caldera
