// Image: pixels of one image on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace caldera::vision {

/// Holds channels x height x width numbers, row-major; loaders give them in [0, 1], red first.
struct Image {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<float> pixels{};

  /// Makes an image of zeros.
  static Image zeros(std::int64_t channels, std::int64_t height, std::int64_t width) {
    return {channels, height, width, std::vector<float>(static_cast<std::size_t>(channels * height * width))};
  }
  /// Returns one of its pixels, with no check.
  float& at(std::int64_t c, std::int64_t y, std::int64_t x) {
    return pixels[static_cast<std::size_t>((c * height + y) * width + x)];
  }
  float at(std::int64_t c, std::int64_t y, std::int64_t x) const {
    return pixels[static_cast<std::size_t>((c * height + y) * width + x)];
  }
};

}  // namespace caldera::vision
