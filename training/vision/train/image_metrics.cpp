#include "training/vision/train/image_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/nn/module.h"
#include "ops/core/cast.h"

namespace caldera::vision {

ImageMetrics::ImageMetrics(std::vector<std::string> class_names)
    : names_(std::move(class_names)), counts_(names_.size() * names_.size()), ranks_(names_.size()) {}

void ImageMetrics::add(std::span<const float> logits, std::span<const std::int32_t> labels) {
  const std::size_t classes = names_.size();
  if (logits.size() != labels.size() * classes)
    throw ShapeError(fmt::format("ImageMetrics: {} logits for {} images of {} classes", logits.size(),
                                 labels.size(), classes));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(labels[i]);
    if (labels[i] < 0 || label >= classes)
      throw ValueError(fmt::format("ImageMetrics: label {} is none of {} classes", labels[i], classes));
    const std::span<const float> row = logits.subspan(i * classes, classes);
    // What is no number is neither greatest nor known, whatever it is compared with.
    std::size_t best = classes, rank = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      if (!std::isnan(row[c]) && (best == classes || row[c] > row[best])) best = c;
      if (c != label && (!(row[c] <= row[label]) || (row[c] == row[label] && c < label))) ++rank;
    }
    if (best == classes) best = label == 0 && classes > 1 ? 1 : 0;
    double sum = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x) - static_cast<double>(row[best]));
    loss_ += std::log(sum) + static_cast<double>(row[best]) - static_cast<double>(row[label]);
    ++ranks_[rank];
    ++counts_[label * classes + best];
    ++images_;
  }
}

double ImageMetrics::top(std::int64_t k) const {
  if (images_ == 0) return 0;
  std::int64_t known = 0;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(k, static_cast<std::int64_t>(ranks_.size())); ++i)
    known += ranks_[static_cast<std::size_t>(i)];
  return static_cast<double>(known) / static_cast<double>(images_);
}

double ImageMetrics::loss() const { return images_ == 0 ? 0 : loss_ / static_cast<double>(images_); }

std::int64_t ImageMetrics::count(std::int64_t truth, std::int64_t said) const {
  return counts_[static_cast<std::size_t>(truth) * names_.size() + static_cast<std::size_t>(said)];
}

double ImageMetrics::recall(std::int64_t of) const {
  std::int64_t all = 0;
  for (std::int64_t c = 0; c < static_cast<std::int64_t>(names_.size()); ++c) all += count(of, c);
  return all == 0 ? std::numeric_limits<double>::quiet_NaN()
                  : static_cast<double>(count(of, of)) / static_cast<double>(all);
}

double ImageMetrics::precision(std::int64_t of) const {
  std::int64_t all = 0;
  for (std::int64_t c = 0; c < static_cast<std::int64_t>(names_.size()); ++c) all += count(c, of);
  return all == 0 ? std::numeric_limits<double>::quiet_NaN()
                  : static_cast<double>(count(of, of)) / static_cast<double>(all);
}

nlohmann::ordered_json to_json(const ImageMetrics& metrics) {
  nlohmann::ordered_json document = {{"accuracy", metrics.accuracy()},
                                     {"top5", metrics.top(5)},
                                     {"loss", metrics.loss()},
                                     {"images", metrics.images()}};
  const auto classes = static_cast<std::int64_t>(metrics.class_names().size());
  for (std::int64_t c = 0; c < classes; ++c) {
    std::vector<std::int64_t> row;
    std::int64_t images = 0;
    for (std::int64_t said = 0; said < classes; ++said) {
      row.push_back(metrics.count(c, said));
      images += row.back();
    }
    document["classes"].push_back({{"name", metrics.class_names()[static_cast<std::size_t>(c)]},
                                   {"recall", metrics.recall(c)},
                                   {"precision", metrics.precision(c)},
                                   {"images", images}});
    document["confusion"].push_back(row);
  }
  return document;
}

ImageMetrics evaluate_images(Layer& model, DataLoader& loader) {
  const EvaluationMode evaluation(model);
  ImageMetrics metrics(loader.data().class_names());
  loader.begin(0);
  while (const auto batch = loader.next()) {
    const LazyTensor logits = astype(model(batch->images), DType::f32);
    metrics.add(logits.to_vector<float>(), batch->labels.to_vector<std::int32_t>());
  }
  return metrics;
}

}  // namespace caldera::vision
