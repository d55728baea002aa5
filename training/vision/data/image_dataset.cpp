#include "training/vision/data/image_dataset.h"

#include <fmt/format.h>

#include "engine/base/error.h"

namespace caldera::vision {
namespace {

class Subset final : public ImageDataset {
 public:
  Subset(ImageDatasetPtr of, std::vector<std::int64_t> indices)
      : of_(std::move(of)), indices_(std::move(indices)) {
    for (const std::int64_t index : indices_) {
      if (index < 0 || index >= of_->size())
        throw ValueError(fmt::format("subset: there is no image {} among {}", index, of_->size()));
    }
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  Image image(std::int64_t index) const override { return of_->image(at(index)); }
  std::int64_t label(std::int64_t index) const override { return of_->label(at(index)); }
  const std::vector<std::string>& class_names() const override { return of_->class_names(); }

 private:
  std::int64_t at(std::int64_t index) const {
    check_index(index);
    return indices_[static_cast<std::size_t>(index)];
  }

  ImageDatasetPtr of_;
  std::vector<std::int64_t> indices_;
};

}  // namespace

void ImageDataset::check_index(std::int64_t index) const {
  if (index < 0 || index >= size())
    throw ValueError(fmt::format("there is no image {} among {}", index, size()));
}

MemoryImages::MemoryImages(std::int64_t channels, std::int64_t height, std::int64_t width,
                           std::vector<std::uint8_t> pixels, std::vector<std::int64_t> labels,
                           std::vector<std::string> class_names)
    : channels_(channels),
      height_(height),
      width_(width),
      pixels_(std::move(pixels)),
      labels_(std::move(labels)),
      names_(std::move(class_names)) {
  if (channels < 1 || height < 1 || width < 1)
    throw ValueError(fmt::format("MemoryImages: {} x {} x {} is no image", channels, height, width));
  if (static_cast<std::int64_t>(pixels_.size()) != size() * channels * height * width)
    throw ValueError(fmt::format("MemoryImages: {} bytes for {} images of {} x {} x {}", pixels_.size(),
                                 size(), channels, height, width));
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    if (labels_[i] < 0 || labels_[i] >= classes())
      throw ValueError(fmt::format("MemoryImages: label {} of image {} is none of {} classes", labels_[i], i,
                                   names_.size()));
  }
}

Image MemoryImages::image(std::int64_t index) const {
  check_index(index);
  Image image = Image::zeros(channels_, height_, width_);
  const std::uint8_t* from =
      pixels_.data() + static_cast<std::size_t>(index) * static_cast<std::size_t>(image.pixels.size());
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<float>(from[i]) / 255.0F;
  return image;
}

std::int64_t MemoryImages::label(std::int64_t index) const {
  check_index(index);
  return labels_[static_cast<std::size_t>(index)];
}

ImageDatasetPtr subset(ImageDatasetPtr of, std::vector<std::int64_t> indices) {
  return std::make_shared<Subset>(std::move(of), std::move(indices));
}

std::vector<std::string> numbered_classes(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace caldera::vision
