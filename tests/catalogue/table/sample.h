// Samples: calls of an operation that tests, the golden files and the documentation make.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "tests/catalogue/table/arguments.h"

namespace caldera::catalogue {

/// Where the values of an operand are drawn from: evenly between `low` and `high`, in steps of 1/64 (1/16 for
/// bfloat16's sake above 2), so that every floating type holds them. Integers are drawn from the same
/// interval times 4, unsigned ones from its positive part.
struct Range {
  double low = -2;
  double high = 2;
  double away_from_zero = 0;  // values nearer to 0 than this are moved out to it
  double offset = 0;          // added to every floating value: keeps clear of kinks at round numbers
  bool distinct = false;      // no two values are equal: for what sorts or chooses
};

struct Operand {
  Shape shape;
  Range range = {};
  std::optional<DType> dtype = {};  // of this operand whatever the call's type is: indices, conditions
  std::vector<double> values = {};  // if given, these; in row-major order

  /// Whether a call in a floating type is differentiated with respect to it.
  bool varies() const { return !dtype; }
};

struct Sample {
  std::vector<Operand> operands;
  Arguments arguments = {};

  /// "(2, 3), (3,): axis=-1"
  std::string to_string() const;
};

/// The values of operand number `position` of a sample for a call in `type`: a pure function of its
/// arguments, the same on every machine. Every value is one that `type` holds.
std::vector<double> values_of(const Operand& operand, std::size_t position, DType type);

/// A call that must be refused.
enum class Refusal : std::uint8_t { shape, dtype, value };
struct ErrorSample {
  Refusal refusal;
  std::vector<Operand> operands;
  Arguments arguments = {};
  /// What the message says besides the operation's name, for example an offending shape.
  std::string mentions = {};
  DType type = DType::f32;
};

}  // namespace caldera::catalogue
