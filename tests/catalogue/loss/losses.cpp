// The entries of the family `losses`.
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "ops/loss/cross_entropy.h"
#include "ops/ops.h"
#include "tests/catalogue/loss/loss_samples.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/operands.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

CrossEntropyOptions options_of(const Arguments& a) {
  CrossEntropyOptions options{.label_smoothing = a.real("label_smoothing", 0)};
  if (a.has("ignore_index")) options.ignore_index = a.integer("ignore_index", 0);
  return options;
}

CrossEntropyOptions weighted_options(Tensors x, const Arguments& a) {
  CrossEntropyOptions options = options_of(a);
  options.weight = optional_operand(x, 2);
  return options;
}

NllOptions nll_options(Tensors x, const Arguments& a) {
  return {.weight = optional_operand(x, 2),
          .ignore_index = a.integer("ignore_index", -100),
          .reduction = reduction_of(a),
          .axis = a.axis("axis", -1)};
}

const Range kWeights{.low = 0.25, .high = 2};

std::vector<Sample> cross_entropy_samples(const Operation&) {
  const std::vector<double> six{0, 4, 2, -100, 2, 1};
  std::vector<Sample> out;
  for (const double smoothing : {0.0, 0.125}) {
    out.push_back({{{{2, 3, 5}}, index_operand({2, 3}, six)},
                   {{"ignore_index", std::int64_t{-100}}, {"label_smoothing", smoothing}}});
    out.push_back({{{{4, 3}}, index_operand({4}, {2, 0, 1, 1})}, {{"label_smoothing", smoothing}}});
    out.push_back({{{{33}}, index_operand({}, {7})}, {{"label_smoothing", smoothing}}});
    out.push_back({{{{0, 3}}, index_operand({0}, {})}, {{"label_smoothing", smoothing}}});
    // With a weight for each class.
    out.push_back({{{{2, 3, 5}}, index_operand({2, 3}, six), {{5}, kWeights}},
                   {{"ignore_index", std::int64_t{-100}}, {"label_smoothing", smoothing}}});
    out.push_back({{{{4, 3}}, index_operand({4}, {2, 0, 1, 1}), {{3}, kWeights}},
                   {{"ignore_index", std::int64_t{1}}, {"label_smoothing", smoothing}}});
    out.push_back({{{{33}}, index_operand({}, {7}), {{33}, kWeights}}, {{"label_smoothing", smoothing}}});
    out.push_back(
        {{{{5, 1}}, index_operand({5}, {0, 0, 0, 0, 0}), {{1}, kWeights}}, {{"label_smoothing", smoothing}}});
  }
  return out;
}

std::vector<ErrorSample> cross_entropy_errors(const Operation&) {
  return {{.refusal = Refusal::shape,
           .operands = {{{2, 3}}, index_operand({3}, {0, 0, 0})},
           .mentions = "(2, 3)"},
          {.refusal = Refusal::dtype, .operands = {{{2, 3}}, {{2}}}, .mentions = "float32"},
          {.refusal = Refusal::value,
           .operands = {{{2, 3}}, index_operand({2}, {0, 0})},
           .arguments = {{"label_smoothing", 1.5}},
           .mentions = "1.5"},
          {.refusal = Refusal::shape,
           .operands = {{{2, 3}}, index_operand({2}, {0, 0}), {{2}}},
           .mentions = "(2,)"}};
}

std::vector<Sample> nll_samples(const Operation&) {
  const std::vector<double> six{0, 4, 2, -100, 2, 1};
  std::vector<Sample> out;
  for (const char* reduction : {"mean", "sum", "none", "batchmean"}) {
    const Arguments only{{"reduction", std::string(reduction)}};
    out.push_back({{{{2, 3, 5}}, index_operand({2, 3}, six)}, only});
    out.push_back({{{{2, 3, 5}}, index_operand({2, 3}, six), {{5}, kWeights}}, only});
    out.push_back({{{{4, 3}}, index_operand({4}, {2, 0, 1, 1}), {{3}, kWeights}},
                   {{"ignore_index", std::int64_t{1}}, {"reduction", std::string(reduction)}}});
  }
  out.push_back({{{{33}}, index_operand({}, {7})}});
  out.push_back({{{{5, 1}}, index_operand({5}, {0, 0, 0, 0, 0})}});
  out.push_back({{{{0, 3}}, index_operand({0}, {})}, {{"reduction", std::string("sum")}}});
  for (const char* reduction : {"mean", "none"}) {
    out.push_back({{{{2, 5, 3}}, index_operand({2, 3}, six), {{5}, kWeights}},
                   {{"axis", std::int64_t{1}}, {"reduction", std::string(reduction)}}});
    out.push_back({{{{2, 5, 3, 1}}, index_operand({2, 3, 1}, six)},
                   {{"axis", std::int64_t{-3}}, {"reduction", std::string(reduction)}}});
  }
  return out;
}

