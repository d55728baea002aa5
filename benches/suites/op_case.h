// A case of the suite "ops": one function of operands, measured forward or with gradients, in one type.
#pragma once

#include <string>
#include <vector>

#include "benches/case.h"

namespace caldera::bench {

using Tensors = std::vector<LazyTensor>;
using TensorFunction = std::function<LazyTensor(const Tensors&)>;

struct OpCase {
  std::string name;
  std::vector<Shape> operands;
  TensorFunction function;
  /// The peer's name for it, and parameters beyond the operands' shapes and type.
  std::string peer;
  nlohmann::json parameters = nlohmann::json::object();
  double flops = 0;  // forward
  /// Measures loss = sum(f * g) and the gradients of the first so many operands instead.
  std::size_t gradients = 0;
  double gradient_flops = 0;
  /// Computes it by the named operation, to hold a hand-written one against.
  TensorFunction named{};
  double aim_ratio = 0;  // to the named one, forward
  double scale = 1;      // of the operands after the first
  /// Also reads so many integers below the limit: they follow the operands.
  std::int64_t indices = 0;
  std::int64_t index_limit = 0;
  /// Counts the bytes that must be read or written, where that is not all of the operands.
  double bytes = 0;
  /// The type of the operands.
  DType dtype = DType::f32;
};

/// Forward, or with gradients where the case asks for them.
void add(std::vector<Case>& cases, const OpCase& op);
/// Forward, and forward with the gradients of `count` operands.
void add_both(std::vector<Case>& cases, OpCase op, std::size_t count, double gradient_flops);
/// Adds the case in each of the 16-bit types.
void add_half(std::vector<Case>& cases, OpCase op);
void add_both_half(std::vector<Case>& cases, OpCase op, std::size_t count, double gradient_flops);

/// Adds the cases of window_ops.cpp: angles, quotients, sorting, windows, classes that are picked.
void add_windowed_and_ordered(std::vector<Case>& cases);

}  // namespace caldera::bench
