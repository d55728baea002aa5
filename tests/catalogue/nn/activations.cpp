// The entries of the family `activations`.
#include <cstdint>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

constexpr EntriesOf entry{
    .family = "activations", .types = kFloating, .samples = unary_samples, .errors = no_errors};

/// Clear of kinks at 0 and other round numbers.
constexpr Range kKinks{.low = -4, .high = 7, .offset = 1.0 / 32};
constexpr Range kSmooth{.low = -4, .high = 4};

std::vector<Sample> glu_samples(const Operation&) {
  return {{{{{2}}}},
          {{{{3, 8}}}},
          {{{{0, 4}}}},
          {{{{4, 3}}}, {{"axis", std::int64_t{0}}}},
          {{{{2, 6, 3}}}, {{"axis", std::int64_t{1}}}}};
}

std::vector<Sample> prelu_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  return {{{{{7}, range}, {{}}}},
          {{{{2, 3}, range}, {{3}}}},
          {{{{2, 3, 4}, range}, {{3, 1}}}},
          {{{{0, 3}, range}, {{3}}}}};
}

}  // namespace

std::span<const Operation> activation_operations() {
  static const Operation kTable[] = {
      entry("relu", "relu(x)", "max(x, 0); the slope at 0 is 0.", kKinks, call_unary<caldera::relu>),
      entry("relu6", "relu6(x)", "min(max(x, 0), 6).", kKinks, call_unary<caldera::relu6>),
      entry(
          "leaky_relu", "leaky_relu(x, negative_slope=0.01)", "x above 0, negative_slope * x below.", kKinks,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::leaky_relu(x[0], a.real("negative_slope", 0.01))};
          },
          [](const Operation& op) {
            return unary_samples_with(op, {{{"negative_slope", 0.25}}, {{"negative_slope", -1.5}}});
          }),
      {.name = "prelu",
       .family = "activations",
       .signature = "prelu(x, weight)",
       .summary = "x above 0, weight * x below; the weight broadcasts.",
       .types = kFloating,
       .call = call_binary<caldera::prelu>,
       .ranges = {kKinks},
       .samples = prelu_samples,
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{.refusal = Refusal::shape, .operands = {{{3}}, {{2, 3}}}, .mentions = "(2, 3)"}};
       }},
      entry(
          "elu", "elu(x, alpha=1)", "x above 0, alpha * (exp(x) - 1) below.", kKinks,
          [](Tensors x, const Arguments& a) -> Results { return {caldera::elu(x[0], a.real("alpha", 1))}; },
          [](const Operation& op) {
            return unary_samples_with(op, {{{"alpha", 0.375}}, {{"alpha", 2.0}}});
          }),
      entry(
          "celu", "celu(x, alpha=1)", "x above 0, alpha * (exp(x / alpha) - 1) below.", kKinks,
          [](Tensors x, const Arguments& a) -> Results { return {caldera::celu(x[0], a.real("alpha", 1))}; },
          [](const Operation& op) {
            return unary_samples_with(op, {{{"alpha", 0.375}}, {{"alpha", 2.0}}});
          },
          [](const Operation&) {
            return refused_values({{{{"alpha", 0.0}}, "alpha is 0"}});
          }),
      entry("selu", "selu(x)", "elu with the constants that keep mean and variance.", kKinks,
            call_unary<caldera::selu>),
      {.name = "gelu",
       .family = "activations",
       .signature = "gelu(x, form=exact)",
       .summary = "x times the normal distribution function of x, or its approximation by tanh.",
       .types = kFloating,
       .call = [](Tensors x, const Arguments& a) -> Results {
         const bool approximate = a.text("form", "exact") == "tanh";
         return {caldera::gelu(x[0], approximate ? GeluForm::tanh : GeluForm::exact)};
       },
       .ranges = {kSmooth},
       .samples =
           [](const Operation& operation) {
             std::vector<Sample> out = unary_samples(operation);
             for (Sample sample : unary_samples(operation)) {
               sample.arguments = {{"form", std::string("tanh")}};
               out.push_back(sample);
             }
             return out;
           },
       .errors = no_errors},
      entry("silu", "silu(x)", "x * sigmoid(x), also called swish.", kSmooth, call_unary<caldera::silu>),
      entry("mish", "mish(x)", "x * tanh(softplus(x)).", kSmooth, call_unary<caldera::mish>),
      entry(
          "softplus", "softplus(x, beta=1)", "log(1 + exp(beta * x)) / beta, without overflow.", kSmooth,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::softplus(x[0], a.real("beta", 1))};
          },
          [](const Operation& op) {
            return unary_samples_with(op, {{{"beta", 2.5}}, {{"beta", 0.5}}});
          },
          [](const Operation&) {
            return refused_values({{{{"beta", 0.0}}, "beta is 0"}});
          }),
      entry("softsign", "softsign(x)", "x / (1 + |x|).", kKinks, call_unary<caldera::softsign>),
      entry("log_sigmoid", "log_sigmoid(x)", "log(sigmoid(x)), without overflow.", kSmooth,
            call_unary<caldera::log_sigmoid>),
      entry(
          "hardtanh", "hardtanh(x, low=-1, high=1)",
          "x limited to [low, high]; the slope at the limits is 0.", kKinks,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::hardtanh(x[0], a.real("low", -1), a.real("high", 1))};
          },
          [](const Operation& op) {
            return unary_samples_with(op, {{{"low", -2.5}, {"high", 0.25}}, {{"low", 0.5}}, {{"high", 3.0}}});
          },
          [](const Operation&) {
            return refused_values({{{{"low", 1.0}, {"high", -1.0}}, "[1, -1]"}});
          }),
      entry("hardsigmoid", "hardsigmoid(x)", "relu6(x + 3) / 6.", kKinks, call_unary<caldera::hardsigmoid>),
      entry("hardswish", "hardswish(x)", "x * hardsigmoid(x).", kKinks, call_unary<caldera::hardswish>),
      entry("tanhshrink", "tanhshrink(x)", "x - tanh(x).", kSmooth, call_unary<caldera::tanhshrink>),
      entry(
          "softshrink", "softshrink(x, lambda=0.5)", "x moved towards 0 by lambda, 0 within.", kKinks,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::softshrink(x[0], a.real("lambda", 0.5))};
          },
          [](const Operation& op) {
            return unary_samples_with(op, {{{"lambda", 2.0}}, {{"lambda", 0.0}}});
          },
          [](const Operation&) {
            return refused_values({{{{"lambda", -0.5}}, "-0.5"}});
          }),
      entry(
          "hardshrink", "hardshrink(x, lambda=0.5)", "x where |x| > lambda, else 0.", kKinks,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::hardshrink(x[0], a.real("lambda", 0.5))};
          },
          [](const Operation& op) {
            return unary_samples_with(op, {{{"lambda", 2.0}}, {{"lambda", -0.5}}});
          }),
      {.name = "glu",
       .family = "activations",
       .signature = "glu(x, axis=-1)",
       .summary = "The first half of an axis times the sigmoid of the second.",
       .types = kFloating,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::glu(x[0], a.axis("axis", -1))};
       },
       .samples = glu_samples,
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{.refusal = Refusal::shape, .operands = {{{3}}}, .mentions = "(3,)"},
                 {.refusal = Refusal::shape, .operands = {{{}}}, .mentions = "()"},
                 {Refusal::shape, {{{2, 4}}}, {{"axis", std::int64_t{2}}}, "(2, 4)"}};
       }},
  };
  return kTable;
}

}  // namespace caldera::catalogue
