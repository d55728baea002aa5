// The entries of the family `indexing`.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

Operand indices(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::i32, .values = std::move(values)};
}

std::vector<Sample> take_samples(const Operation&) {
  const auto axis = [](std::int64_t i) { return Arguments{{"axis", i}}; };
  return {{{{{5}}, indices({3}, {4, 0, 4})}},
          {{{{5}}, indices({}, {2})}},
          {{{{4, 3}}, indices({2, 2}, {3, 1, 0, 3})}},
          {{{{4, 3}}, indices({4}, {2, 0, 1, 2})}, axis(1)},
          {{{{2, 5, 3}}, indices({2}, {4, 1})}, axis(-2)},
          {{{{2, 5, 3}}, indices({0}, {})}, axis(1)},
          {{{{0, 3}}, indices({2}, {0, 2})}, axis(1)}};
}

std::vector<ErrorSample> take_errors(const Operation&) {
  return {{.refusal = Refusal::dtype, .operands = {{{3}}, {{2}}}, .mentions = "float32"},
          {.refusal = Refusal::shape,
           .operands = {{{3}}, indices({1}, {0})},
           .arguments = {{"axis", std::int64_t{1}}},
           .mentions = "(3,)"}};
}

std::vector<Sample> scatter_samples(const Operation&) {
  const auto axis = [](std::int64_t i) { return Arguments{{"axis", i}}; };
  return {{{{{5}}, indices({3}, {4, 0, 4}), {{3}}}},
          {{{{4, 3}}, indices({2, 2}, {3, 1, 0, 3}), {{2, 2, 3}}}},
          {{{{4, 3}}, indices({4}, {2, 0, 1, 2}), {{4, 4}}}, axis(1)},
          {{{{2, 5, 3}}, indices({2}, {4, 4}), {{2, 2, 3}}}, axis(-2)},
          {{{{2, 5}}, indices({0}, {}), {{2, 0}}}, axis(1)}};
}

std::vector<ErrorSample> scatter_errors(const Operation&) {
  return {{.refusal = Refusal::shape,
           .operands = {{{3, 2}}, indices({4}, {0, 0, 0, 0}), {{4, 3}}},
           .mentions = "(4, 3)"},
          {.refusal = Refusal::dtype,
           .operands = {{{3}}, indices({2}, {0, 1}), {.shape = {2}, .dtype = DType::f64}},
           .mentions = "float64"},
          {.refusal = Refusal::dtype, .operands = {{{3}}, {{2}}, {{2}}}, .mentions = "float32"}};
}

}  // namespace

std::span<const Operation> indexing_operations() {
  static const Operation kTable[] = {
      {.name = "take",
       .family = "indexing",
       .signature = "take(x, indices, axis=0, outside)",
       .summary =
           "The slices of x at `indices` along an axis, which their shape replaces. An index outside gives "
           "NaN, or 0 in types without one; with wrap it is counted on from the other end, with clip it is "
           "the "
           "nearest inside.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         const std::string outside = a.text("outside", "");
         if (!outside.empty())
           return {caldera::take(x[0], x[1], a.axis("axis", 0),
                                 outside == "wrap" ? OutsideIndex::wrap : OutsideIndex::clip)};
         return {caldera::take(x[0], x[1], a.axis("axis", 0))};
       },
       .samples =
           [](const Operation& operation) {
             std::vector<Sample> out = take_samples(operation);
             for (const char* outside : {"wrap", "clip"}) {
               const Arguments a{{"axis", std::int64_t{1}}, {"outside", std::string(outside)}};
               out.push_back({{{{2, 3}}, indices({2, 3}, {-1, 3, 7, 0, -9, 2})}, a});
             }
             return out;
           },
       .errors = take_errors},
      {.name = "scatter_add",
       .family = "indexing",
       .signature = "scatter_add(base, indices, updates, axis=0)",
       .summary =
           "base with updates added at `indices` along an axis. Repeated indices add up, in order; indices "
           "outside are dropped.",
       .types = kNumeric,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::scatter_add(x[0], x[1], x[2], a.axis("axis", 0))};
       },
       .samples = scatter_samples,
       .errors = scatter_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
