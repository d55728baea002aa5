// Operation: an entry of the catalogue of operations. Each public operation has one;
// documentation, golden files and tests read the entry, and hold the implementation to it. The library knows
// none. How to add one: docs/internals/adding-operations.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "tests/catalogue/table/sample.h"

namespace caldera::catalogue {

/// A set of element types.
class Types {
 public:
  constexpr Types() = default;
  constexpr Types(std::initializer_list<DType> types) {
    for (const DType type : types) bits_ |= bit(type);
  }
  constexpr bool contains(DType type) const { return (bits_ & bit(type)) != 0; }
  constexpr Types operator|(Types other) const {
    Types out;
    out.bits_ = bits_ | other.bits_;
    return out;
  }

 private:
  static constexpr std::uint32_t bit(DType type) { return std::uint32_t{1} << static_cast<int>(type); }
  std::uint32_t bits_ = 0;
};

inline constexpr Types kFloating{DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr Types kIntegral{DType::u8, DType::u32, DType::i8, DType::i16, DType::i32, DType::i64};
inline constexpr Types kBoolean{DType::boolean};
inline constexpr Types kNumeric = kFloating | kIntegral;
inline constexpr Types kAnyType = kNumeric | kBoolean;

/// The type of a result, given the call's type.
enum class ResultType : std::uint8_t {
  same,
  boolean,
  index,     // int32
  floating,  // the same if it is floating, else float32
  computed,  // float32 for 16-bit floating types, else the same
  summed,    // what the argument `dtype` says; else the same, int32 for bool and narrower integers
  argument,  // what the argument `dtype` says
};
DType result_type(ResultType rule, DType type, const Arguments& arguments);

/// What differentiation makes of an operation.
enum class Gradient : std::uint8_t {
  full,  // has one
  zero,  // piecewise constant: zeros
  none,  // the result is not floating, or does not depend on its operands
};

using Tensors = std::span<const LazyTensor>;
using Ranges = std::array<Range, 3>;

struct Operation {
  std::string_view name;       // as in C++: caldera::<name>
  std::string_view family;     // heading of the documentation, and the golden file
  std::string_view signature;  // "softmax(x, axis=-1)"
  std::string_view summary;  // one or two sentences: what it computes; ties, edges and where it differs from
                             // others
  Types types;               // of the operands that a sample leaves open
  ResultType result = ResultType::same;
  Gradient gradient = Gradient::full;
  std::vector<LazyTensor> (*call)(Tensors operands, const Arguments& arguments);
  Ranges ranges = {};  // from which `samples` draws the first operands
  std::vector<Sample> (*samples)(const Operation& operation);
  std::vector<ErrorSample> (*errors)(const Operation& operation);
};

/// All operations, ordered by family. The same span at every call; thread-safe.
std::span<const Operation* const> operations();
/// The operation of that name, or null.
const Operation* find_operation(std::string_view name);

}  // namespace caldera::catalogue
