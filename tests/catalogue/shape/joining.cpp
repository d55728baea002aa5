// The entries of the family `joining`.
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Integers = Arguments::Integers;

std::vector<LazyTensor> listed(Tensors x) { return {x.begin(), x.end()}; }

std::vector<Sample> concatenate_samples(const Operation&) {
  const auto axis = [](std::int64_t i) { return Arguments{{"axis", i}}; };
  return {{{{{3}}}},
          {{{{3}}, {{4}}}},
          {{{{2, 3}}, {{1, 3}}, {{4, 3}}}},
          {{{{2, 3}}, {{2, 1}}}, axis(1)},
          {{{{2, 3, 2}}, {{2, 0, 2}}, {{2, 5, 2}}}, axis(-2)},
          {{{{0, 3}}, {{0, 3}}}}};
}

std::vector<Sample> stack_samples(const Operation&) {
  const auto axis = [](std::int64_t i) { return Arguments{{"axis", i}}; };
  return {{{{{}}, {{}}}},
          {{{{3}}, {{3}}, {{3}}}},
          {{{{2, 3}}, {{2, 3}}}, axis(1)},
          {{{{2, 3}}, {{2, 3}}}, axis(-1)},
          {{{{0, 3}}, {{0, 3}}}, axis(1)}};
}

std::vector<Sample> pad_samples(const Operation&) {
  const auto margins = [](Integers low, Integers high, Integers interior = {}) {
    Arguments a{{"low", low}, {"high", high}, {"value", 0.5}};
    if (!interior.empty()) a = {{"low", low}, {"high", high}, {"value", 0.5}, {"interior", interior}};
    return a;
  };
  return {{{{{3}}}, margins({1}, {2})},
          {{{{2, 3}}}, margins({0, 1}, {2, 0})},
          {{{{2, 3}}}, margins({1, 0}, {0, 1}, {2, 1})},
          {{{{0, 3}}}, margins({1, 1}, {1, 1})}};
}

}  // namespace

std::span<const Operation> joining_operations() {
  static const Operation kTable[] = {
      {.name = "concatenate",
       .family = "joining",
       .signature = "concatenate({x...}, axis=0)",
       .summary = "The tensors one after the other along an axis; their types promote.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::concatenate(listed(x), a.axis("axis", 0))};
       },
       .samples = concatenate_samples,
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{2, 4}}}, .mentions = "(2, 4)"},
                 {.refusal = Refusal::shape, .operands = {{{2, 3}}, {{2}}}, .mentions = "(2,)"},
                 {.refusal = Refusal::shape, .operands = {{{}}, {{}}}, .mentions = "()"}};
       }},
      {.name = "concat",
       .family = "joining",
       .signature = "concat({x...}, axis=0)",
       .summary = "concatenate by its name in the Array API; without an axis of the tensors flattened.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::concat(
             listed(x), a.flag("flat", false) ? std::nullopt : std::optional<int>(a.axis("axis", 0)))};
       },
       .samples = [](const Operation&) -> std::vector<Sample> {
         return {{{{{3}}, {{4}}}},
                 {{{{2, 3}}, {{2, 1}}}, {{"axis", std::int64_t{-1}}}},
                 {{{{2, 3}}, {{}}, {{0, 5}}}, {{"flat", true}}}};
       },
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{.refusal = Refusal::shape, .operands = {{{2, 3}}, {{2, 4}}}, .mentions = "(2, 4)"},
                 {Refusal::shape, {{{2}}, {{2}}}, {{"axis", std::int64_t{1}}}, "(2,)"}};
       }},
      {.name = "stack",
       .family = "joining",
       .signature = "stack({x...}, axis=0)",
       .summary = "Tensors of one shape along a new axis.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::stack(listed(x), a.axis("axis", 0))};
       },
       .samples = stack_samples,
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{.refusal = Refusal::shape, .operands = {{{2}}, {{3}}}, .mentions = "(3,)"},
                 {.refusal = Refusal::shape, .operands = {{{}}, {{2, 3}}}, .mentions = "(2, 3)"},
                 {Refusal::shape, {{{}}, {{2, 3}}}, {{"axis", std::int64_t{1}}}, "()"},
                 {Refusal::shape, {{{2}}, {{2}}}, {{"axis", std::int64_t{-3}}}, "-3"}};
       }},
      {.name = "pad",
       .family = "joining",
       .signature = "pad(x, low, high, value=0, interior=none)",
       .summary = "x with margins of a value on either side of each axis, and `interior` elements between "
                  "neighbours.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::pad(x[0], a.integers("low"), a.integers("high"), a.real("value", 0),
                              a.integers("interior"))};
       },
       .samples = pad_samples,
       .errors = [](const Operation&) -> std::vector<ErrorSample> {
         return {{Refusal::shape, {{{2, 3}}}, {{"low", Integers{1}}, {"high", Integers{1}}}, "(2, 3)"},
                 {Refusal::shape, {{{3}}}, {{"low", Integers{-5}}, {"high", Integers{1}}}, "(3,)"},
                 {Refusal::shape,
                  {{{3}}},
                  {{"low", Integers{0}}, {"high", Integers{0}}, {"interior", Integers{-1}}},
                  "(3,)"}};
       }},
  };
  return kTable;
}

}  // namespace caldera::catalogue
