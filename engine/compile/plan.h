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

#include "engine/kernel/kernel.h"
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
  contract,  // dims = batch..., M, N, K: C[b,m,n] = sum_k A[b,m,k] B[b,k,n]. operands: A (stride 0 along N),
             // B (stride 0 along M), C (stride 0 along K, dense along the others is not guaranteed)
  gather,    // dims = outer, indices, inner: out[o,i,j] = x[o, idx[i], j]. operands: x, idx (i32), out. x has
             // stride 0 along `indices`; its stride along the gathered axis is axis_stride. idx has stride 0
             // along outer and inner. An index outside [0, axis_extent) gives NaN (floating) or 0.
  scatter_add,  // dims = outer, indices, inner: out[o, idx[i], j] += u[o,i,j] in order of i. operands: u,
                // idx, out, where out is addressed as x is in gather. Indices outside are dropped. out
                // already holds the base.
};

/// One unit of work: one dispatch on a GPU.
struct Step {
  StepKind kind = StepKind::region;
  DType dtype = DType::f32;              // of the result
  bool barrier_before = false;           // there is a hazard with a step since the last barrier
  std::int8_t reduce_rank = 0;           // region: innermost dims that are combined away
  std::shared_ptr<const Kernel> kernel;  // region only
  Shape dims;                            // iteration space
  std::vector<Operand> operands;
  std::vector<std::int32_t> scalars;  // region: for each scalar argument, its index into the plan's scalars
  std::int64_t axis_extent = 0;       // gather, scatter_add
  std::int64_t axis_stride = 0;       // gather, scatter_add

  /// Operands that are written: the last `output_count()`; the others (but index operands) are read.
  /// scatter_add also reads its output.
  int output_count() const { return kind == StepKind::region ? static_cast<int>(kernel->outputs.size()) : 1; }
  /// For traces: the kernel's name, or "matmul", "gather", "scatter_add".
  std::string name() const;
};

struct Plan {
  Device device;
  std::vector<PlanBuffer> buffers;  // inputs first, then outputs, then arena
  std::int32_t input_count = 0;
  std::int32_t output_count = 0;
  std::vector<DType> scalars;  // scalar arguments, bound at replay
  std::vector<Step> steps;
  std::int64_t arena_bytes = 0;
  std::int64_t peak_bytes = 0;  // arena and outputs
  std::int64_t node_count = 0;  // nodes of the graph it was made from

  int barrier_count() const;
  std::string to_string() const;
};

}  // namespace caldera
