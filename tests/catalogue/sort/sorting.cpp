// The entries of sorting.cpp in the table of operations.
#include "ops/sort/sorting.h"

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/operands.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Samples = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;
constexpr Range kDistinct{.distinct = true};

bool descending(const Arguments& a) { return a.flag("descending", false); }

Samples sort_samples(const Operation& operation) {
  Samples out = axis_samples(operation);
  out.push_back({{{{9}, kDistinct}}, {{"descending", true}}});
  out.push_back({{{{3, 5}, kDistinct}}, {{"axis", std::int64_t{0}}, {"descending", true}}});
  out.push_back({{{{3, 0}, kDistinct}}});
  out.push_back({{{{0, 3}, kDistinct}}});
  return out;
}

/// Longer than what is counted: through the network.
Samples argsort_samples(const Operation& operation) {
  Samples out = sort_samples(operation);
  out.push_back({{{{2, 65}, kDistinct}}});
  out.push_back({{{.shape = {7}, .values = {1, 0, 1, 1, 0, 0, 1}}}});
  out.push_back({{{.shape = {7}, .values = {1, 0, 1, 1, 0, 0, 1}}}, {{"descending", true}}});
  return out;
}

Samples topk_samples(const Operation&) {
  Samples out;
  const auto add = [&](const Shape& shape, std::int64_t k, std::int64_t axis, bool largest) {
    out.push_back({{{shape, kDistinct}}, {{"k", k}, {"axis", axis}, {"largest", largest}}});
  };
  for (const bool largest : {true, false}) {
    add({1}, 1, -1, largest);
    add({7}, 3, -1, largest);
    add({33}, 33, 0, largest);
    add({5, 4}, 2, 0, largest);
    add({2, 3, 4}, 1, 1, largest);
  }
  add({80}, 2, 0, true);
  add({7}, 0, 0, true);
  add({0, 3}, 2, 1, true);
  return out;
}

Errors topk_errors(const Operation&) {
  const auto k = [](std::int64_t n, std::int64_t axis) { return Arguments{{"k", n}, {"axis", axis}}; };
  return {{Refusal::value, {{{2, 3}}}, k(4, 1), "(2, 3)"},
          {Refusal::value, {{{2, 3}}}, k(-1, 1), "-1"},
          {Refusal::shape, {{{2, 3}}}, k(1, 2), "(2, 3)"},
          {Refusal::shape, {{{}}}, k(1, 1), "()"}};
}

Samples search_samples(const Operation&) {
  const Operand sorted{.shape = {7}, .values = {0, 1, 1, 2, 3, 3, 4}};
  const Operand rows{.shape = {2, 3}, .values = {0, 1, 3, 1, 2, 2}};
  Samples out;
  for (const bool right : {false, true}) {
    const Arguments side{{"right", right}};
    // Sequences that a sorter puts in order.
    const Operand order{.shape = {5}, .dtype = DType::i32, .values = {3, 1, 4, 0, 2}};
    const Operand orders{.shape = {2, 3}, .dtype = DType::i32, .values = {2, 0, 1, 1, 2, 0}};
    out.push_back(
        {{{.shape = {5}, .values = {3, 1, 4, 0, 2}}, {.shape = {2, 2}, .values = {3, 0, 1, 5}}, order},
         side});
    out.push_back({{{.shape = {2, 3}, .values = {2, 4, 1, 3, 0, 2}},
                    {.shape = {2, 4}, .values = {0, 1, 3, 4, 0, 1, 2, 3}},
                    orders},
                   side});
    out.push_back({{sorted, {.shape = {5}, .values = {0, 1, 2, 4, 5}}}, side});
    out.push_back({{sorted, {.shape = {2, 2}, .values = {3, 0, 1, 1}}}, side});
    out.push_back({{sorted, {.shape = {}, .values = {3}}}, side});
    out.push_back({{rows, {.shape = {2, 4}, .values = {0, 1, 3, 4, 0, 1, 2, 3}}}, side});
    out.push_back({{{.shape = {0}}, {{3}}}, side});
    out.push_back({{sorted, {{0}}}, side});
  }
  return out;
}

Errors search_errors(const Operation&) {
  return {{Refusal::shape, {{{}}, {{3}}}, {}, "()"},
          {Refusal::shape, {{{2, 3}}, {{3, 3}}}, {}, "(3, 3)"},
          {Refusal::shape, {{{2, 3}}, {{3}}}, {}, "(2, 3)"},
          {Refusal::shape, {{{3}}, {{2}}, {.shape = {2}, .dtype = DType::i32}}, {}, "(2,)"},
          {Refusal::dtype, {{{3}}, {{2}}, {{3}}}, {}, "float32"}};
}

constexpr EntriesOf entry{.family = "sorting", .ranges = {kDistinct}};

}  // namespace

std::span<const Operation> sorting_operations() {
  using R = ResultType;
  using G = Gradient;
  static const Operation kTable[] = {
      entry(
          "sort", "sort(x, axis=-1, descending=false)",
          "The elements in order, NaN last (first if descending). The gradient goes to where each came from.",
          kAnyType, R::same, G::full,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::sort(x[0], a.axis("axis", -1), descending(a))};
          },
          sort_samples, axis_errors),
      entry(
          "argsort", "argsort(x, axis=-1, descending=false)",
          "The positions of the elements in order, NaN last (first if descending). Equal elements keep their "
          "order.",
          kAnyType, R::index, G::none,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::argsort(x[0], a.axis("axis", -1), descending(a))};
          },
          argsort_samples, axis_errors),
      entry(
          "topk", "topk(x, k, axis=-1, largest=true)",
          "The k largest (or smallest) elements, best first, and their positions; of equal ones the first. "
          "NaN is the largest.",
          kNumeric, R::same, G::full,
          [](Tensors x, const Arguments& a) -> Results {
            const auto [values, indices] =
                caldera::topk(x[0], a.integer("k", 1), a.axis("axis", -1), a.flag("largest", true));
            return {values, astype(indices, x[0].dtype())};  // entries have results of one type
          },
          topk_samples, topk_errors),
      entry(
          "searchsorted", "searchsorted(sorted, values, right=false, sorter=none)",
          "How many elements of a sorted sequence are less (with right: not greater) than each value. NaN is "
          "the largest.",
          kNumeric, R::index, G::none,
          [](Tensors x, const Arguments& a) -> Results {
            return {caldera::searchsorted(x[0], x[1], a.flag("right", false), optional_operand(x, 2))};
          },
          search_samples, search_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
