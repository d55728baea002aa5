// Convolutions of few channels, straight from images with margins. Private to engine/device/cpu/.
#pragma once

#include "engine/device/cpu/convolution/convolution_extents.h"

namespace caldera::cpu {

/// Whether it is the faster one: no strides, and so few results a channel that to lay windows out would cost
/// more than the products.
bool is_for_flat(const ConvolutionExtents& extents, ConvolutionWork work);

/// Computes one of the three of ConvolutionNode, where is_for_flat(). An image with zeros around is one line:
/// what a tap sees of it is the line moved on, so that nothing is laid out. Between rows there are results
/// that nobody needs.
template <class T>
void convolve_flat(const ConvolutionExtents& extents, ConvolutionWork work, const T* a, const T* b, T* out);

}  // namespace caldera::cpu
