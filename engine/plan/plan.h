// Plan: what a graph becomes. Steps over buffers, in order, with arena offsets and hazards; replayed with new
// inputs.
//
// A plan names no concrete memory. Its buffers are inputs (bound at replay), outputs (allocated by the
// runtime for each replay, dense row-major) and intermediates, which lie in one arena at planned offsets. All
// operands of a step are (buffer, offset, strides) over the step's iteration space, in elements of the
// operand's type.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/matrix_routine.h"
#include "engine/graph/op.h"
#include "engine/plan/kernel/kernel.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace caldera {

enum class BufferRole : std::uint8_t { input, output, arena };

struct PlanBuffer {
  BufferRole role = BufferRole::arena;
  DType dtype = DType::f32;
  std::int64_t bytes = 0;
  std::int64_t arena_offset = 0;  // arena buffers only; a multiple of kArenaAlignment
};

inline constexpr std::int64_t kArenaAlignment = 256;

/// A strided view of a buffer over the iteration space of its step. Strides may be zero or negative.
struct Operand {
  std::int32_t buffer = -1;  // index into Plan::buffers; -1 for an index operand
  std::int64_t offset = 0;   // elements
  Dims strides;              // one per iteration dimension
};

enum class StepKind : std::uint8_t {
  region,    // kernel over dims. operands: kernel inputs, then index operands, then outputs
  contract,  // dims = batch..., M, N, K: P[b,m,n] = sum over segments of scale * sum_k A[b,m,k] B[b,k,n].
             // operands: A (stride 0 along N), B (stride 0 along M) of every segment, then those of the
             // epilogue. Strides along the last dimension of A and B count over their segment's own K.
             // Without a kernel the one output is P. With one (element-wise, over batch..., M, N) its input
             // 0 is P (no operand); its other inputs, index operands and outputs follow, stride 0 along K.
             // A and B may lie in memory as f16 or bf16 (each its own: see its buffer) where Step::dtype, the
             // type of P, is f32.
  gather,    // dims = outer, indices, inner: out[o,i,j] = x[o, idx[i], j]. operands: x, idx (i32), out. x has
             // stride 0 along `indices`; its stride along the gathered axis is axis_stride. idx may vary
             // along outer and inner too. An index outside [0, axis_extent) gives NaN (floating) or 0.
  scatter_add,  // dims = outer, indices, inner: out[o, idx[i], j] += u[o,i,j] in order of i, or what
                // Step::scatter says instead of +. operands: u, idx, out, where out is addressed as x is in
                // gather. Indices outside are dropped. out already holds the base.
  // Attention over dims = batch..., M (queries), N (keys), D (head size of q and k), E (head size of v), in
  // f32, without the M x N scores in memory. `kernel` (element-wise, over batch..., M, N; one output) makes
  // the score from the raw product: its input 0 is sum_d q[b,m,d] k[b,n,d] (no operand), its other inputs and
  // index operands follow the named operands below, stride 0 along D and E. Every operand has strides over
  // all of dims, 0 along those that it lacks.
  //   highest[b,m] = max_n score,  total[b,m] = sum_n exp(score - highest[b,m]),
  //   P[b,m,n] = exp(score - highest[b,m]) / total[b,m]
  // (Two numbers a row, not the logarithm of the sum: that would lose `total` beside a large maximum, as that
  // of a row which is masked whole.)
  attention,          // operands: q, k, v, kernel's, outputs: o[b,m,e] = sum_n P v[b,n,e], highest, total
  attention_grad_q,   // operands: q, k, v, go[b,m,e], highest, total, delta[b,m], kernel's, gradient's,
                      // output dq[b,m,d]
  attention_grad_kv,  // the same operands but for the outputs dk[b,n,d], dv[b,n,e]
  // q, k, v and go are of one type, f32, f16 or bf16, and so are the outputs o, dq, or dk and dv, of a step;
  // highest, total and delta are f32.
  // The gradients: dP[b,m,n] = sum_e go v; dS = P * (dP - delta); `gradient` is an element-wise kernel whose
  // input 0 is dS, input 1 the raw product (neither is an operand), and whose output is dR;
  // dq[b,m,d] = sum_n dR k; dk[b,n,d] = sum_m dR q; dv[b,n,e] = sum_m P go. Outputs keep the whole batch:
  // what is broadcast over it is summed by a later step.
  linalg,  // dims = batch, M, N, K, P: Step::routine of a[b,m,n] and, where it has a right side, of r[b,n,k];
           // else K is 0. operands: a, r (whose rows are walked along M: a is square then), out[b,p]: the P
           // elements of the results. scalars: the routine's tolerance, if it has one. The type is f32 or
           // f64.
};

