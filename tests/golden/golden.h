// Golden files: results, gradients and second gradients of the samples of the table of operations, made by
// PyTorch (tests/golden/generate.py).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/operation_calls.h"

namespace caldera::testing {

/// A sample in the type in which a golden file has it: f64 stands for every floating type.
struct GoldenCall {
  std::size_t index;  // of the sample in the operation's list
  catalogue::Sample sample;
  DType type;
};
std::vector<GoldenCall> golden_calls(const catalogue::Operation& operation);

/// A number that changes when the operands of a call change, with all their values.
std::string digest_of(const GoldenCall& call);

/// What a golden file says of one call. Empty lists where there is no gradient.
struct GoldenRecord {
  std::vector<std::vector<double>> results;
  std::vector<std::vector<double>>
      first;  // gradients of sum(result * cotangent), for each operand that varies
  std::vector<std::vector<double>> second;  // gradients of sum(first * direction), likewise
};

/// The record of a call, or null if no file has it. Throws if the file is damaged.
const GoldenRecord* golden_record(const catalogue::Operation& operation, const GoldenCall& call);

/// The weights that the gradients are made with: a value for each element of result or operand number
/// `position`, the same function as in generate.py.
std::vector<double> golden_weights(std::int64_t count, std::size_t position);

}  // namespace caldera::testing
