// Quantised matrices: floats of them, and products that dequantise them inside.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/quantized_node.h"
#include "engine/plan/steps/step_kind.h"

namespace caldera {

/// dims = M, N, K. W[e] is matrix e, of what.rows x what.columns, dequantised as QuantizedFormat says:
/// - dequantize: out[m,n,k] = W[m][n,k];
/// - take_rows (N = 1): out[m,k] = row which[m] of all rows of all matrices;
/// - product: out[m,n] = sum_k x[m,k] W[e][n,k];
/// - transposed_product: out[m,k] = sum_n x[m,n] W[e][n,k],
///
/// where e = which[m] if what.is_indexed, else 0. What `which` names outside of the rows (matrices) is NaN.
///
/// operands: x of products, `which` (i32) of take_rows and of products that are indexed, the parts of the
/// matrices, out. x, out and the sums are f32. A part's dimensions are (matrices, rows, columns) of its own
/// (parts_of()), and it is in them densely: scales of any float may be as f16 or bf16.
struct QuantizedStep {
  QuantizedNode what;

  static std::string_view kind() { return "quantized"; }
  static std::string_view form() { return "quantized"; }
  std::string name() const;
  static int output_count() { return 1; }
  int named_operands() const;
  Shape operand_dims(const StepHeader& step, std::size_t k) const;
  std::int64_t most_elements(const StepHeader& step, std::size_t k) const;
  std::int64_t flops(const StepHeader& step) const;
  void check(verify::StepForm& form) const;

  bool has_x() const { return what.is_product(); }
  bool has_which() const { return what.work == QuantizedWork::take_rows || what.is_indexed; }
  /// The operand that is the first part.
  std::size_t first_part() const { return (has_x() ? 1U : 0U) + (has_which() ? 1U : 0U); }
};

}  // namespace caldera
