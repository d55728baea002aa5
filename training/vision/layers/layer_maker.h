// LayerMaker: makes the layers of a network, each with a seed of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "training/vision/layers/batch_norm2d.h"
#include "training/vision/layers/chain.h"
#include "training/vision/layers/conv2d.h"

namespace caldera::vision {

/// Makes layers on one device. Which weights a layer begins with follows from the seed and its place among
/// those that were made.
class LayerMaker {
 public:
  LayerMaker(Device device, std::uint64_t seed) : device_(device), seed_(seed) {}

  LayerPtr conv(std::int64_t in, std::int64_t out, std::int64_t kernel, Conv2dOptions options = {});
  LayerPtr norm(std::int64_t channels, double eps = 1e-5);
  LayerPtr linear(std::int64_t in, std::int64_t out);
  LayerPtr dropout(double p);
  Device device() const { return device_; }
  std::uint64_t next_seed();

 private:
  Device device_;
  std::uint64_t seed_;
  std::uint64_t made_ = 0;
};

/// relu(x), with a name that can be passed on.
LazyTensor rectified(const LazyTensor& x);
/// The mean over height and width: (batch, channels).
LazyTensor global_average(const LazyTensor& x);
/// Means over height x width parts of equal size, overlapping where they do not divide the image
/// (torch.nn.AdaptiveAvgPool2d).
LazyTensor adaptive_average(const LazyTensor& x, std::int64_t height, std::int64_t width);
/// Makes (batch, ...) a matrix.
LazyTensor flat_rows(const LazyTensor& x);

}  // namespace caldera::vision
