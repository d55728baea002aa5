// Mixed precision: what is trained is kept in f32, what is computed with has 16 bits.
//
// Activations have the model's dtype. Where that is f16 or bf16, a layer converts its parameters to it as it
// uses them, so trainable parameters stay f32 (the "master weights" of Micikevicius et al. 2018: small
// updates are not rounded away) and get f32 gradients through the conversion. Sums, norms, softmax and the
// loss are worked out in f32.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

inline bool is_16bit_float(DType type) { return type == DType::f16 || type == DType::bf16; }

/// Converts `x` to the dtype; returns `x` itself where it has it.
LazyTensor in_dtype(const LazyTensor& x, DType dtype);

/// Converts a parameter to the dtype of the activations `x` that a layer uses it with, where that has 16
/// bits; elsewhere returns it as it is, and promotion decides. Undefined stays undefined.
LazyTensor cast_like(const LazyTensor& parameter, const LazyTensor& x);

namespace detail {

/// Replaces a tensor by its conversion, evaluated and a leaf: of several tensors one after the other, so that
/// both forms of all of them need not fit.
void convert(LazyTensor& tensor, DType dtype);

}  // namespace detail
}  // namespace caldera
