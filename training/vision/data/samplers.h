// Samplers: the order in which images are taken.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "training/vision/data/image_dataset.h"

namespace caldera::vision {

/// Gives the images of an epoch, in order, as a function of the epoch alone: epochs can be repeated.
using Sampler = std::function<std::vector<std::int64_t>(std::int64_t epoch)>;

/// Returns 0 to count - 1 in an order that follows from the seed (Fisher and Yates).
std::vector<std::int64_t> shuffled_order(std::int64_t count, std::uint64_t seed);

/// Takes all images in their order.
Sampler in_order(std::int64_t count);
/// Takes all images, each epoch in another order.
Sampler shuffled(std::int64_t count, std::uint64_t seed);
/// Draws `count` images, each with a probability in proportion to its weight, with replacement (PyTorch's
/// WeightedRandomSampler). Throws ValueError for weights that are negative, not finite or all 0.
Sampler weighted(std::vector<double> weights, std::int64_t count, std::uint64_t seed);
/// Weighs each image by one over the number of images of its class, so that classes are drawn equally often.
std::vector<double> class_balance(const ImageDataset& data);

}  // namespace caldera::vision
