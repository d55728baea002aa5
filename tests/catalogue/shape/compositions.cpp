// The entries of the family `compositions`.
#include <optional>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Rows = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;
using Integers = Arguments::Integers;

std::vector<LazyTensor> list_of(Tensors x) { return {x.begin(), x.end()}; }

Rows kron_samples(const Operation&) {
  return {{{{{2, 3}}, {{3, 2}}}}, {{{{3}}, {{4}}}}, {{{{2, 2}}, {{3}}}},
          {{{{}}, {{2, 3}}}},     {{{{}}, {{}}}},   {{{{2, 1, 3}}, {{1, 2, 2}}}},
          {{{{0, 3}}, {{2, 2}}}}};
}

Results call_vander(Tensors x, const Arguments& a) {
  const auto n = a.has("n") ? std::optional<std::int64_t>(a.integer("n", 0)) : std::nullopt;
  return {vander(x[0], n, a.flag("increasing", false))};
}

Results call_rot90(Tensors x, const Arguments& a) {
  return {rot90(x[0], a.integer("k", 1), a.has("axes") ? Axes(a.axes("axes")) : Axes{0, 1})};
}
Rows rot90_samples(const Operation&) {
  Rows out{{{{{2, 3}}}}, {{{{0, 3}}}}};
  for (const std::int64_t k : {-1, 0, 2, 3, 5}) out.push_back({{{{2, 3}}}, {{"k", k}}});
  out.push_back({{{{2, 3, 4}}}, {{"axes", Integers{1, 2}}}});
  out.push_back({{{{2, 3, 4}}}, {{"axes", Integers{-1, 0}}, {"k", std::int64_t{3}}}});
  return out;
}

constexpr Range kSmall{.low = -1.5, .high = 1.5};
constexpr EntriesOf entry{"compositions", kAnyType};

}  // namespace

std::span<const Operation> composition_operations() {
  static const Operation kTable[] = {
      entry("kron", "kron(a, b)", "The Kronecker product: every element of a times all of b, in blocks.",
            kNumeric, call_binary<caldera::kron>, kron_samples,
            [](const Operation&) -> Errors {
              return {{Refusal::shape, {{{1, 1, 1, 1, 1, 1, 2}}, {{3}}}, {}, "(1, 1, 1, 1, 1, 1, 2)"}};
            }),
      entry(
          "block_diag", "block_diag({x...})",
          "Matrices along the diagonal of one that is 0 elsewhere; vectors and numbers are matrices of one "
          "row.",
          [](Tensors x, const Arguments&) -> Results { return {block_diag(list_of(x))}; },
          [](const Operation&) -> Rows {
            return {{{{{2, 3}}, {{3, 1}}}}, {{{{2, 3}}}}, {{{{3}}, {{}}, {{2, 2}}}}, {{{{0, 2}}, {{2, 1}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::value, {}, {}, "no tensors"}, {Refusal::shape, {{{2, 3, 4}}}, {}, "(2, 3, 4)"}};
          }),
      entry(
          "cartesian_prod", "cartesian_prod({x...})",
          "All tuples with an element of each vector, the last varying first.",
          [](Tensors x, const Arguments&) -> Results { return {cartesian_prod(list_of(x))}; },
          [](const Operation&) -> Rows {
            return {{{{{2}}, {{3}}}}, {{{{3}}}}, {{{{2}}, {{3}}, {{4}}}}, {{{{2}}, {{0}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::value, {}, {}, "no vectors"}, {Refusal::shape, {{{2, 3}}}, {}, "(2, 3)"}};
          }),
      entry(
          "combinations", "combinations(x, r=2, with_replacement=false)",
          "All choices of r elements of a vector, in the order of their positions.",
          [](Tensors x, const Arguments& a) -> Results {
            return {combinations(x[0], a.integer("r", 2), a.flag("with_replacement", false))};
          },
          [](const Operation&) -> Rows {
            Rows out;
            for (const bool replaced : {false, true}) {
              for (const std::int64_t r : {1, 2, 3})
                out.push_back({{{{4}}}, {{"r", r}, {"with_replacement", replaced}}});
            }
            out.push_back({{{{3}}}, {{"r", std::int64_t{4}}}});
            return out;
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3}}}, {}, "(2, 3)"},
                    {Refusal::value, {{{3}}}, {{"r", std::int64_t{-1}}}, "-1"},
                    {Refusal::shape, {{{300}}}, {{"r", std::int64_t{100}}}, "300"}};
          }),
      entry(
          "vander", "vander(x, n=extent, increasing=false)",
          "The powers n - 1 to 0 of each element along a new last axis, or 0 to n - 1.", kNumeric, kSmall,
          call_vander,
          [](const Operation& operation) -> Rows {
            const Range range = operation.ranges[0];
            return {{{{{3}, range}}},
                    {{{{3}, range}}, {{"n", std::int64_t{5}}}},
                    {{{{4}, range}}, {{"increasing", true}}},
                    {{{{2, 3}, range}}, {{"n", std::int64_t{2}}, {"increasing", true}}},
                    {{{{3}, range}}, {{"n", std::int64_t{0}}}},
                    {{{.shape = {2}, .values = {0, 1}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::value, {{{3}}}, {{"n", std::int64_t{-1}}}, "-1"},
                    {Refusal::shape, {{{}}}, {}, "()"}};
          }),
      entry("rot90", "rot90(x, k=1, axes=(0, 1))",
            "The plane of two axes rotated k times by a quarter, from the first axis towards the second.",
            call_rot90, rot90_samples,
            [](const Operation&) -> Errors {
              return {{Refusal::shape, {{{3}}}, {}, "(3,)"},
                      {Refusal::value, {{{2, 3}}}, {{"axes", Integers{0}}}, "(2, 3)"},
                      {Refusal::value, {{{2, 3}}}, {{"axes", Integers{1, -1}}}, "(2, 3)"}};
            }),
  };
  return kTable;
}

}  // namespace caldera::catalogue
