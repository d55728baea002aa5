// ImageDataset: images with labels, by their number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "training/vision/data/image.h"

namespace caldera::vision {

/// Gives images and their labels. Const members may be called from several threads.
class ImageDataset {
 public:
  ImageDataset() = default;
  virtual ~ImageDataset() = default;
  ImageDataset(const ImageDataset&) = delete;
  ImageDataset& operator=(const ImageDataset&) = delete;

  virtual std::int64_t size() const = 0;
  /// Returns an image. Throws FileError where its file cannot be read, ValueError for a number out of range.
  virtual Image image(std::int64_t index) const = 0;
  /// Returns its class, in [0, classes()).
  virtual std::int64_t label(std::int64_t index) const = 0;
  /// Names the classes; the names of digits are digits.
  virtual const std::vector<std::string>& class_names() const = 0;
  std::int64_t classes() const { return static_cast<std::int64_t>(class_names().size()); }

 protected:
  /// Throws ValueError unless 0 <= index < size().
  void check_index(std::int64_t index) const;
};

using ImageDatasetPtr = std::shared_ptr<const ImageDataset>;

/// Holds images of one size as bytes in memory.
class MemoryImages final : public ImageDataset {
 public:
  /// `pixels`: images x channels x height x width bytes. Throws ValueError where sizes do not fit, and for a
  /// label that is no class.
  MemoryImages(std::int64_t channels, std::int64_t height, std::int64_t width,
               std::vector<std::uint8_t> pixels, std::vector<std::int64_t> labels,
               std::vector<std::string> class_names);

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  Image image(std::int64_t index) const override;
  std::int64_t label(std::int64_t index) const override;
  const std::vector<std::string>& class_names() const override { return names_; }

 private:
  std::int64_t channels_, height_, width_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::int64_t> labels_;
  std::vector<std::string> names_;
};

/// Shows some of the images of a dataset, in the order of `indices`. Throws ValueError for one that is not
/// there.
ImageDatasetPtr subset(ImageDatasetPtr of, std::vector<std::int64_t> indices);

/// Names `count` classes "0", "1", ...
std::vector<std::string> numbered_classes(std::int64_t count);

}  // namespace caldera::vision
