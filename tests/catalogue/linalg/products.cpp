// The entries of products.cpp and einsum.cpp in the table of operations.
#include <cmath>
#include <limits>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;

std::vector<int> ints(const Integers& values) { return {values.begin(), values.end()}; }

std::vector<Sample> einsum_samples(const Operation&) {
  const auto call = [](const char* equation, std::vector<Operand> operands) {
    return Sample{std::move(operands), {{"equation", std::string(equation)}}};
  };
  return {call("ij,jk->ik", {{{2, 3}}, {{3, 4}}}),
          call("ij,kj->ki", {{{2, 3}}, {{4, 3}}}),
          call("bij,bjk->bik", {{{2, 3, 4}}, {{2, 4, 5}}}),
          call("bhqd,bhkd->bhqk", {{{1, 2, 3, 4}}, {{1, 2, 5, 4}}}),
          call("...ij,...jk->...ik", {{{2, 1, 3, 4}}, {{5, 4, 2}}}),
          call("i,j->ij", {{{3}}, {{4}}}),
          call("i,i", {{{7}}, {{7}}}),
          call("i,i->i", {{{7}}, {{7}}}),
          call("...i,i->i", {{{7}}, {{7}}}),
          call("ii->i", {{{3, 3}}}),
          call("ii", {{{3, 3}}}),
          call("iji->j", {{{3, 2, 3}}}),
          call("ij->ji", {{{2, 3}}}),
          call("ij->", {{{2, 3}}}),
          call("ba", {{{2, 3}}}),
          call("ij,jk,kl->il", {{{2, 3}}, {{3, 4}}, {{4, 2}}}),
          call("a,ab,abc->c", {{{2}}, {{2, 3}}, {{2, 3, 4}}}),
          call("ij,j->i", {{{2, 3}}, {{1}}}),
          call(" i j , j -> i ", {{{2, 3}}, {{3}}}),
          call("...,...", {{{2, 3}}, {{}}}),
          call("ij,jk->ik", {{{2, 0}}, {{0, 3}}})};
}

std::vector<ErrorSample> einsum_errors(const Operation&) {
  const auto bad = [](Refusal refusal, const char* equation, std::vector<Operand> operands,
                      const char* mentions) {
    return ErrorSample{refusal, std::move(operands), {{"equation", std::string(equation)}}, mentions};
  };
  return {
      bad(Refusal::shape, "ij,jk->ik", {{{2, 3}}, {{4, 5}}}, "(4, 5)"),
      bad(Refusal::shape, "ij->ji", {{{2, 3, 4}}}, "(2, 3, 4)"),
      bad(Refusal::shape, "ijk->i", {{{2, 3}}}, "(2, 3)"),
      bad(Refusal::value, "ij,jk->ik", {{{2, 3}}}, "2 terms for 1"),
      bad(Refusal::value, "ij->ik", {{{2, 3}}}, "'k'"),
      bad(Refusal::value, "ij->ii", {{{2, 3}}}, "twice"),
      bad(Refusal::value, "i1->i", {{{2, 3}}}, "'1'"),
      bad(Refusal::value, "i..->i", {{{2, 3}}}, "..."),
      bad(Refusal::value, "ij->i->j", {{{2, 3}}}, "'-'"),
      bad(Refusal::shape, "abcdefg,hijklmn", {{{1, 1, 1, 1, 1, 1, 1}}, {{1, 1, 1, 1, 1, 1, 1}}}, "14 axes"),
      bad(Refusal::value, "", {{{2}}, {{2}}}, "1 terms for 2")};
}

std::vector<Sample> pairs(std::initializer_list<std::pair<Shape, Shape>> shapes,
                          const Arguments& arguments = {}) {
  std::vector<Sample> out;
  for (const auto& [a, b] : shapes) out.push_back({{{a}, {b}}, arguments});
  return out;
}

std::vector<Sample> tensordot_samples(const Operation&) {
  std::vector<Sample> out = pairs({{{2, 3, 4}, {3, 4, 5}}, {{3, 4}, {3, 4}}});
  for (const auto& [a, b] :
       std::initializer_list<std::pair<Integers, Integers>>{{{1}, {0}}, {{1, 0}, {0, 2}}, {{}, {}}})
    out.push_back({{{{2, 3}}, {{3, 4, 2}}}, {{"axes_a", a}, {"axes_b", b}}});
  out.push_back({{{{2, 3}}, {{4}}}, {{"axes", std::int64_t{0}}}});
  out.push_back({{{{2, 0}}, {{0, 4}}}, {{"axes", std::int64_t{1}}}});
  return out;
}

Results call_tensordot(Tensors x, const Arguments& a) {
  if (a.has("axes_a"))
    return {tensordot(x[0], x[1], {ints(a.integers("axes_a")), ints(a.integers("axes_b"))})};
  return {tensordot(x[0], x[1], static_cast<int>(a.integer("axes", 2)))};
}

