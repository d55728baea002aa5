// Convolutions of each channel by itself. Private to engine/device/cpu/.
#pragma once

#include "engine/device/cpu/convolution/convolution_extents.h"

namespace caldera::cpu {

/// Computes one of the three of ConvolutionNode where a group is one channel and one output: a row of a
/// channel at a time, tap by tap.
template <class T>
void convolve_depthwise(const ConvolutionExtents& extents, ConvolutionWork work, const T* a, const T* b,
                        T* out);

}  // namespace caldera::cpu
