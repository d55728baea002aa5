// Attention and its gradients, without the matrix of scores in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/steps/step_kind.h"

namespace caldera {

/// Says that the score of an attention step is a constant wherever n > m + offset (the causal mask), so that
/// blocks of keys with nothing else can be left out where exp(fill - maximum of the row) is 0 in f32.
///
/// With `one_query`, all queries see what query 0 sees: n > offset. With `in_parts`, the outermost dimension
/// of the batch counts parts of the keys: n stands for p N + n. Where a block of queries sees nothing of part
/// p > 0, and exp(fill - the score of a key in part 0) is 0 in f32 for all of them, a device may leave out
/// the part: o and total are then 0 there, and highest is -infinity.
struct CausalMask {
  std::int32_t fill = -1;           // plan scalar (f32) that is the score there; -1: not known to be causal
  std::int64_t offset = 0;          // constant part of the offset
  std::int32_t offset_scalar = -1;  // plan scalar (i32) that is added to it; -1: none
  bool one_query = false;           // forward pass only
  bool in_parts = false;            // forward pass only

  /// The first key of part `part` that query `query` does not see, without the offset's scalar.
  std::int64_t first_hidden(std::int64_t query, std::int64_t part, std::int64_t keys) const {
    return (one_query ? 0 : query) + offset + 1 - (in_parts ? part * keys : 0);
  }
};

/// Says how the keys and values of a forward step are stored, where they are not all at strides of their own
/// in the type of q. Only steps for devices that say so have any of it (DeviceTraits::reads_stored_keys); k
/// and v alone may also be f16 or bf16 next to a q of f32 then.
struct StoredKeys {
  /// Counts the rows of k and v where they are tables (0: they are not), without strides along N: key n is
  /// the row that an operand more, `rows` (i32, over batch and N; after v), says. Where there is no such row,
  /// it is NaN.
  std::int64_t rows = 0;
  std::int64_t key_stride = 0, value_stride = 0;  ///< elements from one row of a table to the next
  /// k and v are u8: a row of D (E) numbers is D / 32 blocks of q8_0 (QuantizedFormat), 34 bytes each, one
  /// after the other. Strides and offsets are in bytes.
  bool blocks = false;

  bool is_plain() const { return rows == 0 && !blocks; }
};

/// Largest head size, D or E, of an attention step: what devices hold of a row at a time.
inline constexpr std::int64_t kMaxHeadSize = 256;

/// Names what an attention step computes.
enum class AttentionPass : std::uint8_t {
  forward,  // operands: q, k, v, score's, outputs: o[b,m,e] = sum_n P v[b,n,e], highest, total
  grad_q,   // operands: q, k, v, go[b,m,e], highest, total, delta[b,m], score's, gradient's, output dq[b,m,d]
  grad_kv,  // the same operands but for the outputs dk[b,n,d], dv[b,n,e]
  // Has the same operands but for the outputs dk, dv, dq: scores are made once. Only for devices that say so
  // (DeviceTraits::joins_attention_gradients).
  grad_qkv,
};

/// Attention over dims = batch..., M (queries), N (keys), D (head size of q and k), E (head size of v), in
/// f32, without the M x N scores in memory. `score` (element-wise, over batch..., M, N; one output) makes the
/// score from the raw product: its input 0 is sum_d q[b,m,d] k[b,n,d] (no operand), its other inputs and
/// index operands follow the named operands, stride 0 along D and E. Every operand has strides over all of
/// dims, 0 along those that it lacks.
///   highest[b,m] = max_n score,  total[b,m] = sum_n exp(score - highest[b,m]),
///   P[b,m,n] = exp(score - highest[b,m]) / total[b,m]
/// (Two numbers a row, not the logarithm of the sum: that would lose `total` beside a large maximum, as that
/// of a row which is masked whole.)
///
/// q, k, v and go are of one type, f32, f16 or bf16, but for what StoredKeys says, and so are the outputs o,
/// dq, dk and dv, of a step; highest, total and delta are f32.
///
/// The gradients: dP[b,m,n] = sum_e go v; dS = P * (dP - delta); `gradient` is an element-wise kernel whose
/// input 0 is dS, input 1 the raw product (neither is an operand), and whose output is dR;
/// dq[b,m,d] = sum_n dR k; dk[b,n,d] = sum_m dR q; dv[b,n,e] = sum_m P go. Outputs keep the whole batch: what
/// is broadcast over it is summed by a later step.
struct AttentionStep {
  AttentionPass pass = AttentionPass::forward;
  std::shared_ptr<const Kernel> score;
  std::shared_ptr<const Kernel> gradient;  // null in the forward pass
  CausalMask causal;
  StoredKeys stored;

  std::string_view kind() const;  // "attention", "attention_grad_q", "attention_grad_kv" or "attention_grad"
  static std::string_view form() { return "attention"; }
  std::string name() const { return std::string(kind()); }
  int output_count() const;
  int named_operands() const { return pass != AttentionPass::forward ? 7 : stored.rows > 0 ? 4 : 3; }
  Shape operand_dims(const StepHeader& step, std::size_t k) const;
  std::optional<IndexedAxis> indexed_axis(const StepHeader& step, std::size_t k) const;
  std::vector<StepKernel> kernels() const;
  std::int64_t flops(const StepHeader& step) const;
  void check(verify::StepForm& form) const;
  /// Checks that the score is constant where `causal` says so.
  void check_values(const StepHeader& step) const;
};

}  // namespace caldera
