// More entries of the family `margins`: losses of several labels, and of sequences of them.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/loss/loss_samples.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

Operand labels(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::i32, .values = std::move(values)};
}

Results call_ctc(Tensors x, const Arguments& a) {
  return {ctc_loss(x[0], x[1], x[2], x[3],
                   {.blank = a.integer("blank", 0),
                    .reduction = reduction_of(a),
                    .zero_infinity = a.flag("zero_infinity", false)})};
}

std::vector<Sample> ctc_samples(const Operation&) {
  std::vector<Sample> out;
  for (const char* reduction : {"mean", "sum", "none", "batchmean"}) {
    const Arguments a{{"reduction", std::string(reduction)}};
    // Repeated labels, shorter inputs and targets, none at all.
    out.push_back({{{{6, 3, 4}},
                    labels({3, 3}, {1, 2, 2, 3, 1, 0, 2, 3, 1}),
                    labels({3}, {6, 4, 5}),
                    labels({3}, {3, 2, 0})},
                   a});
  }
  const std::string none = "none";
  out.push_back({{{{4, 2, 3}}, labels({2, 2}, {0, 1, 0, 0}), labels({2}, {4, 4}), labels({2}, {2, 1})},
                 {{"blank", std::int64_t{2}}, {"reduction", none}}});
  // Two equal labels need three times.
  out.push_back({{{{2, 2, 3}}, labels({2, 2}, {1, 1, 1, 2}), labels({2}, {2, 2}), labels({2}, {2, 2})},
                 {{"zero_infinity", true}, {"reduction", none}}});
  out.push_back(
      {{{{1, 1, 3}}, labels({1, 1}, {1}), labels({1}, {1}), labels({1}, {1})}, {{"reduction", none}}});
  return out;
}

std::vector<ErrorSample> ctc_errors(const Operation&) {
  const Operand targets = labels({2, 2}, {1, 1, 1, 2}), lengths = labels({2}, {2, 2});
  return {
      {Refusal::shape, {{{3, 3}}, targets, lengths, lengths}, {}, "(3, 3)"},
      {Refusal::shape, {{{3, 1, 3}}, targets, lengths, lengths}, {}, "(3, 1, 3)"},
      {Refusal::shape, {{{3, 2, 3}}, targets, labels({1}, {3}), lengths}, {}, "(1,)"},
      {Refusal::dtype, {{{3, 2, 3}}, {{2, 2}}, lengths, lengths}, {}, "float32"},
      {Refusal::value, {{{3, 2, 3}}, targets, lengths, lengths}, {{"blank", std::int64_t{3}}}, "blank is 3"}};
}

std::vector<Sample> multilabel_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  std::vector<Sample> out;
  for (const char* reduction : {"mean", "sum", "none", "batchmean"}) {
    const Arguments a{{"reduction", std::string(reduction)}};
    out.push_back({{{{3, 4}, range}, labels({3, 4}, {3, 0, -1, 1, -1, 2, 2, 2, 1, 2, 3, 0})}, a});
  }
  out.push_back({{{{5}, range}, labels({5}, {4, 1, -1, -1, -1})}});
  return out;
}

std::vector<ErrorSample> multilabel_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}, labels({3}, {0, 0, 0})}, {}, "(2, 3)"},
          {Refusal::shape, {{{}}, labels({}, {0})}, {}, "()"},
          {Refusal::dtype, {{{2}}, {{2}}}, {}, "float32"}};
}

constexpr EntriesOf entry{"margins", kFloating};

}  // namespace

std::span<const Operation> label_loss_operations() {
  static const Operation kTable[] = {
      entry("ctc_loss",
            "ctc_loss(log_probs, targets, input_lengths, target_lengths, {blank=0, reduction=mean, "
            "zero_infinity=false})",
            "-log of the probability of each sequence of targets once repetitions and blanks are left out. "
            "The mean "
            "is of losses over their targets' lengths.",
            call_ctc, ctc_samples, ctc_errors),
      entry(
          "multilabel_margin_loss", "multilabel_margin_loss(input, target, reduction=mean)",
          "The sum over targets t and other classes j of max(0, 1 - input[t] + input[j]), over the number of "
          "classes; the first negative target ends them.",
          [](Tensors x, const Arguments& a) -> Results {
            return {multilabel_margin_loss(x[0], x[1], reduction_of(a))};
          },
          multilabel_samples, multilabel_errors, Range{.offset = 1.0 / 128, .distinct = true}),
  };
  return kTable;
}

}  // namespace caldera::catalogue
