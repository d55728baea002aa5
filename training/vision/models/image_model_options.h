// ImageModelOptions: what a network for images is made for.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/default_device.h"

namespace caldera::vision {

struct ImageModelOptions {
  std::int64_t classes = 1000;
  std::int64_t channels = 3;
  std::int64_t height = 224;
  std::int64_t width = 224;
  /// Begin with a 3x3 convolution and no pooling, as is usual for 32x32 images (networks "resnet..."), and
  /// with patches of a height's eighth ("vit_tiny"). By default for images below 64x64.
  std::optional<bool> small_images{};
  std::uint64_t seed = 0;
  Device device = default_device();

  bool is_small() const { return small_images.value_or(height < 64 || width < 64); }
};

}  // namespace caldera::vision