std::vector<ErrorSample> tensordot_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{3, 2}}}, .mentions = "(3, 2)"},
          {.refusal = Refusal::shape,
           .operands = {{{3}}, {{3}}},
           .arguments = {{"axes", std::int64_t{2}}},
           .mentions = "(3,)"},
          {.refusal = Refusal::shape,
           .operands = {{{2, 2}}, {{2, 2}}},
           .arguments = {{"axes_a", Integers{0, 0}}, {"axes_b", Integers{0, 1}}},
           .mentions = "twice"},
          {.refusal = Refusal::shape,
           .operands = {{{2, 2}}, {{2, 2}}},
           .arguments = {{"axes_a", Integers{0}}, {"axes_b", Integers{0, 1}}},
           .mentions = "1 axes against 2"}};
}

std::vector<Sample> matrices_with(const char* which_diagonal) {
  std::vector<Sample> out;
  for (const Shape& shape : {Shape{3, 3}, Shape{2, 5}, Shape{5, 2}, Shape{2, 3, 4}, Shape{0, 3}}) {
    for (const std::int64_t k : {0, 1, -2, 9}) out.push_back({{{shape}}, {{which_diagonal, k}}});
  }
  return out;
}
std::vector<Sample> triangle_samples(const Operation&) { return matrices_with("k"); }

std::vector<Sample> diagonal_samples(const Operation&) {
  std::vector<Sample> out = matrices_with("offset");
  out.push_back({{{{2, 3, 4}}}, {{"axis1", std::int64_t{0}}, {"axis2", std::int64_t{1}}}});
  out.push_back(
      {{{{2, 3, 4}}}, {{"axis1", std::int64_t{2}}, {"axis2", std::int64_t{0}}, {"offset", std::int64_t{1}}}});
  return out;
}

std::vector<Sample> trace_samples(const Operation&) {
  std::vector<Sample> out = matrices_with("offset");
  for (const DType type : {DType::i64, DType::f64}) out.push_back({{{{3, 4}}}, {{"dtype", type}}});
  return out;
}

std::vector<ErrorSample> matrix_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{3}}}, .mentions = "(3,)"},
          {.refusal = Refusal::shape, .operands = {{{}}}, .mentions = "()"}};
}

std::vector<Sample> norm_samples(const Operation&) {
  std::vector<Sample> out;
  const Range range{.low = -1, .high = 1, .offset = 1.0 / 256, .distinct = true};  // no two |x| are equal
  for (const double ord : {2.0, 1.0, 0.0, 3.0, HUGE_VAL, -HUGE_VAL}) {
    out.push_back({{{{7}, range}}, {{"ord", ord}}});
    out.push_back({{{{2, 3, 4}, range}}, {{"ord", ord}, {"axis", Integers{1}}, {"keepdims", true}}});
    out.push_back({{{{2, 3, 4}, range}}, {{"ord", ord}, {"axis", Integers{0, 2}}}});
    out.push_back({{{{0, 3}, range}}, {{"ord", ord}, {"axis", Integers{1}}}});
    if (!std::isinf(ord)) out.push_back({{{{3, 0}, range}}, {{"ord", ord}, {"axis", Integers{1}}}});
  }
  return out;
}

std::vector<ErrorSample> norm_errors(const Operation& operation) {
  std::vector<ErrorSample> out = reduction_errors(operation);
  out.push_back({Refusal::value, {{{3}}}, {{"ord", std::numeric_limits<double>::quiet_NaN()}}, "nan"});
  for (const double ord : {HUGE_VAL, -HUGE_VAL})
    out.push_back({Refusal::shape, {{{0}}}, {{"ord", ord}}, "(0,)"});
  return out;
}

constexpr EntriesOf entry{.family = "products", .result = ResultType::same};

}  // namespace

