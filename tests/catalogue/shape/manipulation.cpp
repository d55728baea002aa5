// The entries of the family `manipulation`.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Integers = Arguments::Integers;
using Results = std::vector<LazyTensor>;
using Rows = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;

/// Of the argument, or all.
Axes axes_of(const Arguments& a, std::string_view name) { return a.has(name) ? Axes(a.axes(name)) : Axes(); }
Results list(Tensors x) { return {x.begin(), x.end()}; }
Shape shape_of(const Integers& extents) { return Shape(std::span<const std::int64_t>(extents)); }

Arguments axis(std::int64_t i) { return {{"axis", i}}; }

Results call_roll(Tensors x, const Arguments& a) {
  const Integers shifts = a.integers("shift");
  if (shifts.size() != 1) return {roll(x[0], shifts, axes_of(a, "axes"))};
  return {a.has("axes") ? roll(x[0], shifts[0], axes_of(a, "axes")) : roll(x[0], shifts[0])};
}
Rows roll_samples(const Operation&) {
  const auto along = [](Integers shift, Integers axes) {
    return Arguments{{"shift", std::move(shift)}, {"axes", std::move(axes)}};
  };
  return {{{{{7}}}, {{"shift", Integers{2}}}},
          {{{{2, 3}}}, {{"shift", Integers{-8}}}},
          {{{{}}}, {{"shift", Integers{1}}}},
          {{{{0, 3}}}, {{"shift", Integers{1}}}},
          {{{{33}}}, along({5}, {0})},
          {{{{2, 3, 4}}}, along({-1}, {1})},
          {{{{2, 3, 4}}}, along({1, 2}, {0, -1})},
          {{{{3, 5}}}, along({1}, {0, 1})},
          {{{{3, 5}}}, along({1, 1}, {1, 1})},
          {{{{0, 3}}}, along({2}, {0})}};
}

Results call_moveaxis(Tensors x, const Arguments& a) {
  return {moveaxis(x[0], axes_of(a, "source"), axes_of(a, "destination"))};
}
Arguments moves(Integers from, Integers to) {
  return {{"source", std::move(from)}, {"destination", std::move(to)}};
}

Results call_split(Tensors x, const Arguments& a) {
  if (a.has("sizes")) return split(x[0], a.integers("sizes"), a.axis("axis", 0));
  return split(x[0], a.integer("size", 1), a.axis("axis", 0));
}
Arguments sized(std::int64_t size, std::int64_t axis) { return {{"size", size}, {"axis", axis}}; }
Arguments sized(Integers sizes, std::int64_t axis) { return {{"sizes", std::move(sizes)}, {"axis", axis}}; }

Arguments counted(std::int64_t count, std::int64_t axis) { return {{"count", count}, {"axis", axis}}; }
Arguments ranged(std::int64_t first, std::int64_t last) { return {{"first", first}, {"last", last}}; }
Arguments parts(std::int64_t axis, Integers extents) {
  return {{"axis", axis}, {"extents", std::move(extents)}};
}

Results call_meshgrid(Tensors x, const Arguments& a) {
  return meshgrid(list(x), a.text("indexing", "xy") == "ij" ? GridIndexing::ij : GridIndexing::xy);
}

constexpr EntriesOf entry{"manipulation", kAnyType};

}  // namespace

