// Micro-operations: the functions of a tile that region programs are lists of. Chosen once, when a kernel is
// decoded; each exists for several instruction sets, and the choice takes the best this CPU has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/graph/scalar_op.h"
#include "engine/plan/kernel/kernel.h"
#include "engine/tensor/dtype.h"

namespace caldera::cpu {

/// out[i] = op(a[i], b[i], c[i]) for i in [0, n). Arrays have the types the function was looked up for, any
/// alignment. `out` may equal an operand of the same element size; no other overlap.
using MicroFn = void (*)(void* out, const void* a, const void* b, const void* c, std::int64_t n);

/// The micro-operation of `op` on operands of type `operand` (select: of its second and third) that gives
/// `result`; nullptr where there is none. Bit k of `single`: operand k is one element that stands for all n.
/// Not every operation has such forms.
MicroFn find_micro_op(ScalarOp op, DType operand, DType result, unsigned single = 0);
/// Conversion; from == to is a copy. Floating to integer truncates, saturates, and takes NaN to 0. Types of
/// memory are converted from and to their compute_type() alone: floating ones rounded to nearest even,
/// integers wrapped.
MicroFn find_cast(DType from, DType to);
/// out[i] = a[0], for elements of 1, 2, 4 or 8 bytes.
MicroFn find_fill(std::size_t size);
/// out[r * n + i] = a[r] for every r in [0, rows), i in [0, n).
using SpreadFn = void (*)(void* out, const void* a, std::int64_t rows, std::int64_t n);
SpreadFn find_spread(std::size_t size);

/// Elements of a row, and rows of a column, that a reduction combines in the type of data before it goes on
/// in the wide one. Tiles end where stretches do, or where the row does: so a reduction gives the same bits
/// in every kernel, whatever the kernel computes besides.
inline constexpr std::int64_t kStretch = 256;
inline constexpr std::int64_t kStretchOfRows = 32;
/// Rows that are combined with each other before they are with those above, where a row has at most
/// kNarrowRow elements: the smallest tile has so many of them.
inline constexpr std::int64_t kGroupOfRows = 4;
inline constexpr std::int64_t kNarrowRow = kStretch / kGroupOfRows;

/// Reductions of one type. Accumulators between tiles are wide: double for floating types, int64 for the
/// others (whose low bits are the wrapped result), so that many tiles add up without losing digits.
struct ReduceOps {
  /// wide[0] combined with p[0..n).
  void (*horizontal)(void* wide, const void* p, std::int64_t n);
  /// out[r] = p[r * n .. r * n + n) combined, for every r in [0, rows), in the type of data.
  void (*rows)(void* out, const void* p, std::int64_t rows, std::int64_t n);
  /// acc[j] combined with rows[r * width + j] for every r in [0, rows_count), j in [0, width), by
  /// groups of rows where they are narrow. Type of data.
  void (*columns)(void* acc, const void* rows, std::int64_t rows_count, std::int64_t width);
  /// wide[j] combined with acc[j]; acc[j] set to the identity.
  void (*fold)(void* wide, void* acc, std::int64_t n);
  /// wide[j] combined with other[j].
  void (*merge)(void* wide, const void* other, std::int64_t n);
  void (*wide_identity)(void* wide, std::int64_t n);
  void (*identity)(void* acc, std::int64_t n);
  /// out[j] = wide[j], converted to the data's type.
  void (*finish)(void* out, const void* wide, std::int64_t n);
};

/// The reduction of a type; nullptr where there is none.
const ReduceOps* find_reduce(Combine combine, DType type);

// The families that the look-ups above draw from; nullptr where a family has no such function.
MicroFn find_float_op(ScalarOp op, DType type, unsigned single);    // SIMD, f32 and f64
MicroFn find_loop_op(ScalarOp op, DType operand, unsigned single);  // plain loops, every type
MicroFn find_random_op(ScalarOp op, DType result);                  // Philox
MicroFn find_half_cast(DType from, DType to);                       // of which one is f16 or bf16
MicroFn find_half_rounding(ScalarOp op);                            // round_f16, round_bf16

}  // namespace caldera::cpu
