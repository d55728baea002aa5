// The entries of margins.cpp in the table of operations.
#include <cmath>
#include <limits>

#include "ops/loss/ranking.h"
#include "tests/catalogue/loss/loss_samples.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/operands.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr EntriesOf entry{.family = "margins", .types = kFloating};

/// `count` targets of 1 and -1.
Operand signs(const Shape& shape) {
  static constexpr double kSigns[] = {1, -1, -1, 1, 1, 1, -1};
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i) values.push_back(kSigns[i % 7]);
  return {.shape = shape, .dtype = DType::i32, .values = std::move(values)};
}

Arguments with(Arguments arguments, const char* reduction) {
  if (std::string_view(reduction) != "mean") arguments.set("reduction", std::string(reduction));
  return arguments;
}

/// Losses of `count` tensors of one shape and of targets of 1 and -1, with each of the `variants`.
std::vector<Sample> signed_samples(const Operation& op, std::size_t count,
                                   const std::vector<Arguments>& variants) {
  std::vector<Sample> out;
  const auto add = [&](const Shape& shape, const Shape& target, const Arguments& arguments) {
    Sample sample{{}, arguments};
    for (std::size_t i = 0; i < count; ++i) sample.operands.push_back({shape, op.ranges[i]});
    sample.operands.push_back(signs(target));
    out.push_back(std::move(sample));
  };
  for (const Shape& shape : {Shape{33}, Shape{}, Shape{1}, Shape{2, 3, 4}}) add(shape, shape, {});
  for (const char* reduction : {"sum", "none", "batchmean"}) add({2, 3}, {2, 3}, with({}, reduction));
  add({0, 3}, {0, 3}, with({}, "none"));
  add({2, 3}, {3}, with({}, "none"));
  for (const Arguments& variant : variants) {
    for (const char* reduction : {"mean", "sum", "none"}) add({3, 5}, {3, 5}, with(variant, reduction));
  }
  return out;
}

std::vector<ErrorSample> signed_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}, signs({2})}, {}, "(2, 3)"},
          {Refusal::dtype, {{{3}}, {.shape = {3}, .dtype = DType::boolean}}, {}, "bool"}};
}

/// Two tensors of vectors along the last axis.
std::vector<Sample> vector_samples(const Operation& op, const std::vector<Arguments>& variants) {
  std::vector<Sample> out;
  const auto add = [&](const Shape& a, const Shape& b, const Arguments& arguments) {
    out.push_back({{{a, op.ranges[0]}, {b, op.ranges[1]}}, arguments});
  };
  for (const Arguments& variant : variants) {
    for (const Shape& shape : {Shape{2, 3}, Shape{3, 33}, Shape{2, 1, 5}, Shape{0, 3}})
      add(shape, shape, variant);
    add({2, 3}, {1, 3}, variant);
    add({2, 1, 5}, {3, 5}, variant);
  }
  return out;
}

std::vector<Sample> triplet_samples(const Operation& op) {
  std::vector<Sample> out;
  const auto add = [&](const Shape& shape, Arguments arguments, const char* reduction) {
    Sample sample{{}, with(std::move(arguments), reduction)};
    for (const Range& range : op.ranges) sample.operands.push_back({shape, range});
    out.push_back(std::move(sample));
  };
  for (const bool swap : {false, true}) {
    for (const double p : {2.0, 1.0, 3.0}) add({3, 5}, {{"p", p}, {"swap", swap}}, "none");
    add({7}, {{"swap", swap}}, "mean");
    add({2, 3, 4}, {{"swap", swap}, {"margin", 0.25}}, "none");
    add({2, 33}, {{"swap", swap}, {"margin", 4.0}, {"eps", 0.0625}}, "sum");
  }
  add({0, 3}, {}, "none");
  return out;
}

std::vector<Sample> multi_margin_samples(const Operation& op) {
  // The margins are no multiples of 1/64, so that no difference is one.
  std::vector<Sample> out;
  for (const std::int64_t p : {1, 2}) {
    for (const char* reduction : {"mean", "sum", "none"}) {
      const Arguments arguments = with({{"p", p}, {"margin", 0.9921875}}, reduction);
      out.push_back({{{{4, 3}, op.ranges[0]}, index_operand({4}, {2, 0, 1, 1})}, arguments});
      out.push_back(
          {{{{4, 3}, op.ranges[0]}, index_operand({4}, {2, 0, 1, 1}), {{3}, Range{.low = 0.25}}}, arguments});
      out.push_back({{{{2, 3, 5}, op.ranges[0]}, index_operand({2, 3}, {0, 4, 2, 3, 2, 1})},
                     with({{"p", p}, {"margin", 0.5078125}}, reduction)});
    }
  }
  out.push_back({{{{33}, op.ranges[0]}, index_operand({}, {7})}});
  out.push_back({{{{5, 1}, op.ranges[0]}, index_operand({5}, {0, 0, 0, 0, 0})}});
  out.push_back({{{{0, 3}, op.ranges[0]}, index_operand({0}, {})}, with({}, "none")});
  return out;
}

