// Convolutions and their gradients as products over what windows see, which is laid out a block at a time.
// Private to engine/device/cpu/.
#pragma once

#include "engine/device/cpu/convolution/convolution_extents.h"

namespace caldera::cpu {

/// Computes one of the three of ConvolutionNode; all tensors are dense and hold elements.
template <class T>
void convolve(const ConvolutionExtents& extents, ConvolutionWork work, const T* a, const T* b, T* out);

}  // namespace caldera::cpu