std::vector<ErrorSample> nll_errors(const Operation&) {
  return {{.refusal = Refusal::shape,
           .operands = {{{2, 3}}, index_operand({3}, {0, 0, 0})},
           .mentions = "(2, 3)"},
          {.refusal = Refusal::shape, .operands = {{{}}, index_operand({}, {0})}, .mentions = "()"},
          {.refusal = Refusal::shape,
           .operands = {{{2, 3}}, index_operand({2}, {0, 0})},
           .arguments = {{"axis", std::int64_t{2}}},
           .mentions = "(2, 3)"},
          {.refusal = Refusal::dtype, .operands = {{{2, 3}}, {{2}}}, .mentions = "float32"},
          {.refusal = Refusal::shape,
           .operands = {{{2, 3}}, index_operand({2}, {0, 0}), {{1, 3}}},
           .mentions = "(1, 3)"}};
}

}  // namespace

std::span<const Operation> loss_operations() {
  static const Operation kTable[] = {
      {.name = "mean_cross_entropy",
       .family = "losses",
       .signature = "mean_cross_entropy(logits, targets, {ignore_index, label_smoothing, weight})",
       .summary = "The mean cross-entropy of integer targets over the last axis, weighted by class; 0 when "
                  "every target is ignored. A target outside gives NaN. 16-bit logits give float32.",
       .types = kFloating,
       .result = ResultType::computed,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {mean_cross_entropy(x[0], x[1], weighted_options(x, a))};
       },
       .samples = cross_entropy_samples,
       .errors = cross_entropy_errors},
      {.name = "cross_entropy",
       .family = "losses",
       .signature = "cross_entropy(logits, targets, {weight, ignore_index=-100, reduction=mean, "
                    "label_smoothing=0, axis=-1})",
       .summary =
           "The cross-entropy of integer targets, weighted by class. The mean divides by the sum of the "
           "targets' weights, and is 0 when every target is ignored. A target outside gives NaN. Floating "
           "targets of the logits' shape are the classes' probabilities; their mean is over positions. "
           "16-bit "
           "logits give float32.",
       .types = kFloating,
       .result = ResultType::computed,
       .call = [](Tensors x, const Arguments& a) -> Results {
         const NllOptions common = nll_options(x, a);
         return {cross_entropy(x[0], x[1],
                               {.weight = common.weight,
                                .ignore_index = common.ignore_index,
                                .reduction = common.reduction,
                                .label_smoothing = a.real("label_smoothing", 0),
                                .axis = common.axis})};
       },
       .samples =
           [](const Operation& op) {
             std::vector<Sample> out = nll_samples(op);
             const std::size_t plain = out.size();
             for (std::size_t i = 0; i < plain; ++i) {
               out.push_back(out[i]);
               out.back().arguments.set("label_smoothing", 0.125);
             }
             // Probabilities of the classes.
             const Range p{.low = 1.0 / 16, .high = 15.0 / 16};
             for (const double smoothing : {0.0, 0.25}) {
               for (const char* reduction : {"mean", "sum", "none", "batchmean"}) {
                 const Arguments a{{"label_smoothing", smoothing}, {"reduction", std::string(reduction)}};
                 out.push_back({{{{4, 3}}, {{4, 3}, p}}, a});
                 out.push_back({{{{2, 5, 3}}, {{2, 5, 3}, p}, {{5}, kWeights}}, a});
                 out.back().arguments.set("axis", std::int64_t{1});
               }
             }
             return out;
           },
       .errors =
           [](const Operation& op) {
             std::vector<ErrorSample> out = nll_errors(op);
             out.push_back({.refusal = Refusal::value,
                            .operands = {{{2, 3}}, index_operand({2}, {0, 0})},
                            .arguments = {{"label_smoothing", 1.5}},
                            .mentions = "1.5"});
             return out;
           }},
      {.name = "nll_loss",
       .family = "losses",
       .signature =
           "nll_loss(log_probabilities, targets, {weight, ignore_index=-100, reduction=mean, axis=-1})",
       .summary = "-log_probabilities[target], weighted by class. The mean divides by the sum of the "
                  "targets' weights, and is 0 when every target is ignored. A target outside gives NaN.",
       .types = kFloating,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {nll_loss(x[0], x[1], nll_options(x, a))};
       },
       .samples = nll_samples,
       .errors = nll_errors},
      {.name = "weighted_mean",
       .family = "losses",
       .signature = "weighted_mean(values, weights)",
       .summary =
           "sum(values * weights) / sum(weights); 0 when all weights are 0. Positions of weight 0 do not "
           "count even if their value is NaN.",
       .types = kFloating,
       .call = call_binary<caldera::weighted_mean>,
       .ranges = {Range{}, Range{.low = 0.25, .high = 2}},
       .samples = [](const Operation& op) -> std::vector<Sample> {
         std::vector<Sample> out;
         for (const auto& [values, weights] : {std::pair<Shape, Shape>{{2, 2}, {2}},
                                               {{2, 3}, {2, 1}},
                                               {{3}, {2, 3}},
                                               {{2, 3}, {}},
                                               {{4, 1, 3}, {2, 1}},
                                               {{0, 3}, {3}}}) {
           out.push_back({{{values, op.ranges[0]}, {weights, op.ranges[1]}}});
         }
         // A weight of 0 counts for nothing, broadcast or not.
         out.push_back({{{.shape = {2, 2}, .values = {1, 2, 3, 4}}, {.shape = {2}, .values = {1, 0}}}});
         for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 3}}) {
           out.push_back({{{shape, op.ranges[0]}, {shape, op.ranges[1]}}});
         }
         return out;
       },
       .errors = binary_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
