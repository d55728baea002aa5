// ImageMetrics: how well a network classifies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "training/vision/data/data_loader.h"

namespace caldera {
class Layer;
}

namespace caldera::vision {

/// Counts what a network said of images whose class is known.
class ImageMetrics {
 public:
  explicit ImageMetrics(std::vector<std::string> class_names);

  /// Adds images: logits row by row (images x classes), and their labels. An image
  /// whose logits are no numbers is not known. Throws ShapeError, ValueError.
  void add(std::span<const float> logits, std::span<const std::int32_t> labels);

  std::int64_t images() const { return images_; }
  /// The share of images whose class has the greatest logit (of equals the first), or 0 without images.
  double accuracy() const { return top(1); }
  /// The share of images whose class is among the `k` greatest.
  double top(std::int64_t k) const;
  /// The mean cross-entropy.
  double loss() const;
  /// Counts images of class `truth` that were taken for class `said`.
  std::int64_t count(std::int64_t truth, std::int64_t said) const;
  /// The share of a class's images that were known, and of what was taken for it that was right; NaN of none.
  double recall(std::int64_t of) const;
  double precision(std::int64_t of) const;
  const std::vector<std::string>& class_names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::int64_t> counts_, ranks_;  // of pairs of classes; of images by the place of their class
  std::int64_t images_ = 0;
  double loss_ = 0;
};

/// {"accuracy", "top5", "loss", "images", "classes": [{"name", "recall", "precision", "images"}],
/// "confusion": [[...]]}, a row of the latter for each true class.
nlohmann::ordered_json to_json(const ImageMetrics& metrics);

/// Classifies all images of a loader, in evaluation mode.
ImageMetrics evaluate_images(Layer& model, DataLoader& loader);

}  // namespace caldera::vision
