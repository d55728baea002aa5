#include "training/vision/data/transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/error.h"
#include "training/vision/data/resample.h"

namespace caldera::vision {
namespace {

void check_extents(const char* what, std::int64_t height, std::int64_t width) {
  if (height < 1 || width < 1) throw ValueError(fmt::format("{}: {} x {} is no image", what, height, width));
}

void check_probability(const char* what, double p) {
  if (!(p >= 0 && p <= 1)) throw ValueError(fmt::format("{}: probability {} is not in [0, 1]", what, p));
}

/// A rectangle within an image.
struct Part {
  std::int64_t y = 0, x = 0, height = 0, width = 0;
};

/// Draws one with such a share of the area and ratio of width to height; empty where ten draws do not fit.
Part draw_part(const Image& image, std::array<double, 2> area, std::array<double, 2> ratio,
               rl::Random& random) {
  const auto whole = static_cast<double>(image.height * image.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double share = whole * random.uniform(area[0], area[1]);
    const double r = std::exp(random.uniform(std::log(ratio[0]), std::log(ratio[1])));
    const std::int64_t width = std::llround(std::sqrt(share * r)),
                       height = std::llround(std::sqrt(share / r));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    return {random.below(image.height - height + 1), random.below(image.width - width + 1), height, width};
  }
  return {};
}

}  // namespace

Transform all_of(std::vector<Transform> transforms) {
  return [all = std::move(transforms)](Image& image, rl::Random& random) {
    for (const Transform& transform : all) transform(image, random);
  };
}

Transform normalize(std::vector<float> mean, std::vector<float> deviation) {
  if (mean.empty() || mean.size() != deviation.size())
    throw ValueError(fmt::format("normalize: {} means and {} deviations", mean.size(), deviation.size()));
  for (const float value : deviation) {
    if (!(value > 0)) throw ValueError(fmt::format("normalize: a deviation is {}, want more than 0", value));
  }
  return [mean = std::move(mean), deviation = std::move(deviation)](Image& image, rl::Random& /*random*/) {
    const auto channels = static_cast<std::size_t>(image.channels);
    if (mean.size() != 1 && mean.size() != channels)
      throw ValueError(fmt::format("normalize: {} means for an image of {} channels", mean.size(), channels));
    const std::size_t area = image.pixels.size() / channels;
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
      const std::size_t c = mean.size() == 1 ? 0 : i / area;
      image.pixels[i] = (image.pixels[i] - mean[c]) / deviation[c];
    }
  };
}

Transform resize(std::int64_t height, std::int64_t width) {
  check_extents("resize", height, width);
  return [=](Image& image, rl::Random& /*random*/) { image = resized(image, height, width); };
}

Transform resize_shorter(std::int64_t extent) {
  check_extents("resize_shorter", extent, extent);
  return [=](Image& image, rl::Random& /*random*/) {
    const std::int64_t shorter = std::min(image.height, image.width);
    image = resized(image, image.height * extent / shorter, image.width * extent / shorter);
  };
}

Transform random_crop(std::int64_t height, std::int64_t width, std::int64_t margin) {
  check_extents("random_crop", height, width);
  if (margin < 0) throw ValueError(fmt::format("random_crop: margin {} is negative", margin));
  return [=](Image& image, rl::Random& random) {
    const std::int64_t rows = image.height + 2 * margin - height, columns = image.width + 2 * margin - width;
    if (rows < 0 || columns < 0)
      throw ValueError(fmt::format("random_crop: {} x {} out of {} x {} with a margin of {}", height, width,
                                   image.height, image.width, margin));
    const std::int64_t y = random.below(rows + 1), x = random.below(columns + 1);
    image = cut(image, y - margin, x - margin, height, width);
  };
}

Transform center_crop(std::int64_t height, std::int64_t width) {
  check_extents("center_crop", height, width);
  return [=](Image& image, rl::Random& /*random*/) {
    // Rounded as torchvision does: halves to the even number.
    const auto half = [](std::int64_t n) {
      return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(n) / 2));
    };
    image = cut(image, half(image.height - height), half(image.width - width), height, width);
  };
}

Transform random_resized_crop(std::int64_t height, std::int64_t width, std::array<double, 2> area,
                              std::array<double, 2> ratio) {
  check_extents("random_resized_crop", height, width);
  return [=](Image& image, rl::Random& random) {
    Part part = draw_part(image, area, ratio, random);
    if (part.height == 0) part = {0, 0, image.height, image.width};
    image = resized(cut(image, part.y, part.x, part.height, part.width), height, width);
  };
}

Transform random_flip(double probability) {
  check_probability("random_flip", probability);
  return [=](Image& image, rl::Random& random) {
    if (random.uniform() >= probability) return;
    for (auto row = image.pixels.begin(); row != image.pixels.end(); row += image.width)
      std::reverse(row, row + image.width);
  };
}

Transform random_rotation(double degrees) {
  if (!(degrees >= 0 && degrees <= 180))
    throw ValueError(fmt::format("random_rotation: {} degrees are not in [0, 180]", degrees));
  return [=](Image& image, rl::Random& random) { image = rotated(image, random.uniform(-degrees, degrees)); };
}

Transform random_erasing(double probability, std::array<double, 2> area, std::array<double, 2> ratio) {
  check_probability("random_erasing", probability);
  return [=](Image& image, rl::Random& random) {
    if (random.uniform() >= probability) return;
    const Part part = draw_part(image, area, ratio, random);
    for (std::int64_t c = 0; c < image.channels; ++c) {
      for (std::int64_t y = part.y; y < part.y + part.height; ++y)
        std::fill_n(&image.at(c, y, part.x), part.width, 0.0F);
    }
  };
}

Transform color_jitter(double brightness, double contrast, double saturation) {
  for (const double x : {brightness, contrast, saturation}) {
    if (!(x >= 0 && x <= 1)) throw ValueError(fmt::format("color_jitter: {} is not in [0, 1]", x));
  }
  return [=](Image& image, rl::Random& random) {
    const auto factor = [&](double x) { return static_cast<float>(random.uniform(1 - x, 1 + x)); };
    const float light = factor(brightness), depth = factor(contrast), colour = factor(saturation);
    const std::size_t area = image.pixels.size() / static_cast<std::size_t>(image.channels);
    const auto grey = [&](std::size_t i) {
      if (image.channels != 3) return image.pixels[i];
      return 0.299F * image.pixels[i] + 0.587F * image.pixels[area + i] + 0.114F * image.pixels[2 * area + i];
    };
    const auto keep = [](float x) { return std::clamp(x, 0.0F, 1.0F); };
    for (float& pixel : image.pixels) pixel = keep(pixel * light);
    double sum = 0;
    for (std::size_t i = 0; i < area; ++i) sum += static_cast<double>(grey(i));
    const auto mean = static_cast<float>(sum / static_cast<double>(area));
    for (float& pixel : image.pixels) pixel = keep(mean + (pixel - mean) * depth);
    if (image.channels != 3) return;
    for (std::size_t i = 0; i < area; ++i) {
      const float g = grey(i);
      for (std::size_t c = 0; c < 3; ++c) {
        float& pixel = image.pixels[c * area + i];
        pixel = keep(g + (pixel - g) * colour);
      }
    }
  };
}

}  // namespace caldera::vision