std::span<const Operation> product_operations() {
  static const Operation kTable[] = {
      entry(
          "einsum", "einsum(equation, operands)",
          "Einstein's summation convention: \"ij,jk->ik\". Operands are contracted from left to right.",
          kNumeric,
          [](Tensors x, const Arguments& a) -> Results {
            return {einsum(a.text("equation", ""), std::vector<LazyTensor>(x.begin(), x.end()))};
          },
          einsum_samples, einsum_errors),
      entry("tensordot", "tensordot(a, b, axes=2)", "Sums of products over paired axes.", kNumeric,
            call_tensordot, tensordot_samples, tensordot_errors),
      entry(
          "vecdot", "vecdot(a, b, axis=-1)", "Sums of products over one axis; the others broadcast.",
          kNumeric,
          [](Tensors x, const Arguments& a) -> Results { return {vecdot(x[0], x[1], a.axis("axis", -1))}; },
          [](const Operation&) {
            std::vector<Sample> out = pairs({{{7}, {7}},
                                             {{2, 3}, {2, 3}},
                                             {{2, 3}, {3}},
                                             {{4, 1, 3}, {2, 3}},
                                             {{0, 3}, {3}},
                                             {{3, 0}, {0}}});
            out.push_back({{{{2, 3}}, {{2, 3}}}, {{"axis", std::int64_t{-2}}}});
            out.push_back({{{{2, 3}}, {{2, 3}}}, {{"axis", std::int64_t{0}}}});
            return out;
          },
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{2, 4}}}, .mentions = "(2, 4)"},
                    {.refusal = Refusal::shape,
                     .operands = {{{2, 3}}, {{2, 3}}},
                     .arguments = {{"axis", std::int64_t{2}}},
                     .mentions = "both have it"},
                    {.refusal = Refusal::shape,
                     .operands = {{{2, 3}}, {{3}}},
                     .arguments = {{"axis", std::int64_t{0}}},
                     .mentions = "different ranks"},
                    {.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4, 3}}}, .mentions = "(4, 3)"},
                    {.refusal = Refusal::shape, .operands = {{{}}, {{3}}}, .mentions = "()"}};
          }),
      entry(
          "outer", "outer(a, b)", "The products of all pairs of elements of two vectors.", kNumeric,
          [](Tensors x, const Arguments&) -> Results { return {outer(x[0], x[1])}; },
          [](const Operation&) {
            return pairs({{{3}, {4}}, {{1}, {7}}, {{0}, {3}}});
          },
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{3}}}, .mentions = "(2, 3)"}};
          }),
      entry(
          "cross", "cross(a, b, axis=-1)",
          "The cross product of vectors of 3 along an axis; the others broadcast.", kNumeric,
          [](Tensors x, const Arguments& a) -> Results { return {cross(x[0], x[1], a.axis("axis", -1))}; },
          [](const Operation&) {
            std::vector<Sample> out =
                pairs({{{3}, {3}}, {{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{4, 1, 3}, {2, 3}}, {{0, 3}, {3}}});
            out.push_back({{{{3, 2}}, {{3, 2}}}, {{"axis", std::int64_t{0}}}});
            return out;
          },
          [](const Operation&) -> std::vector<ErrorSample> {
            return {{.refusal = Refusal::shape, .operands = {{{2}}, {{2}}}, .mentions = "(2,)"},
                    {.refusal = Refusal::shape, .operands = {{{2, 3}}, {{4, 3}}}, .mentions = "(4, 3)"},
                    {.refusal = Refusal::shape, .operands = {{{3}}, {{1}}}, .mentions = "(1,)"}};
          }),
      entry(
          "diagonal", "diagonal(x, offset=0, axis1=-2, axis2=-1)",
          "The elements x[..., i, i + offset] as the last axis.", kAnyType,
          [](Tensors x, const Arguments& a) -> Results {
            return {diagonal(x[0], a.integer("offset", 0), a.axis("axis1", -2), a.axis("axis2", -1))};
          },
          diagonal_samples,
          [](const Operation& op) {
            std::vector<ErrorSample> out = matrix_errors(op);
            out.push_back({Refusal::shape, {{{2, 3}}}, {{"axis1", std::int64_t{1}}}, "(2, 3)"});
            out.push_back({Refusal::shape, {{{2, 3}}}, {{"axis2", std::int64_t{-3}}}, "-3"});
            return out;
          }),
      entry(
          "trace", "trace(x, offset=0, dtype=that of sum)",
          "The sums of the diagonals of the last two axes. Of bool and types narrower than int32 they are "
          "int32.",
          kAnyType,
          [](Tensors x, const Arguments& a) -> Results {
            const std::int64_t k = a.integer("offset", 0);
            return {a.has("dtype") ? trace(x[0], k, a.dtype("dtype", x[0].dtype())) : trace(x[0], k)};
          },
          trace_samples, matrix_errors, ResultType::summed),
      entry(
          "tril", "tril(x, k=0)",
          "The lower triangle of the last two axes, up to diagonal k; zeros elsewhere.", kAnyType,
          [](Tensors x, const Arguments& a) -> Results { return {tril(x[0], a.integer("k", 0))}; },
          triangle_samples, matrix_errors),
      entry(
          "triu", "triu(x, k=0)",
          "The upper triangle of the last two axes, from diagonal k; zeros elsewhere.", kAnyType,
          [](Tensors x, const Arguments& a) -> Results { return {triu(x[0], a.integer("k", 0))}; },
          triangle_samples, matrix_errors),
      entry(
          "vector_norm", "vector_norm(x, axis=all, ord=2, keepdims=false)",
          "(sum |x|^ord)^(1/ord). The gradient where the norm is 0 is 0.", kFloating,
          [](Tensors x, const Arguments& a) -> Results {
            return {vector_norm(x[0], a.has("axis") ? Axes(a.axes("axis")) : Axes(), a.real("ord", 2),
                                a.flag("keepdims", false))};
          },
          norm_samples, norm_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
