// Convolutions of images as nodes of their own, on devices that have kernels for them. Private to ops/.
#pragma once

#include "engine/graph/convolution_node.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// Whether the device has kernels for convolutions of these operands: the CPU, for f32 and f64 of one type.
bool has_convolution_kernel(const LazyTensor& x, const LazyTensor& weight);

/// Makes the node that `node` describes, of an output of this shape. Operands have four axes; the caller has
/// checked that their extents fit.
LazyTensor convolution_node(const ConvolutionNode& node, const LazyTensor& a, const LazyTensor& b,
                            const Shape& shape);

}  // namespace caldera::ops
