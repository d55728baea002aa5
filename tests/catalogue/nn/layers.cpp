// More entries of the family `network`: layers.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/operands.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

Operand integers(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::i32, .values = std::move(values)};
}

/// Operands: weight, indices, offsets if `offsets`, factors if `weighted`.
Results call_embedding_bag(Tensors x, const Arguments& a) {
  const std::string mode = a.text("mode", "mean");
  EmbeddingBagOptions options{.mode = mode == "sum"    ? BagMode::sum
                                      : mode == "mean" ? BagMode::mean
                                                       : BagMode::max,
                              .include_last_offset = a.flag("include_last_offset", false)};
  std::size_t next = 2;
  if (a.flag("offsets", false)) options.offsets = x[next++];
  if (next < x.size()) options.per_sample_weights = x[next];
  if (a.has("padding_idx")) options.padding_idx = a.integer("padding_idx", 0);
  return {embedding_bag(x[0], x[1], options)};
}

std::vector<Sample> bag_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  const Operand table{{5, 3}, range}, flat = integers({6}, {1, 4, 0, 2, 2, 3}),
                                      rows = integers({2, 3}, {1, 4, 0, 2, 2, 3});
  std::vector<Sample> out;
  for (const char* mode : {"sum", "mean", "max"}) {
    const Arguments plain{{"mode", std::string(mode)}};
    const auto with = [&](std::initializer_list<std::pair<std::string, Arguments::Value>> more) {
      Arguments a = plain;
      for (const auto& [name, value] : more) a.set(name, value);
      return a;
    };
    out.push_back({{table, rows}, plain});
    out.push_back({{table, rows}, with({{"padding_idx", std::int64_t{2}}})});
    out.push_back({{table, flat, integers({3}, {0, 2, 2})}, with({{"offsets", true}})});
    out.push_back(
        {{table, flat, integers({4}, {0, 1, 4, 6})},
         with({{"offsets", true}, {"include_last_offset", true}, {"padding_idx", std::int64_t{-1}}})});
  }
  const Arguments sums{{"mode", std::string("sum")}, {"offsets", true}};
  out.push_back({{table, flat, integers({2}, {0, 4}), {{6}, range}}, sums});
  out.push_back({{table, rows, {{2, 3}, range}}, {{"mode", std::string("sum")}}});
  return out;
}

std::vector<ErrorSample> bag_errors(const Operation&) {
  const Operand two = integers({2}, {0, 1});
  return {
      {Refusal::shape, {{{5}}, integers({1, 2}, {0, 1})}, {}, "(5,)"},
      {Refusal::shape, {{{5, 3}}, two}, {}, "need offsets"},
      {Refusal::shape, {{{5, 3}}, integers({1, 2}, {0, 1}), two}, {{"offsets", true}}, "take no offsets"},
      {Refusal::dtype, {{{5, 3}}, {{1, 2}}}, {}, "float32"},
      {Refusal::value, {{{5, 3}}, integers({1, 2}, {0, 1}), {{1, 2}}}, {}, "sums only"},
      {Refusal::shape, {{{5, 3}}, integers({1, 2}, {0, 1}), {{2}}}, {{"mode", std::string("sum")}}, "(2,)"},
      {Refusal::value, {{{5, 3}}, integers({1, 2}, {0, 1})}, {{"padding_idx", std::int64_t{5}}}, "5"}};
}

Results call_linear(Tensors x, const Arguments&) { return {linear(x[0], x[1], optional_operand(x, 2))}; }
std::vector<Sample> linear_samples(const Operation&) {
  return {{{{{2, 3}}, {{4, 3}}}},    {{{{2, 3}}, {{4, 3}}, {{4}}}},    {{{{3}}, {{4, 3}}, {{4}}}},
          {{{{2, 3}}, {{3}}, {{}}}}, {{{{2, 1, 5}}, {{1, 5}}, {{1}}}}, {{{{0, 3}}, {{2, 3}}}}};
}
std::vector<ErrorSample> linear_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}, {{3, 4}}}, {}, "(3, 4)"},
          {Refusal::shape, {{{}}, {{3, 4}}}, {}, "()"},
          {Refusal::shape, {{{2, 3}}, {{4, 3}}, {{3}}}, {}, "(3,)"},
          {Refusal::dtype, {{{2, 3}}, integers({1, 3}, {1, 2, 3})}, {}, "int32"}};
}

Results call_bilinear(Tensors x, const Arguments&) {
  return {bilinear(x[0], x[1], x[2], optional_operand(x, 3))};
}
std::vector<Sample> bilinear_samples(const Operation&) {
  return {{{{{2, 3}}, {{2, 4}}, {{5, 3, 4}}}},
          {{{{2, 2, 3}}, {{2, 2, 1}}, {{2, 3, 1}}, {{2}}}},
          {{{{3}}, {{2}}, {{1, 3, 2}}}}};
}
std::vector<ErrorSample> bilinear_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}, {{2, 4}}, {{5, 4, 3}}}, {}, "(5, 4, 3)"},
          {Refusal::shape, {{{2, 3}}, {{1, 4}}, {{5, 3, 4}}}, {}, "(1, 4)"},
          {Refusal::shape, {{{2, 3}}, {{2, 4}}, {{5, 3, 4}}, {{4}}}, {}, "(4,)"}};
}

