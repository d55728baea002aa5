#include "eager/loss.h"

#include <fmt/format.h>

#include "eager/errors.h"
#include "engine/tensor/dispatch.h"
#include "ops/loss/cross_entropy.h"

namespace caldera::v1 {

namespace {

/// An eager call can look at its data, so a bad target is an error here and not a NaN later.
void check_targets(const Tensor& targets, std::int64_t classes, std::optional<std::int64_t> ignore_index) {
  // Other types are refused by the loss.
  const auto values = dispatch<is_integral>(targets.dtype(), [&]<class T>() {
    const std::vector<T> read = targets.to_vector<T>();
    return std::vector<std::int64_t>(read.begin(), read.end());
  });
  bool any = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (ignore_index && values[i] == *ignore_index) continue;
    any = true;
    if (values[i] < 0 || values[i] >= classes)
      throw TrainingError::failed(
          fmt::format("target {} at position {} is outside [0, {}); correct the data, or pass the value as "
                      "ignore_index if it marks padding",
                      values[i], i, classes));
  }
  if (!any)
    throw TrainingError::invalid_config(
        fmt::format("none of the {} targets counts, so there is no mean; give at least one target other than "
                    "ignore_index",
                    values.size()));
}

}  // namespace

Tensor cross_entropy_loss_with_smoothing(const Tensor& logits, const Tensor& targets, double smoothing,
                                         std::optional<std::int64_t> ignore_index) {
  // Built first: shapes and dtypes are refused before the data are looked at.
  const LazyTensor loss = mean_cross_entropy(logits.lazy(), targets.lazy(),
                                             {.ignore_index = ignore_index, .label_smoothing = smoothing});
  check_targets(targets, logits.shape().back(), ignore_index);
  return Tensor::computed(loss, {&logits, &targets});
}

Tensor cross_entropy_loss(const Tensor& logits, const Tensor& targets,
                          std::optional<std::int64_t> ignore_index) {
  return cross_entropy_loss_with_smoothing(logits, targets, 0, ignore_index);
}

}  // namespace caldera::v1
