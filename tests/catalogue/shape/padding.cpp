// The entries of the family `padding`.
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Integers = Arguments::Integers;
using Results = std::vector<LazyTensor>;

Arguments margins(Integers low, Integers high) {
  return {{"low", std::move(low)}, {"high", std::move(high)}};
}

template <PadMode mode>
Results call_pad(Tensors x, const Arguments& a) {
  return {caldera::pad(x[0], a.integers("low"), a.integers("high"), mode)};
}

std::vector<Sample> pad_samples(const Operation&) {
  return {{{{{7}}}, margins({2}, {3})},
          {{{{7}}}, margins({6}, {6})},
          {{{{7}}}, margins({0}, {1})},
          {{{{2, 3}}}, margins({0, 2}, {0, 1})},
          {{{{0, 3}}}, margins({0, 1}, {0, 1})},
          {{{{}}}, margins({}, {})},
          {{{{2, 3, 2, 4}}}, margins({0, 0, 1, 2}, {0, 0, 1, 3})},
          {{{{3, 4}}}, margins({1, 2}, {2, 0})}};
}

std::vector<ErrorSample> common_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}}, margins({1}, {1}), "(2, 3)"},
          {Refusal::shape, {{{2, 3}}}, margins({0, -4}, {0, 0}), "-4"},
          {Refusal::shape, {{{0, 3}}}, margins({1, 0}, {0, 0}), "(0, 3)"}};
}
/// Of modes that repeat no element twice.
std::vector<ErrorSample> limited_errors(const Operation& operation) {
  std::vector<ErrorSample> out = common_errors(operation);
  out.push_back({Refusal::shape, {{{2, 3}}}, margins({0, 0}, {0, 4}), "margin 4"});
  return out;
}

constexpr EntriesOf entry{"manipulation", kAnyType};

}  // namespace

std::span<const Operation> padding_operations() {
  static const Operation kTable[] = {
      entry("pad_reflect", "pad_reflect(x, low, high) or pad(x, low, high, PadMode::reflect)",
            "Margins that mirror the tensor at its first and last elements: 3 2 (1 2 3) 2 1. They are "
            "smaller than the extent.",
            call_pad<PadMode::reflect>, pad_samples, limited_errors),
      entry("pad_replicate", "pad_replicate(x, low, high) or pad(x, low, high, PadMode::replicate)",
            "Margins that repeat the first and the last element: 1 1 (1 2 3) 3 3.",
            call_pad<PadMode::replicate>, pad_samples, common_errors),
      entry("pad_circular", "pad_circular(x, low, high) or pad(x, low, high, PadMode::circular)",
            "Margins from the other end: 2 3 (1 2 3) 1 2. They are no larger than the extent.",
            call_pad<PadMode::circular>, pad_samples, limited_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
