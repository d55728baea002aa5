// Convolutions by Winograd's F(4x4, 3x3) (Lavin and Gray 2015): a quarter of the products. Private to
// engine/device/cpu/.
#pragma once

#include "engine/device/cpu/convolution/convolution_extents.h"

namespace caldera::cpu {

/// Whether it is the faster one for an f32 convolution of these extents: 3x3, without strides, of channels
/// enough. Its errors are some 10 times those of plain sums.
bool is_for_winograd(const ConvolutionExtents& extents, ConvolutionWork work);

/// Computes one of the three of ConvolutionNode, where is_for_winograd().
void convolve_winograd(const ConvolutionExtents& extents, ConvolutionWork work, const float* a,
                       const float* b, float* out);

}  // namespace caldera::cpu