std::vector<Sample> cosine_embedding_samples(const Operation& op) {
  std::vector<Sample> out;
  const auto add = [&](const Shape& shape, const Shape& target, const Arguments& arguments) {
    out.push_back({{{shape, op.ranges[0]}, {shape, op.ranges[1]}, signs(target)}, arguments});
  };
  for (const char* reduction : {"mean", "sum", "none"}) {
    for (const double margin : {0.0, 0.5}) add({5, 3}, {5}, with({{"margin", margin}}, reduction));
  }
  add({5, 3}, {5}, {{"margin", -0.5}});
  add({33}, {}, {});
  add({3, 1}, {3}, {});
  add({0, 3}, {0}, {{"reduction", std::string("none")}});
  return out;
}

std::vector<Sample> labels_samples(const Operation& op) {
  std::vector<Sample> out;
  for (const char* reduction : {"mean", "sum", "none"}) {
    out.push_back({{{{7}, op.ranges[0]}, {{7}, op.ranges[1]}}, with({}, reduction)});
    out.push_back({{{{2, 5}, op.ranges[0]}, {{2, 5}, op.ranges[1]}}, with({}, reduction)});
    out.push_back(
        {{{{3, 4}, op.ranges[0]}, {{3, 4}, op.ranges[1]}, {{4}, Range{.low = 0.25}}}, with({}, reduction)});
  }
  out.push_back({{{{0, 4}, op.ranges[0]}, {{0, 4}, op.ranges[1]}}, with({}, "none")});
  return out;
}

}  // namespace

