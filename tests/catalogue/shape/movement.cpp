// The entries of the family `movement`.
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Integers = Arguments::Integers;
using Rows = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;

Arguments axis(std::int64_t i) { return {{"axis", i}}; }
Arguments to_shape(Integers extents) { return {{"shape", std::move(extents)}}; }
Arguments axes(Integers which) { return {{"axis", std::move(which)}}; }
Arguments order(Integers axes) { return {{"axes", std::move(axes)}}; }

Shape shape_argument(const Arguments& a) {
  Shape shape;
  for (const std::int64_t extent : a.integers("shape")) shape.push_back(extent);
  return shape;
}

constexpr std::int64_t kFarthest = std::numeric_limits<std::int64_t>::max();

Arguments from(Integers starts) { return {{"starts", std::move(starts)}}; }
Arguments window(Integers starts, Integers sizes) {
  return {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}};
}

Arguments bounds(std::int64_t at, std::int64_t start, std::int64_t stop, std::int64_t step) {
  return {{"axis", at}, {"start", start}, {"stop", stop}, {"step", step}};
}

std::optional<std::int64_t> bound(const Arguments& a, std::string_view name) {
  if (!a.has(name)) return {};
  return a.integer(name, 0);
}

}  // namespace

std::span<const Operation> movement_operations() {
  using Results = std::vector<LazyTensor>;
  static const Operation kTable[] = {
      {.name = "reshape",
       .family = "movement",
       .signature = "reshape(x, shape)",
       .summary = "The same elements in row-major order; one extent may be -1: it is inferred.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::reshape(x[0], shape_argument(a))};
       },
       .samples = [](const Operation&) -> Rows {
         return {{{{{6}}}, to_shape({2, 3})},        {{{{2, 3}}}, to_shape({-1})},
                 {{{{2, 3, 4}}}, to_shape({4, -1})}, {{{{1}}}, to_shape({})},
                 {{{{}}}, to_shape({1, 1})},         {{{{0, 3}}}, to_shape({3, 0})}};
       },
       .errors = [](const Operation&) -> Errors {
         return {{Refusal::shape, {{{2, 3}}}, to_shape({4, -1}), "(2, 3)"},
                 {Refusal::shape, {{{2, 3}}}, to_shape({5}), "(5,)"},
                 {Refusal::shape, {{{2, 3}}}, to_shape({-1, -1}), "(2, 3)"}};
       }},
      {.name = "permute_dims",
       .family = "movement",
       .signature = "permute_dims(x, axes)",
       .summary = "The axes in another order: out.shape[i] = x.shape[axes[i]].",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::permute_dims(x[0], a.axes("axes"))};
       },
       .samples = [](const Operation&) -> Rows {
         return {{{{{2, 3}}}, order({1, 0})},
                 {{{{2, 3, 4}}}, order({2, 0, 1})},
                 {{{{2, 3, 4, 2}}}, order({-1, 1, 0, 2})},
                 {{{{0, 3}}}, order({1, 0})}};
       },
       .errors = [](const Operation&) -> Errors {
         return {{Refusal::shape, {{{2, 3}}}, order({0, 0}), "(2, 3)"},
                 {Refusal::shape, {{{2, 3}}}, order({0}), "(2, 3)"}};
       }},
      {.name = "transpose",
       .family = "movement",
       .signature = "transpose(x)",
       .summary = "The last two axes swapped (matrix_transpose of the Array API).",
       .types = kAnyType,
       .call = call_unary<caldera::transpose>,
       .samples = [](const Operation&) -> Rows {
         return {{{{{2, 3}}}}, {{{{2, 3, 4}}}}, {{{{0, 3}}}}};
       },
       .errors = [](const Operation&) -> Errors {
         return {{.refusal = Refusal::shape, .operands = {{{3}}}, .mentions = "(3,)"}};
       }},
      {.name = "swapaxes",
       .family = "movement",
       .signature = "swapaxes(x, a, b)",
       .summary = "Two axes swapped.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::swapaxes(x[0], a.axis("a", 0), a.axis("b", 1))};
       },
       .samples = [](const Operation&) -> Rows {
         return {{{{{2, 3, 4}}}, {{"a", std::int64_t{0}}, {"b", std::int64_t{-1}}}},
                 {{{{2, 3}}}, {{"a", std::int64_t{1}}, {"b", std::int64_t{0}}}},
                 {{{{0, 3}}}, {{"a", std::int64_t{0}}, {"b", std::int64_t{1}}}}};
       },
       .errors = [](const Operation&) -> Errors {
         return {{Refusal::shape, {{{2, 3}}}, {{"a", std::int64_t{0}}, {"b", std::int64_t{2}}}, "(2, 3)"}};
       }},
      {.name = "squeeze",
       .family = "movement",
       .signature = "squeeze(x, axis=all of extent 1)",
       .summary = "Without axes of extent 1.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::squeeze(x[0], a.has("axis") ? Axes(a.axes("axis")) : Axes())};
       },
       .samples = [](const Operation&) -> Rows {
         return {{{{{1}}}, axes({0})},        {{{{2, 1, 3}}}, axes({1})},
                 {{{{2, 3, 1}}}, axes({-1})}, {{{{1, 3, 1, 1}}}, axes({-1, 0})},
                 {{{{1, 3, 1, 2}}}},          {{{{2, 3}}}},
                 {{{{0, 1, 3}}}, axes({1})}};
       },
       .errors = [](const Operation&) -> Errors {
         return {{Refusal::shape, {{{2, 3}}}, axes({1}), "(2, 3)"},
                 {Refusal::shape, {{{1}}}, axes({1}), "(1,)"},
                 {Refusal::shape, {{{1, 3, 1}}}, axes({0, -3}), "named twice"}};
       }},
      {.name = "expand_dims",
       .family = "movement",
       .signature = "expand_dims(x, axis)",
       .summary = "With a new axis of extent 1.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::expand_dims(x[0], a.axis("axis", 0))};
       },
       .samples = [](const Operation&) -> Rows {
         return {{{{{}}}, axis(0)},
                 {{{{2, 3}}}, axis(1)},
                 {{{{2, 3}}}, axis(-1)},
                 {{{{2, 3}}}, axis(-3)},
                 {{{{0, 3}}}, axis(1)}};
       },
       .errors = [](const Operation&) -> Errors {
         return {{Refusal::shape, {{{2, 3}}}, axis(3), "(2, 3)"},
                 {Refusal::shape, {{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}}}, axis(0), "12 axes"}};
       }},
      {.name = "broadcast_to",
       .family = "movement",
       .signature = "broadcast_to(x, shape)",
       .summary = "x repeated along axes of extent 1 and new leading axes.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::broadcast_to(x[0], shape_argument(a))};
       },
       .samples = [](const Operation&) -> Rows {
         return {{{{{}}}, to_shape({3})},
                 {{{{3}}}, to_shape({2, 3})},
                 {{{{2, 1}}}, to_shape({4, 2, 3})},
                 {{{{1, 3}}}, to_shape({0, 3})}};
       },
       .errors = [](const Operation&) -> Errors {
         return {{Refusal::shape, {{{2, 3}}}, to_shape({2, 4}), "(2, 4)"},
                 {Refusal::shape, {{{2, 3}}}, to_shape({3}), "(2, 3)"}};
       }},
      {.name = "slice",
       .family = "movement",
       .signature = "slice(x, axis, start, stop, step=1)",
       .summary = "x[..., start:stop:step, ...] along one axis, with Python's rules for negative and absent "
                  "bounds.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::slice(x[0], a.axis("axis", 0), bound(a, "start"), bound(a, "stop"),
                                a.integer("step", 1))};
       },
       .samples = [](const Operation&) -> Rows {
         return {{{{{7}}}, bounds(0, 1, 6, 2)},
                 {{{{7}}}, bounds(0, -3, 100, 1)},
                 {{{{4, 5}}}, bounds(1, 4, 0, -2)},
                 {{{{4, 5}}}, bounds(0, 2, 2, 1)},
                 {{{{2, 3, 4}}}, bounds(-1, 1, 3, 1)},
                 {{{{4}}}, {{"axis", std::int64_t{0}}, {"step", std::int64_t{-1}}}},
                 {{{{0, 3}}}, bounds(0, 0, 2, 1)},
                 {{{{0, 3}}}, bounds(1, 2, 0, -1)},
                 {{{{4}}}, {{"axis", std::int64_t{0}}, {"step", std::int64_t{4}}}},
                 {{{{4}}}, {{"axis", std::int64_t{0}}, {"step", kFarthest}}},
                 {{{{4, 2}}}, {{"axis", std::int64_t{0}}, {"step", -kFarthest - 1}}},
                 {{{{1, 2}}}, {{"axis", std::int64_t{0}}, {"step", kFarthest}}},
                 {{{{0, 2}}}, {{"axis", std::int64_t{0}}, {"step", -kFarthest}}},
                 {{{{4}}}, bounds(0, 3, 1, -kFarthest)}};
       },
       .errors = [](const Operation&) -> Errors {
         return {{Refusal::value, {{{2, 3}}}, bounds(0, 0, 2, 0), "step cannot be zero"},
                 {Refusal::shape, {{{2, 3}}}, bounds(2, 0, 2, 1), "(2, 3)"}};
       }},
      {.name = "dynamic_slice",
       .family = "movement",
       .signature = "dynamic_slice(x, starts, sizes)",
       .summary =
           "The window of x of extents sizes that begins at starts, clamped to lie within x; starts are "
           "arguments of the plan, or tensors of one element.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::dynamic_slice(x[0], a.integers("starts"), a.integers("sizes"))};
       },
       .samples = [](const Operation&) -> Rows {
         return {{{{{7}}}, window({2}, {3})},           {{{{4, 5}}}, window({1, 2}, {2, 3})},
                 {{{{4, 5}}}, window({3, -2}, {2, 4})}, {{{{2, 3, 4}}}, window({0, 1, 9}, {2, 2, 1})},
                 {{{{4, 5}}}, window({2, 0}, {0, 5})},  {{{{3}}}, window({1}, {3})},
                 {{{{0, 3}}}, window({0, 1}, {0, 2})}};
       },
       .errors = [](const Operation&) -> Errors {
         return {{Refusal::shape, {{{2, 3}}}, window({0}, {1}), "(2, 3)"},
                 {Refusal::shape, {{{2, 3}}}, window({0, 0}, {1, 4}), "size 4 along axis 1"},
                 {Refusal::shape, {{{2, 3}}}, window({0, 0}, {-1, 2}), "size -1 along axis 0"}};
       }},
      {.name = "dynamic_update_slice",
       .family = "movement",
       .signature = "dynamic_update_slice(x, update, starts)",
       .summary =
           "x with update in place of the window that begins at starts, clamped to lie within x; starts "
           "are arguments of the plan, or tensors of one element.",
       .types = kAnyType,
       .call = [](Tensors x, const Arguments& a) -> Results {
         return {caldera::dynamic_update_slice(x[0], x[1], a.integers("starts"))};
       },
       .samples = [](const Operation&) -> Rows {
         return {{{{{7}}, {{3}}}, from({2})},           {{{{4, 5}}, {{2, 3}}}, from({1, 2})},
                 {{{{4, 5}}, {{2, 4}}}, from({3, -2})}, {{{{2, 3, 4}}, {{2, 2, 1}}}, from({0, 1, 9})},
                 {{{{4, 5}}, {{0, 5}}}, from({2, 0})},  {{{{3}}, {{3}}}, from({1})}};
       },
       .errors = [](const Operation&) -> Errors {
         return {{Refusal::shape, {{{2, 3}}, {{1, 2}}}, from({0}), "(2, 3)"},
                 {Refusal::shape, {{{2, 3}}, {{3, 1}}}, from({0, 0}), "size 3 along axis 0"}};
       }},
  };
  return kTable;
}

}  // namespace caldera::catalogue