std::span<const Operation> manipulation_operations() {
  static const Operation kTable[] = {
      entry(
          "flip", "flip(x, axes=all)", "The elements along the axes in reverse order.",
          [](Tensors x, const Arguments& a) -> Results { return {flip(x[0], axes_of(a, "axes"))}; },
          [](const Operation&) -> Rows {
            return {{{{{}}}},
                    {{{{7}}}},
                    {{{{2, 3}}}},
                    {{{{2, 3, 4}}}, {{"axes", Integers{1}}}},
                    {{{{2, 3, 4}}}, {{"axes", Integers{-1, 0}}}},
                    {{{{0, 3}}}, {{"axes", Integers{0}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, {{"axes", Integers{2}}}, "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}}, {{"axes", Integers{1, -1}}}, "(2, 3)"},
                    {Refusal::shape, {{{}}}, {{"axes", Integers{1}}}, "()"}};
          }),
      entry("roll", "roll(x, shift, axes=none)",
            "The elements moved on, those beyond the end to the front: in row-major order, or along each of "
            "the axes.",
            call_roll, roll_samples,
            [](const Operation&) -> Errors {
              return {{Refusal::shape, {{{2, 3}}}, {{"shift", Integers{1}}, {"axes", Integers{2}}}, "(2, 3)"},
                      {Refusal::value,
                       {{{2, 3}}},
                       {{"shift", Integers{1, 2}}, {"axes", Integers{0}}},
                       "2 shifts for 1 axes"}};
            }),
      entry(
          "moveaxis", "moveaxis(x, source, destination)",
          "Axes moved to other places; the others keep their order.", call_moveaxis,
          [](const Operation&) -> Rows {
            return {{{{{2, 3, 4}}}, moves({0}, {-1})},
                    {{{{2, 3, 4}}}, moves({-1, 0}, {0, 1})},
                    {{{{2, 3, 4, 2}}}, moves({1}, {2})},
                    {{{{2, 0, 4}}}, moves({2}, {0})},
                    {{{{7}}}, moves({0}, {0})}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, moves({2}, {0}), "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}}, moves({0, 1}, {0}), "2 source axes"},
                    {Refusal::shape, {{{2, 3}}}, moves({0, 1}, {1, -1}), "none twice"}};
          }),
      entry(
          "flatten", "flatten(x, first=0, last=-1)", "Neighbouring axes as one. A scalar gets one axis.",
          [](Tensors x, const Arguments& a) -> Results {
            return {flatten(x[0], a.axis("first", 0), a.axis("last", -1))};
          },
          [](const Operation&) -> Rows {
            return {{{{{}}}},
                    {{{{2, 3, 4}}}},
                    {{{{2, 3, 4}}}, ranged(1, -1)},
                    {{{{2, 3, 4}}}, ranged(0, 1)},
                    {{{{2, 0, 4}}}, ranged(1, 2)}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, ranged(1, 0), "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}}, ranged(0, 2), "(2, 3)"}};
          }),
      entry(
          "unflatten", "unflatten(x, axis, extents)", "An axis as several; one extent may be -1.",
          [](Tensors x, const Arguments& a) -> Results {
            return {unflatten(x[0], a.axis("axis", 0), shape_of(a.integers("extents")))};
          },
          [](const Operation&) -> Rows {
            return {{{{{6}}}, parts(0, {2, 3})},
                    {{{{2, 12}}}, parts(-1, {3, -1, 2})},
                    {{{{4, 3}}}, parts(0, {-1, 2})},
                    {{{{0, 3}}}, parts(0, {0, 5})}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 6}}}, parts(1, {4, 2}), "(4, 2)"},
                    {Refusal::shape, {{{2, 6}}}, parts(1, {4, -1}), "(4, -1)"},
                    {Refusal::shape, {{{2, 6}}}, parts(1, {-1, -1}), "(-1, -1)"},
                    {Refusal::shape, {{{2, 6}}}, parts(2, {6}), "(2, 6)"}};
          }),
      entry(
          "unstack", "unstack(x, axis=0)", "The slices along an axis, without it.",
          [](Tensors x, const Arguments& a) -> Results { return unstack(x[0], a.axis("axis", 0)); },
          [](const Operation&) -> Rows {
            return {{{{{3}}}}, {{{{2, 3}}}}, {{{{2, 3, 4}}}, axis(1)}, {{{{2, 3}}}, axis(-1)}, {{{{2, 0}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, axis(2), "(2, 3)"}, {Refusal::shape, {{{}}}, {}, "()"}};
          }),
      entry(
          "split", "split(x, size or sizes, axis=0)",
          "Parts of a size along an axis, the last with what is left; or parts of given sizes.", call_split,
          [](const Operation&) -> Rows {
            return {{{{{7}}}, sized(3, 0)},
                    {{{{2, 6}}}, sized(2, -1)},
                    {{{{4, 3}}}, sized(9, 0)},
                    {{{{7}}}, sized({2, 0, 5}, 0)},
                    {{{{2, 6, 2}}}, sized({1, 2, 3}, 1)},
                    {{{{0, 3}}}, sized(2, 0)}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 6}}}, sized({1, 2}, 1), "(2, 6)"},
                    {Refusal::shape, {{{2, 6}}}, sized({-1, 7}, 1), "(2, 6)"},
                    {Refusal::shape, {{{2, 6}}}, sized(1, 2), "(2, 6)"},
                    {Refusal::value, {{{2, 6}}}, sized(0, 1), "size is 0"}};
          }),
      entry(
          "chunk", "chunk(x, count, axis=0)",
          "At most `count` parts of equal size along an axis, the last with what is left.",
          [](Tensors x, const Arguments& a) -> Results {
            return chunk(x[0], a.integer("count", 1), a.axis("axis", 0));
          },
          [](const Operation&) -> Rows {
            return {{{{{7}}}, counted(3, 0)},
                    {{{{2, 6}}}, counted(3, -1)},
                    {{{{5}}}, counted(4, 0)},
                    {{{{0, 3}}}, counted(2, 0)}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::value, {{{2, 6}}}, counted(0, 1), "count is 0"},
                    {Refusal::shape, {{{2, 6}}}, counted(2, 2), "(2, 6)"}};
          }),
      entry(
          "meshgrid", "meshgrid({x...}, indexing=xy)",
          "The coordinates of a grid: each vector along an axis of its own. With xy the first two axes are "
          "swapped.",
          call_meshgrid,
          [](const Operation&) -> Rows {
            const Arguments ij{{"indexing", std::string("ij")}};
            return {{{{{3}}}},
                    {{{{3}}, {{4}}}},
                    {{{{3}}, {{4}}}, ij},
                    {{{{2}}, {{3}}, {{1}}}},
                    {{{{2}}, {{}}, {{4}}}, ij},
                    {{{{3}}, {{0}}}, ij}};
          },
          [](const Operation&) -> Errors {
            return {{.refusal = Refusal::shape, .operands = {{{3}}, {{2, 3}}}, .mentions = "(2, 3)"},
                    {.refusal = Refusal::dtype,
                     .operands = {{{3}}, {.shape = {2}, .dtype = DType::i32}},
                     .mentions = "int32"}};
          }),
      entry(
          "broadcast_arrays", "broadcast_arrays({x...})", "All tensors broadcast to their common shape.",
          [](Tensors x, const Arguments&) -> Results { return broadcast_arrays(list(x)); },
          [](const Operation&) -> Rows {
            return {{{{{7}}}}, {{{{2, 3}}, {{3}}}}, {{{{2, 1}}, {{}}, {{1, 3}}}}, {{{{0, 3}}, {{1}}}}};
          },
          binary_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
