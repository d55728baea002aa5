// The functions of one element, in f64 and i64, written from the contract in engine/graph/scalar_op.h. They
// share no code with any device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/scalar_op.h"
#include "engine/tensor/dtype.h"

namespace caldera::reference {

/// One element: floating types in `f`, the others in `i`.
struct Number {
  double f = 0;
  std::int64_t i = 0;
};

inline Number floating(double f) { return {f, 0}; }
inline Number integer(std::int64_t i) { return {0, i}; }

/// Returns |got - want| of two numbers of a type; 0 where both are NaN, infinite where only one is NaN or an
/// infinity. Of integers that differ it is at least 1.
double difference(DType type, Number got, Number want);
/// Writes a number for people.
std::string to_text(DType type, Number number);

Number read_number(const std::vector<std::byte>& buffer, DType type, std::int64_t element);
void write_number(std::vector<std::byte>& buffer, DType type, std::int64_t element, Number value);

/// To the precision of the type.
Number rounded(DType type, Number x);
/// The nearest number of an integer type; 0 for NaN.
std::int64_t saturated(DType type, double x);
Number convert(DType from, DType to, Number x);

/// `op` on operands of type `operand`, giving `result`: exact for integers, in f64 and then rounded to the
/// result's type for floating types.
Number apply_scalar_op(ScalarOp op, DType operand, DType result, Number a, Number b, Number c);

/// Word i % 4 of Philox4x32-10 block i / 4 under the seed.
std::uint32_t reference_philox_word(std::uint64_t seed, std::uint32_t i);
/// Element i of the stream that philox_uniform or philox_normal draws.
Number random_number(ScalarOp op, DType type, std::uint64_t seed, std::uint32_t i);

}  // namespace caldera::reference