Results call_response_norm(Tensors x, const Arguments& a) {
  return {local_response_norm(
      x[0], a.integer("size", 2),
      {.alpha = a.real("alpha", 1e-4), .beta = a.real("beta", 0.75), .k = a.real("k", 1)})};
}
std::vector<Sample> response_samples(const Operation&) {
  return {{{{{2, 5, 3}}}, {{"size", std::int64_t{3}}, {"alpha", 0.5}}},
          {{{{1, 4, 2, 3}}}, {{"size", std::int64_t{2}}, {"alpha", 2.0}, {"beta", 0.5}, {"k", 2.0}}},
          {{{{1, 2, 1, 2, 2}}}, {{"size", std::int64_t{5}}}},
          {{{{0, 2, 3}}}, {{"size", std::int64_t{1}}}}};
}
std::vector<ErrorSample> response_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}}, {}, "(2, 3)"},
          {Refusal::value, {{{2, 3, 2}}}, {{"size", std::int64_t{0}}}, "size is 0"}};
}

Results call_renorm(Tensors x, const Arguments& a) {
  return {renorm(x[0], a.real("p", 2), a.axis("axis", 0), a.real("maxnorm", 1))};
}
std::vector<Sample> renorm_samples(const Operation&) {
  std::vector<Sample> out;
  for (const double p : {2.0, 1.0, 3.0}) {
    out.push_back({{{{4, 3}}}, {{"p", p}, {"axis", std::int64_t{0}}, {"maxnorm", 2.0}}});
    out.push_back({{{{2, 3, 2}}}, {{"p", p}, {"axis", std::int64_t{-2}}, {"maxnorm", 2.5}}});
  }
  out.push_back({{{{0, 3}}}, {{"p", 2.0}, {"axis", std::int64_t{0}}, {"maxnorm", 1.0}}});
  return out;
}
std::vector<ErrorSample> renorm_errors(const Operation&) {
  return {{Refusal::shape, {{{3}}}, {}, "(3,)"},
          {Refusal::shape, {{{3, 2}}}, {{"axis", std::int64_t{2}}}, "(3, 2)"},
          {Refusal::value, {{{3, 2}}}, {{"p", 0.0}}, "p is 0"},
          {Refusal::value, {{{3, 2}}}, {{"maxnorm", -1.0}}, "maxnorm is -1"}};
}

std::uint64_t seed_of(const Arguments& a) { return static_cast<std::uint64_t>(a.integer("seed", 0)); }
Results call_alpha_dropout(Tensors x, const Arguments& a) {
  return {alpha_dropout(x[0], a.real("p", 0.5), seed_of(a))};
}
std::vector<Sample> alpha_samples(const Operation&) {
  std::vector<Sample> out;
  for (const double p : {0.5, 0.25, 0.0, 1.0})
    out.push_back({{{{2, 5}}}, {{"p", p}, {"seed", std::int64_t{7}}}});
  out.push_back({{{{0, 5}}}, {{"p", 0.5}, {"seed", std::int64_t{7}}}});
  return out;
}
std::vector<ErrorSample> alpha_errors(const Operation&) {
  return {{Refusal::value, {{{2, 3}}}, {{"p", 1.5}}, "1.5"}};
}
Results call_rrelu(Tensors x, const Arguments& a) {
  return {rrelu(x[0], a.real("lower", 1.0 / 8), a.real("upper", 1.0 / 3), seed_of(a))};
}
std::vector<Sample> rrelu_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  return {{{{{2, 5}, range}}, {{"lower", 0.0}, {"upper", 0.5}, {"seed", std::int64_t{7}}}},
          {{{{7}, range}}, {{"lower", 0.25}, {"upper", 0.25}, {"seed", std::int64_t{1}}}},
          {{{{0, 2}, range}}, {{"seed", std::int64_t{1}}}}};
}
std::vector<ErrorSample> rrelu_errors(const Operation&) {
  return {{Refusal::value, {{{3}}}, {{"lower", 1.0}, {"upper", 0.0}}, "from 1 to 0"}};
}

constexpr EntriesOf entry{"network", kFloating};

}  // namespace

std::span<const Operation> layer_operations() {
  static const Operation kTable[] = {
      entry("embedding_bag",
            "embedding_bag(weight, indices, {mode=mean, offsets, per_sample_weights, "
            "include_last_offset=false, "
            "padding_idx=none})",
            "Sums, means or maxima of rows of weight: of each row of indices, or of those between offsets; 0 "
            "for "
            "none.",
            call_embedding_bag, bag_samples, bag_errors, Ranges{Range{.distinct = true}}),
      entry("linear", "linear(x, weight, bias=none)",
            "x (..., in) times the transpose of weight (out, in), plus bias.", call_linear, linear_samples,
            linear_errors),
      entry("bilinear", "bilinear(a, b, weight, bias=none)",
            "Sums of a_i weight_kij b_j over i and j, plus bias.", call_bilinear, bilinear_samples,
            bilinear_errors),
      entry("local_response_norm", "local_response_norm(x, size, {alpha=1e-4, beta=0.75, k=1})",
            "x over (k + alpha * mean(x^2))^beta, the mean over the channels around each.",
            call_response_norm, response_samples, response_errors),
      entry("renorm", "renorm(x, p, axis, maxnorm)",
            "x with slices along the axis whose p-norm exceeds maxnorm scaled down to it.", call_renorm,
            renorm_samples, renorm_errors, Range{.offset = 1.0 / 128}),
      entry("alpha_dropout", "alpha_dropout(x, p, seed)",
            "Dropout that keeps mean and variance of what selu gives.", call_alpha_dropout, alpha_samples,
            alpha_errors),
      entry("rrelu", "rrelu(x, lower=0.125, upper=0.333333, seed)",
            "x above 0, x times a number drawn from [lower, upper) below.", call_rrelu, rrelu_samples,
            rrelu_errors, Range{.away_from_zero = 0.125}),
  };
  return kTable;
}

}  // namespace caldera::catalogue