std::span<const Operation> margin_operations() {
  constexpr Range kBetween{
      .low = -0.9375, .high = 0.9375, .offset = 1.0 / 256};  // of kOnGrid and of kOffGrid
  static const Operation kTable[] = {
      entry(
          "cosine_similarity", "cosine_similarity(a, b, axis=1, eps=1e-8)",
          "The sum of a * b along an axis, over their norms, each of which is at least eps.",
          Ranges{kOnGrid, kOffGrid},
          [](Tensors x, const Arguments& a) -> Results {
            return {cosine_similarity(x[0], x[1], a.axis("axis", 1), a.real("eps", 1e-8))};
          },
          [](const Operation& op) {
            std::vector<Sample> out = vector_samples(op, {{}, {{"axis", std::int64_t{-1}}}});
            out.push_back({{{{33}}, {{33}}}, {{"axis", std::int64_t{0}}}});
            out.push_back({{{{3, 2}}, {{2}}}, {{"axis", std::int64_t{0}}}});
            out.push_back({{{{5, 3}}, {{5, 3}}}, {{"eps", 1.5}}});
            return out;
          },
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{Refusal::shape, {{{2, 3}}, {{4}}}, {}, "(2, 3)"},
                    {Refusal::shape, {{{3}}, {{3}}}, {}, "(3,)"},
                    {Refusal::shape, {{{2, 3}}, {{3}}}, {{"axis", std::int64_t{2}}}, "(2, 3)"}};
          }),
      entry(
          "pairwise_distance", "pairwise_distance(a, b, p=2, eps=1e-6, keepdims=false)",
          "The p-norm of a - b + eps along the last axis.", Ranges{kOnGrid, kOffGrid},
          [](Tensors x, const Arguments& a) -> Results {
            return {pairwise_distance(x[0], x[1], a.real("p", 2), a.real("eps", 1e-6),
                                      a.flag("keepdims", false))};
          },
          [](const Operation& op) {
            return vector_samples(op, {{}, {{"p", 1.0}, {"keepdims", true}}, {{"p", 3.0}, {"eps", 0.0625}}});
          },
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{Refusal::shape, {{{2, 3}}, {{4}}}, {}, "(2, 3)"},
                    {Refusal::shape, {{{}}, {{}}}, {}, "()"},
                    {Refusal::value, {{{2, 3}}, {{2, 3}}}, {{"p", kNan}}, "nan"},
                    {Refusal::shape, {{{2, 0}}, {{2, 0}}}, {{"p", HUGE_VAL}}, "(2, 0)"}};
          }),
      entry(
          "hinge_embedding_loss", "hinge_embedding_loss(input, target, margin=1, reduction=mean)",
          "input where the target is 1, max(0, margin - input) where it is -1, reduced.", Ranges{kOffGrid},
          [](Tensors x, const Arguments& a) -> Results {
            return {hinge_embedding_loss(x[0], x[1], a.real("margin", 1), reduction_of(a))};
          },
          [](const Operation& op) {
            return signed_samples(op, 1, {{{"margin", 0.5}}});
          },
          signed_errors),
      entry(
          "margin_ranking_loss", "margin_ranking_loss(a, b, target, margin=0, reduction=mean)",
          "max(0, margin - target * (a - b)), reduced; targets are 1 and -1.", Ranges{kOnGrid, kOffGrid},
          [](Tensors x, const Arguments& a) -> Results {
            return {margin_ranking_loss(x[0], x[1], x[2], a.real("margin", 0), reduction_of(a))};
          },
          [](const Operation& op) {
            return signed_samples(op, 2, {{{"margin", 0.5}}, {{"margin", -1.0}}});
          },
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{Refusal::shape, {{{2, 3}}, {{4}}, signs({4})}, {}, "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}, {{3}}, signs({4})}, {}, "(4,)"}};
          }),
      entry(
          "soft_margin_loss", "soft_margin_loss(input, target, reduction=mean)",
          "log(1 + exp(-target * input)), reduced, without overflow; targets are 1 and -1.", Ranges{kOffGrid},
          [](Tensors x, const Arguments& a) -> Results {
            return {soft_margin_loss(x[0], x[1], reduction_of(a))};
          },
          [](const Operation& op) { return signed_samples(op, 1, {}); }, signed_errors),
      entry(
          "multilabel_soft_margin_loss",
          "multilabel_soft_margin_loss(input, target, weight=none, reduction=mean)",
          "The mean over the last axis of binary_cross_entropy_with_logits times weight, reduced.",
          Ranges{Range{}, kProbability},
          [](Tensors x, const Arguments& a) -> Results {
            return {multilabel_soft_margin_loss(x[0], x[1], optional_operand(x, 2), reduction_of(a))};
          },
          labels_samples,
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{Refusal::shape, {{{2, 3}}, {{3}}}, {}, "(2, 3)"},
                    {Refusal::shape, {{{}}, {{}}}, {}, "()"},
                    {Refusal::shape, {{{2, 3}}, {{2, 3}}, {{2}}}, {}, "(2,)"}};
          }),
      entry(
          "multi_margin_loss", "multi_margin_loss(input, target, p=1, margin=1, weight=none, reduction=mean)",
          "The sum over classes j other than the target t of max(0, margin - input[t] + input[j])^p, times "
          "weight[t], over the number of classes. A target outside gives NaN.",
          Ranges{Range{.distinct = true}},
          [](Tensors x, const Arguments& a) -> Results {
            return {multi_margin_loss(x[0], x[1], a.axis("p", 1), a.real("margin", 1), optional_operand(x, 2),
                                      reduction_of(a))};
          },
          multi_margin_samples,
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{Refusal::shape, {{{2, 3}}, index_operand({3}, {0, 0, 0})}, {}, "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}, index_operand({2}, {0, 0}), {{2}}}, {}, "(2,)"},
                    {Refusal::dtype, {{{2, 3}}, {{2}}}, {}, "float32"},
                    {Refusal::value, {{{2, 3}}, index_operand({2}, {0, 0})}, {{"p", std::int64_t{3}}}, "3"}};
          }),
      entry(
          "triplet_margin_loss",
          "triplet_margin_loss(anchor, positive, negative, {margin=1, p=2, eps=1e-6, swap=false, "
          "reduction=mean})",
          "max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced, with d of pairwise_distance; "
          "with swap, d(positive, negative) where that is shorter.",
          Ranges{kOnGrid, kOffGrid, kBetween},
          [](Tensors x, const Arguments& a) -> Results {
            return {triplet_margin_loss(x[0], x[1], x[2],
                                        {.margin = a.real("margin", 1),
                                         .p = a.real("p", 2),
                                         .eps = a.real("eps", 1e-6),
                                         .swap = a.flag("swap", false),
                                         .reduction = reduction_of(a)})};
          },
          triplet_samples,
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{Refusal::shape, {{{2, 3}}, {{2, 3}}, {{4}}}, {}, "(2, 3)"},
                    {Refusal::shape, {{{}}, {{}}, {{}}}, {}, "()"},
                    {Refusal::value, {{{2, 3}}, {{2, 3}}, {{2, 3}}}, {{"p", kNan}}, "nan"},
                    {Refusal::shape, {{{2, 0}}, {{2, 0}}, {{2, 0}}}, {{"p", HUGE_VAL}}, "(2, 0)"}};
          }),
      entry(
          "cosine_embedding_loss", "cosine_embedding_loss(a, b, target, margin=0, reduction=mean)",
          "1 - cos(a, b) where the target is 1, max(0, cos(a, b) - margin) where it is -1, reduced.",
          Ranges{kOnGrid, kOffGrid},
          [](Tensors x, const Arguments& a) -> Results {
            return {cosine_embedding_loss(x[0], x[1], x[2], a.real("margin", 0), reduction_of(a))};
          },
          cosine_embedding_samples,
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{Refusal::shape, {{{2, 3}}, {{2, 4}}, signs({2})}, {}, "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}, {{2, 3}}, signs({3})}, {}, "(3,)"},
                    {Refusal::shape, {{{}}, {{}}, signs({})}, {}, "()"}};
          }),
  };
  return kTable;
}

}  // namespace caldera::catalogue
