// The section of docs/guide/operations.md on types: their facts, and the table in which type two operands
// meet.
#include <fmt/format.h>

#include <string>

#include "engine/tensor/dtype.h"
#include "tests/ops/operations/document.h"

namespace caldera::testing {
namespace {

constexpr const char* kAboutTypes = R"(
## Types and promotion

A type that is *computed in* another is one of memory alone: loads widen, and results are rounded (floating) or wrapped
(integers) to it. Integer arithmetic wraps; division by 0 gives 0. Integers given as C++ numbers have to be held by the type
(ValueError), but for comparisons and clip, which take them as they are. Casts of integers wrap. Casts from floating types
truncate; NaN gives 0 and what is out of range the nearest number of the type (on Vulkan the doctor holds drivers to that
for the narrow types alone). Sums and products of elements of bool and of integers narrower than int32 are int32.

| type | bytes | computed in | range |
|---|---|---|---|
)";

constexpr const char* kAboutPromotion = R"(
Two operands meet in the type of this table, the one of the Python Array API standard 2023.12. Where that leaves integers with
floating types open, the floating type wins. A C++ number takes the type of the tensor beside it, unless it is a floating
number beside an integer.

|  |)";

std::string range_of(DType type) {
  return is_floating(type) ? "-" : fmt::format("{} to {}", facts(type).lowest, facts(type).highest);
}

}  // namespace

std::string types_section() {
  std::string out = kAboutTypes;
  for (const DType type : kAllDTypes)
    out += fmt::format("| {} | {} | {} | {} |\n", name(type), size_of(type), name(compute_type(type)),
                       range_of(type));
  out += kAboutPromotion;
  for (const DType b : kAllDTypes) out += fmt::format(" {} |", name(b));
  out += "\n|---|";
  for (std::size_t i = 0; i < kAllDTypes.size(); ++i) out += "---|";
  out += "\n";
  for (const DType a : kAllDTypes) {
    out += fmt::format("| **{}** |", name(a));
    for (const DType b : kAllDTypes) out += fmt::format(" {} |", name(promote(a, b)));
    out += "\n";
  }
  return out;
}

}  // namespace caldera::testing
