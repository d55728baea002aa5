#include "engine/eager/loss.h"

#include <fmt/format.h>

#include "engine/eager/errors.h"
#include "ops/loss/cross_entropy.h"

namespace caldera::v1 {

namespace {

/// An eager call can look at its data, so a bad target is an error here and not a NaN later.
void check_targets(const Tensor& targets, std::int64_t classes, std::optional<std::int64_t> ignore_index) {
  const auto as = [&]<class T>(T) {
    const std::vector<T> read = targets.to_vector<T>();
    return std::vector<std::int64_t>(read.begin(), read.end());
  };
  const std::vector<std::int64_t> values = [&] {
    switch (targets.dtype()) {
      case DType::u8:
        return as(std::uint8_t{});
      case DType::u32:
        return as(std::uint32_t{});
      case DType::i8:
        return as(std::int8_t{});
      case DType::i16:
        return as(std::int16_t{});
      case DType::i32:
        return as(std::int32_t{});
      case DType::i64:
        return as(std::int64_t{});
      case DType::boolean:  // refused by the loss
      case DType::f16:
      case DType::bf16:
      case DType::f32:
      case DType::f64:
        break;
    }
    return std::vector<std::int64_t>();
  }();
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
