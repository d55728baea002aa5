#include "eager/embedding.h"

#include <fmt/format.h>

#include "eager/errors.h"
#include "ops/core/comparison.h"

namespace caldera::v1 {

EmbeddingModel EmbeddingModel::from_pretrained(const std::filesystem::path& model, const Device& device) {
  EmbeddingConfig config;
  config.model = model;
  return from_config(config, device);
}

EmbeddingModel EmbeddingModel::from_config(const EmbeddingConfig& config, const Device& device) {
  if (config.batch_size < 1)
    throw ModelError::invalid_config(
        fmt::format("the batch size is {}, and must be positive", config.batch_size));
  std::error_code ignored;
  if (!std::filesystem::exists(config.model, ignored))
    throw ModelError::file_not_found(config.model.string());
  try {
    return {config,
            std::make_unique<caldera::EmbeddingModel>(
                caldera::EmbeddingModel::from_pretrained(config.model, device, config.dtype)),
            device};
  } catch (const FileError& error) {
    throw ModelError::invalid_format(config.model.string(), error.what());
  }
}

Tensor EmbeddingModel::encode(const std::vector<std::string>& texts) {
  EncodeOptions options;
  options.pooling = config_.pooling;
  options.normalize = config_.normalize;
  options.batch_size = config_.batch_size;
  const EncodedTexts encoded = model_->encode(texts, options);
  std::vector<float> values;
  values.reserve(texts.size() * static_cast<std::size_t>(dimension()));
  for (const std::vector<float>& vector : encoded.embeddings)
    values.insert(values.end(), vector.begin(), vector.end());
  return {values, Shape{static_cast<std::int64_t>(texts.size()), dimension()}, device_};
}

Tensor mean_pool(const Tensor& hidden, const Tensor& mask) {
  return Tensor::computed(caldera::mean_pool(hidden.lazy(), not_equal(mask.lazy(), 0)), {&hidden, &mask});
}

Tensor normalize(const Tensor& x) { return Tensor::computed(caldera::normalize(x.lazy()), {&x}); }

}  // namespace caldera::v1