/// A stretch of K of a contraction: one pair of operands.
struct Segment {
  std::int64_t k = 0;
  std::int32_t scale = -1;  // plan scalar that multiplies the product; -1: 1
};

/// Says that the score of an attention step is a constant wherever n > m + offset (the causal mask), so that
/// blocks of keys with nothing else can be left out where exp(fill - maximum of the row) is 0 in f32.
struct CausalMask {
  std::int32_t fill = -1;           // plan scalar (f32) that is the score there; -1: not known to be causal
  std::int64_t offset = 0;          // constant part of the offset
  std::int32_t offset_scalar = -1;  // plan scalar (i32) that is added to it; -1: none
};

/// One unit of work: one dispatch on a GPU, together with the steps joined to it.
struct Step {
  StepKind kind = StepKind::region;
  DType dtype = DType::f32;              // of the result
  bool barrier_before = false;           // there is a hazard with a step since the last barrier
  bool joined = false;                   // runs in the dispatch of the step before it: a region with the same
                                         // kernel, and no hazard with any step of that dispatch
  std::int8_t reduce_rank = 0;           // region: innermost dims that are combined away, or are the row
  MatrixRoutine routine{};               // linalg
  bool routine_option = false;           // linalg
  std::shared_ptr<const Kernel> kernel;  // region; contract: epilogue or null; attention: of the score
  std::shared_ptr<const Kernel> gradient;  // attention_grad_*: of the raw product
  Shape dims;                              // iteration space
  std::vector<Operand> operands;
  std::vector<std::int32_t> scalars;  // for each scalar argument of kernel, then of gradient, its index into
                                      // the plan's scalars
  std::vector<Segment> segments;      // contract: at least one; the first one's k is dims.back()
  CausalMask causal;                  // attention
  std::int64_t axis_extent = 0;       // gather, scatter_add
  std::int64_t axis_stride = 0;       // gather, scatter_add
  Scatter scatter = Scatter::add;     // scatter_add
  std::string label;                  // what the step was recognised as: "softmax", "lora"; may be empty
  std::vector<std::uint32_t> nodes;   // positions in the program of the nodes that it computes

  /// Operands that are written: the last `output_count()`; the others (but index operands) are read.
  /// scatter_add also reads its output.
  int output_count() const;
  /// Operands ahead of those that belong to `kernel`: 0 for regions, all inputs for gather and scatter_add.
  int named_operands() const;
  /// The extents that operand k walks: dims, but for A and B of a contraction's later segments.
  Shape operand_dims(std::size_t k) const;
  /// For traces: label and kernel's name, or "matmul", "gather" ...
  std::string name() const;
};

/// An output that may be bound to the memory of an input, if nobody needs the input's value after the replay:
/// the step that first touches the output is the last to touch the input, reads exactly the elements that it
/// writes, and a barrier stands between it and earlier readers of the input. An input and an output may stand
/// in several; a replay makes use of each at most once.
struct Donation {
  std::int32_t output = -1;  // buffers
  std::int32_t input = -1;
};

struct Plan {
  Device device;
  std::vector<PlanBuffer> buffers;  // inputs first, then outputs, then arena
  std::int32_t input_count = 0;
  std::int32_t output_count = 0;
  std::vector<DType> scalars;            // scalar arguments: those bound at replay, then the constants
  std::vector<std::uint64_t> constants;  // bits of the last of them
  std::vector<Step> steps;
  std::vector<Donation> donations;
  std::int64_t arena_bytes = 0;
  std::int64_t peak_bytes = 0;  // arena and outputs
  std::int64_t node_count = 0;  // nodes of the graph it was made from

  int barrier_count() const;
  /// Steps that are not joined to another.
  int dispatch_count() const;
  std::string to_string() const;
};

}  // namespace caldera
