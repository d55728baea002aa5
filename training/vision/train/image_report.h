// ImageReport: what a run of training on images came to, as a page; and its log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "training/vision/train/image_metrics.h"
#include "training/vision/train/image_trainer.h"

namespace caldera {
namespace detail {
class LineFile;
}

namespace vision {

/// The accuracy and loss on the images for testing after a step.
struct ImageValidation {
  std::int64_t step = 0;
  double accuracy = 0;
  double loss = 0;
};

struct ImageReport {
  std::string title;
  std::vector<ImageStepRecord> steps{};
  std::vector<ImageValidation> epochs{};
  ImageMetrics metrics;
  double images_per_second = 0;
};

/// Writes one HTML file, which needs no network: figures, curves, the confusion matrix (for up to 40
/// classes), and the classes with precision and recall.
std::string to_html(const ImageReport& report);

/// Writes {"step", "epoch", "loss", "learning_rate", "images_per_second"} a line. It never ends a run: where
/// writing fails it warns once.
class ImageLog {
 public:
  /// Replaces the file, but for its lines up to `first`, the steps that were done before; with an empty path
  /// does nothing.
  explicit ImageLog(const std::filesystem::path& path, std::int64_t first = 0);
  ~ImageLog();
  void add(const ImageStepRecord& record);

 private:
  std::unique_ptr<detail::LineFile> file_;
};

}  // namespace vision
}  // namespace caldera
