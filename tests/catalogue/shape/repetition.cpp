// The entries of the family `repetition`.
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/operands.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Integers = Arguments::Integers;
using Results = std::vector<LazyTensor>;
using Rows = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;

Results call_repeat(Tensors x, const Arguments& a) {
  const std::optional<int> axis = a.has("axis") ? std::optional<int>(a.axis("axis", 0)) : std::nullopt;
  if (x.size() > 1) return {repeat(x[0], x[1], axis, a.integer("total", 0))};
  const Integers counts = a.integers("repeats");
  if (counts.size() == 1) return {repeat(x[0], counts[0], axis)};
  return {repeat(x[0], counts, axis)};
}
Arguments times(Integers counts) { return {{"repeats", std::move(counts)}}; }
Arguments times(Integers counts, std::int64_t axis) {
  return {{"repeats", std::move(counts)}, {"axis", axis}};
}

Results call_diff(Tensors x, const Arguments& a) {
  return {diff(x[0], a.integer("n", 1), a.axis("axis", -1), x.size() > 1 ? x[1] : LazyTensor(),
               x.size() > 2 ? x[2] : LazyTensor())};
}
Arguments order(std::int64_t n, std::int64_t axis) { return {{"n", n}, {"axis", axis}}; }
Arguments windows(std::int64_t axis, std::int64_t size, std::int64_t step) {
  return {{"axis", axis}, {"size", size}, {"step", step}};
}
Arguments offset(std::int64_t k) { return {{"offset", k}}; }
Arguments offset(std::int64_t k, std::int64_t axis1, std::int64_t axis2) {
  return {{"offset", k}, {"axis1", axis1}, {"axis2", axis2}};
}

constexpr EntriesOf entry{"manipulation", kAnyType};

}  // namespace

