// Contractions: matrix products, or sums of several, with the operations that follow.
//
// `contract` is the word for what a plan computes; how a device computes a matrix product is called a
// `product` there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/steps/step_kind.h"

namespace caldera {

/// A part of K of a contraction: one pair of operands.
struct Segment {
  std::int64_t k = 0;
  std::int32_t scale = -1;  // plan scalar that multiplies the product; -1: 1
};

/// dims = batch..., M, N, K: P[b,m,n] = sum over segments of scale * sum_k A[b,m,k] B[b,k,n].
///
/// operands: A (stride 0 along N), B (stride 0 along M) of every segment, then those of the epilogue. Strides
/// along the last dimension of A and B count over their segment's own K. Without an epilogue the one output
/// is P. With one (a kernel, element-wise, over batch..., M, N) its input 0 is P (no operand); its other
/// inputs, index operands and outputs follow, stride 0 along K.
///
/// A and B may be in memory as f16 or bf16 (each its own: see its buffer) where the step's dtype, the type
/// of P, is f32.
struct ContractStep {
  std::vector<Segment> segments;           // at least one; the first one's k is dims.back()
  std::shared_ptr<const Kernel> epilogue;  // or null

  static std::string_view kind() { return "contract"; }
  static std::string_view form() { return "contract"; }
  std::string name() const;
  int output_count() const { return epilogue ? static_cast<int>(epilogue->outputs.size()) : 1; }
  int named_operands() const { return 2 * static_cast<int>(segments.size()); }
  Shape operand_dims(const StepHeader& step, std::size_t k) const;
  bool may_interleave(std::size_t k) const { return k >= 2 * segments.size(); }
  bool reads_in_place(std::size_t k) const { return k >= 2 * segments.size(); }
  std::vector<StepKernel> kernels() const;
  std::int64_t flops(const StepHeader& step) const;
  void check(verify::StepForm& form) const;
  std::size_t heap_bytes() const { return segments.capacity() * sizeof(Segment); }
};

}  // namespace caldera
