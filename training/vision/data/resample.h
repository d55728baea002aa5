// Samples images between pixels. Private to training/vision/data/.
#pragma once

#include <cstdint>

#include "training/vision/data/image.h"

namespace caldera::vision {

/// Resizes by triangles as wide as a pixel covers, at least 1 (Pillow's and torchvision's bilinear).
Image resized(const Image& image, std::int64_t height, std::int64_t width);
/// Cuts height x width from (y, x); what is outside of the image is 0.
Image cut(const Image& image, std::int64_t y, std::int64_t x, std::int64_t height, std::int64_t width);
/// Rotates counter-clockwise about the centre, bilinearly; outside is 0.
Image rotated(const Image& image, double degrees);

}  // namespace caldera::vision
