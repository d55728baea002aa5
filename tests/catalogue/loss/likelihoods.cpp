// The entries of the family `likelihoods`.
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/loss/loss_samples.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/operands.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

constexpr EntriesOf entry{.family = "likelihoods", .types = kFloating, .errors = loss_errors};

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
          "at least -100, without slope there.",
          Ranges{kProbability, kProbability},
          [](Tensors x, const Arguments& a) -> Results {
            return {binary_cross_entropy(x[0], x[1], optional_operand(x, 2), reduction_of(a))};
          },
          [](const Operation& op) { return weighted_samples(op, 1); }, weighted_errors),
      entry(
          "binary_cross_entropy_with_logits",
          "binary_cross_entropy_with_logits(input, target, weight=none, reduction=mean, pos_weight=none)",
          "binary_cross_entropy of sigmoid(input), without overflow; pos_weight multiplies the target's "
          "term.",
          Ranges{Range{.low = -4, .high = 4}, kProbability},
          [](Tensors x, const Arguments& a) -> Results {
            return {binary_cross_entropy_with_logits(x[0], x[1], optional_operand(x, 2), reduction_of(a),
                                                     optional_operand(x, 3))};
          },
          [](const Operation& op) { return weighted_samples(op, 2); }, weighted_errors),
      entry(
          "kl_div", "kl_div(input, target, reduction=mean, log_target=false)",
          "target * (log(target) - input), reduced; 0 where the target is 0. The input is a logarithm, with "
          "log_target the target is, too.",
          Ranges{Range{}, kProbability},
          [](Tensors x, const Arguments& a) -> Results {
            return {kl_div(x[0], x[1], reduction_of(a), a.flag("log_target", false))};
          },
          [](const Operation& op) {
            return loss_samples(op, {{{"log_target", true}}});
          }),
      entry(
          "gaussian_nll_loss", "gaussian_nll_loss(input, target, var, full=false, eps=1e-6, reduction=mean)",
          "(log(var) + (input - target)^2 / var) / 2, with full also log(2 pi) / 2, reduced. var is at least "
          "eps, but keeps its gradient below.",
          Ranges{Range{}, Range{}, kPositive},
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
          "with full also Stirling's approximation where the target is above 1.",
          Ranges{kPositive, Range{.low = 0, .high = 1.9375, .offset = 1.0 / 128}},
          [](Tensors x, const Arguments& a) -> Results {
            return {poisson_nll_loss(x[0], x[1], a.flag("log_input", true), a.flag("full", false),
                                     a.real("eps", 1e-8), reduction_of(a))};
          },
          poisson_samples),
  };
  return kTable;
}

}  // namespace caldera::catalogue