std::span<const Operation> repetition_operations() {
  static const Operation kTable[] = {
      entry(
          "tile", "tile(x, repetitions)", "x repeated as a whole along each axis.",
          [](Tensors x, const Arguments& a) -> Results { return {tile(x[0], a.integers("repeats"))}; },
          [](const Operation&) -> Rows {
            return {
                {{{{}}}, times({3})},        {{{{7}}}, times({2})},       {{{{2, 3}}}, times({2})},
                {{{{2, 3}}}, times({2, 1})}, {{{{3}}}, times({2, 2})},    {{{{2, 3}}}, times({})},
                {{{{2, 3}}}, times({0, 2})}, {{{{0, 3}}}, times({2, 2})}, {{{{2, 3, 2}}}, times({2, 3, 2})}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::value, {{{2, 3}}}, times({2, -1}), "-1"},
                    {Refusal::shape, {{{2, 3}}}, times({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}), "13"}};
          }),
      entry(
          "repeat", "repeat(x, count or counts, axis=none, total=their sum)",
          "Each element repeated along an axis, or without one all in row-major order. Counts may be a "
          "tensor: "
          "what is missing of the total is NaN, or 0.",
          call_repeat,
          [](const Operation&) -> Rows {
            return {{{{{}}}, times({3})},
                    {{{{2, 3}}}, times({2})},
                    {{{{2, 3}}}, times({2}, 0)},
                    {{{{2, 3, 2}}}, times({3}, -2)},
                    {{{{7}}}, times({0}, 0)},
                    {{{{3}}}, times({2, 0, 1}, 0)},
                    {{{{2, 3}}}, times({1, 0, 2}, 1)},
                    {{{{2, 2}}}, times({1, 2, 0, 3})},
                    {{{{0, 3}}}, times({2}, 0)},
                    {{{{3}}, index_operand({3}, {2, 0, 1})}, {{"total", std::int64_t{3}}}},
                    {{{{2, 3}}, index_operand({3}, {1, 0, 2})},
                     {{"axis", std::int64_t{1}}, {"total", std::int64_t{2}}}},
                    {{{{2, 3}}, index_operand({1}, {2})},
                     {{"axis", std::int64_t{0}}, {"total", std::int64_t{4}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::value, {{{2, 3}}}, times({-1}), "-1"},
                    {Refusal::value, {{{3}}}, times({1, -2, 1}), "-2"},
                    {Refusal::shape, {{{2, 3}}}, times({1, 2}, 1), "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}}, times({2}, 2), "(2, 3)"},
                    {Refusal::shape,
                     {{{2, 3}}, index_operand({2}, {1, 1})},
                     {{"total", std::int64_t{2}}},
                     "(2,)"},
                    {Refusal::dtype, {{{3}}, {{3}}}, {{"total", std::int64_t{2}}}, "float32"},
                    {Refusal::value,
                     {{{3}}, index_operand({3}, {1, 1, 1})},
                     {{"total", std::int64_t{-1}}},
                     "-1"}};
          }),
      entry(
          "diag", "diag(x, offset=0)",
          "A vector on a diagonal of a matrix of zeros; of a matrix its diagonal.",
          [](Tensors x, const Arguments& a) -> Results { return {diag(x[0], a.integer("offset", 0))}; },
          [](const Operation&) -> Rows {
            return {{{{{3}}}, offset(0)},    {{{{3}}}, offset(2)}, {{{{2}}}, offset(-1)},
                    {{{{1}}}, offset(0)},    {{{{0}}}, offset(1)}, {{{{3, 4}}}, offset(1)},
                    {{{{4, 3}}}, offset(-2)}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3, 4}}}, offset(0), "(2, 3, 4)"},
                    {Refusal::shape, {{{}}}, offset(0), "()"}};
          }),
      entry(
          "diag_embed", "diag_embed(x, offset=0, axis1=-2, axis2=-1)",
          "The last axis on a diagonal of matrices of zeros.",
          [](Tensors x, const Arguments& a) -> Results {
            return {diag_embed(x[0], a.integer("offset", 0), a.axis("axis1", -2), a.axis("axis2", -1))};
          },
          [](const Operation&) -> Rows {
            return {{{{{2, 3}}}, offset(0)},
                    {{{{2, 3}}}, offset(-2)},
                    {{{{2, 2}}}, offset(1, 0, 2)},
                    {{{{2, 1, 3}}}, offset(0, 1, 0)},
                    {{{{0, 2}}}, offset(0)}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, offset(0, 1, 1), "(2, 3, 3)"},
                    {Refusal::shape, {{{2, 3}}}, offset(0, 3, 1), "(2, 3, 3)"},
                    {Refusal::shape, {{{}}}, offset(0), "()"}};
          }),
      entry(
          "unfold", "unfold(x, axis, size, step=1)",
          "Windows along an axis; a new last axis has their elements.",
          [](Tensors x, const Arguments& a) -> Results {
            return {unfold(x[0], a.axis("axis", 0), a.integer("size", 1), a.integer("step", 1))};
          },
          [](const Operation&) -> Rows {
            return {{{{{7}}}, windows(0, 3, 1)},     {{{{7}}}, windows(0, 2, 3)},
                    {{{{7}}}, windows(0, 6, 1)},     {{{{2, 5, 3}}}, windows(1, 2, 2)},
                    {{{{2, 5}}}, windows(-1, 5, 1)}, {{{{3, 2}}}, windows(0, 1, 1)},
                    {{{{0, 3}}}, windows(1, 2, 1)}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, windows(1, 4, 1), "(2, 3)"},
                    {Refusal::value, {{{2, 3}}}, windows(1, 0, 1), "size 0"},
                    {Refusal::value, {{{2, 3}}}, windows(1, 1, 0), "step 0"},
                    {Refusal::shape, {{{2, 3}}}, windows(2, 1, 1), "(2, 3)"}};
          }),
      entry(
          "diff", "diff(x, n=1, axis=-1, prepend=none, append=none)",
          "Differences of neighbours along an axis, n times over; of booleans whether they differ.",
          call_diff,
          [](const Operation&) -> Rows {
            return {{{{{7}}}},
                    {{{{1}}}},
                    {{{{2, 3, 4}}}, order(1, 1)},
                    {{{{2, 7}}}, order(3, -1)},
                    {{{{2, 3}}}, order(0, 0)},
                    {{{{2, 3}}}, order(4, -1)},
                    {{{{2, 3}}, {{2, 1}}, {{2, 2}}}},
                    {{{{0, 3}}}},
                    {{{{2, 0}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::value, {{{7}}}, order(-1, 0), "n is -1"},
                    {Refusal::shape, {{{2, 3}}}, order(1, 2), "(2, 3)"},
                    {.refusal = Refusal::shape, .operands = {{{2, 3}}, {{3, 1}}}, .mentions = "(3, 1)"}};
          }),
  };
  return kTable;
}

}  // namespace caldera::catalogue
