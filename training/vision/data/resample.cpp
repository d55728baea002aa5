#include "training/vision/data/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace caldera::vision {
namespace {

/// The weights of one output position.
struct Taps {
  std::int64_t first = 0;
  std::vector<double> weights;
};

std::vector<Taps> taps_of(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - reach + 0.5)));
    const auto last =
        std::min<std::int64_t>(from, static_cast<std::int64_t>(std::floor(centre + reach + 0.5)));
    Taps taps{first, {}};
    double sum = 0;
    for (std::int64_t j = first; j < last; ++j) {
      taps.weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(j) + 0.5 - centre) / reach)));
      sum += taps.weights.back();
    }
    for (double& weight : taps.weights) weight /= sum;
    all.push_back(std::move(taps));
  }
  return all;
}

}  // namespace

Image resized(const Image& image, std::int64_t height, std::int64_t width) {
  if (image.height == height && image.width == width) return image;
  Image wide = Image::zeros(image.channels, image.height, width),
        out = Image::zeros(image.channels, height, width);
  const std::vector<Taps> columns = taps_of(image.width, width), rows = taps_of(image.height, height);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    for (std::int64_t y = 0; y < image.height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        const Taps& taps = columns[static_cast<std::size_t>(x)];
        double sum = 0;
        for (std::size_t k = 0; k < taps.weights.size(); ++k)
          sum += taps.weights[k] * image.at(c, y, taps.first + static_cast<std::int64_t>(k));
        wide.at(c, y, x) = static_cast<float>(sum);
      }
    }
    for (std::int64_t y = 0; y < height; ++y) {
      const Taps& taps = rows[static_cast<std::size_t>(y)];
      for (std::int64_t x = 0; x < width; ++x) {
        double sum = 0;
        for (std::size_t k = 0; k < taps.weights.size(); ++k)
          sum += taps.weights[k] * wide.at(c, taps.first + static_cast<std::int64_t>(k), x);
        out.at(c, y, x) = static_cast<float>(sum);
      }
    }
  }
  return out;
}

Image cut(const Image& image, std::int64_t y, std::int64_t x, std::int64_t height, std::int64_t width) {
  Image out = Image::zeros(image.channels, height, width);
  const std::int64_t first = std::max<std::int64_t>(0, -x), last = std::min(width, image.width - x);
  for (std::int64_t c = 0; c < image.channels; ++c) {
    for (std::int64_t row = std::max<std::int64_t>(0, -y); row < std::min(height, image.height - y); ++row) {
      for (std::int64_t column = first; column < last; ++column)
        out.at(c, row, column) = image.at(c, row + y, column + x);
    }
  }
  return out;
}

Image rotated(const Image& image, double degrees) {
  Image out = Image::zeros(image.channels, image.height, image.width);
  const double angle = degrees * std::numbers::pi / 180, cosine = std::cos(angle), sine = std::sin(angle);
  const double cy = static_cast<double>(image.height - 1) / 2, cx = static_cast<double>(image.width - 1) / 2;
  const auto value = [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    return y < 0 || x < 0 || y >= image.height || x >= image.width ? 0.0
                                                                   : static_cast<double>(image.at(c, y, x));
  };
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      const double dy = static_cast<double>(y) - cy, dx = static_cast<double>(x) - cx;
      // Rows go down: counter-clockwise in the picture is this way round.
      const double from_x = cx + cosine * dx - sine * dy, from_y = cy + sine * dx + cosine * dy;
      const auto left = static_cast<std::int64_t>(std::floor(from_x)),
                 top = static_cast<std::int64_t>(std::floor(from_y));
      const double fx = from_x - static_cast<double>(left), fy = from_y - static_cast<double>(top);
      for (std::int64_t c = 0; c < image.channels; ++c) {
        out.at(c, y, x) =
            static_cast<float>((1 - fy) * ((1 - fx) * value(c, top, left) + fx * value(c, top, left + 1)) +
                               fy * ((1 - fx) * value(c, top + 1, left) + fx * value(c, top + 1, left + 1)));
      }
    }
  }
  return out;
}

}  // namespace caldera::vision
