// Transforms: what is done to an image before a network sees it. Random ones draw from the stream that they
// are given, so that an image of an epoch is the same whatever thread makes it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "training/rl/spaces/random.h"
#include "training/vision/data/image.h"

namespace caldera::vision {

/// Changes an image. Is called from several threads.
using Transform = std::function<void(Image& image, rl::Random& random)>;

/// Applies them one after the other.
Transform all_of(std::vector<Transform> transforms);

/// (x - mean) / deviation, a number of each for every channel, or one for all. Throws ValueError for
/// deviations of 0; the image's channels are checked when it is applied.
Transform normalize(std::vector<float> mean, std::vector<float> deviation);
/// Bilinear, to height x width: pixel centres at half coordinates, and where it shrinks a mean over what a
/// pixel covers (torchvision's resize with antialias).
Transform resize(std::int64_t height, std::int64_t width);
/// Resizes the shorter side to `extent`.
Transform resize_shorter(std::int64_t extent);
/// Adds `margin` zeros around, and cuts height x width at a random place (ValueError where that is too
/// large).
Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t margin = 0);
/// Cuts height x width out of the middle; pads by zeros where the image is smaller.
Transform center_crop(std::int64_t height, std::int64_t width);
/// Cuts a part of a share of the area in `area` and a ratio of width to height in `ratio`, and resizes it.
Transform random_resized_crop(std::int64_t height, std::int64_t width,
                              std::array<double, 2> area = {0.08, 1.0},
                              std::array<double, 2> ratio = {3.0 / 4, 4.0 / 3});
/// Mirrors left and right.
Transform random_flip(double probability = 0.5);
/// Rotates about the centre by up to so many degrees, bilinearly; zeros come in from outside.
Transform random_rotation(double degrees);
/// Replaces a rectangle by zeros (Zhong et al. 2020).
Transform random_erasing(double probability = 0.5, std::array<double, 2> area = {0.02, 0.33},
                         std::array<double, 2> ratio = {0.3, 3.3});
/// Multiplies brightness, contrast (about the mean grey) and saturation (about each pixel's grey) by random
/// factors in [1 - x, 1 + x], and keeps pixels in [0, 1]. Grey is ITU-R 601-2's.
Transform color_jitter(double brightness, double contrast, double saturation);

}  // namespace caldera::vision
