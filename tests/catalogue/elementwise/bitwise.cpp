// The entries of the family `bitwise`.
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

constexpr Types kBits = kIntegral | kBoolean;
constexpr Range kSigned{.low = -30, .high = 30};

constexpr EntriesOf entry{.family = "bitwise", .gradient = Gradient::none, .ranges = {kSigned, kSigned}};

std::vector<ErrorSample> integer_errors(const Operation& operation) {
  std::vector<ErrorSample> out = binary_errors(operation);
  for (ErrorSample& error : out) error.type = DType::i32;
  return out;
}

/// Counts up to beyond the width of every type; negative ones are in tests/ops/bitwise_test.cpp.
std::vector<Sample> shift_samples(const Operation& operation) {
  std::vector<Sample> out = binary_samples(operation);
  for (Sample& sample : out) sample.operands[1].range = {.low = 0, .high = 2};
  out.push_back({{{.shape = {4, 1}, .values = {0, 1, 85, 127}},
                  {.shape = {11}, .values = {0, 1, 6, 7, 8, 31, 32, 33, 63, 64, 65}}}});
  return out;
}

}  // namespace

std::span<const Operation> bitwise_operations() {
  static const Operation kTable[] = {
      entry("bitwise_and", "bitwise_and(a, b)", "The bits set in both; of bool, whether both are true.",
            kBits, call_binary<caldera::bitwise_and>, binary_samples, integer_errors),
      entry("bitwise_or", "bitwise_or(a, b)", "The bits set in either; of bool, whether either is true.",
            kBits, call_binary<caldera::bitwise_or>, binary_samples, integer_errors),
      entry("bitwise_xor", "bitwise_xor(a, b)",
            "The bits set in one of the two; of bool, whether exactly one is true.", kBits,
            call_binary<caldera::bitwise_xor>, binary_samples, integer_errors),
      entry("bitwise_invert", "bitwise_invert(x)", "The bits that are not set; of bool, whether x is false.",
            kBits, call_unary<caldera::bitwise_invert>, unary_samples, no_errors),
      entry("bitwise_left_shift", "bitwise_left_shift(x, count)",
            "x with its bits moved up, zeros coming in. A count that is negative or reaches the width "
            "gives 0.",
            kIntegral, call_binary<caldera::bitwise_left_shift>, shift_samples, integer_errors),
      entry("bitwise_right_shift", "bitwise_right_shift(x, count)",
            "x with its bits moved down, copies of the sign coming in: floor(x / 2^count). A count that "
            "is negative or reaches the width gives 0, or -1 of a negative x.",
            kIntegral, call_binary<caldera::bitwise_right_shift>, shift_samples, integer_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
