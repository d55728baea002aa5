#include "eager/language_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "eager/errors.h"
#include "lm/formats/model_files.h"
#include "lm/models/registry.h"
#include "ops/ops.h"

namespace caldera::v1 {
namespace {

std::shared_ptr<CausalLM> make(const ModelConfig& config, const Device& device, std::uint64_t seed) {
  std::shared_ptr<CausalLM> model = make_causal_lm_from_json(config.json(), device, seed);
  model->materialize();
  model->set_training(false);
  return model;
}

std::vector<std::int32_t> integers(const Tensor& tensor) {
  return astype(tensor.lazy(), DType::i32).to_vector<std::int32_t>();
}

void require_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw ModelError::file_not_found(path.string());
}

}  // namespace

LanguageModel::LanguageModel(const ModelConfig& config, const Device& device, std::uint64_t seed)
    : model_(make(config, device, seed)), config_(config) {}

LanguageModel::LanguageModel(std::shared_ptr<CausalLM> model, ModelConfig config)
    : model_(std::move(model)), config_(std::move(config)) {
  model_->set_training(false);
}

Tensor LanguageModel::forward(const Tensor& ids, const std::optional<Tensor>& mask) const {
  if (ids.rank() != 2)
    throw ShapeError(
        fmt::format("LanguageModel: ids {} are not (batch, positions)", ids.shape().to_string()));
  if (!is_integral(ids.dtype()))
    throw DTypeError(fmt::format("LanguageModel: ids are {}, want integers", name(ids.dtype())));
  const std::vector<std::int32_t> tokens = integers(ids);
  const std::int64_t batch = ids.shape()[0], length = ids.shape()[1];
  const auto in_f32 = [](const LazyTensor& logits) { return astype(logits, DType::f32); };
  if (!mask) return Tensor::of_call(in_f32(model_->forward(model_->make_ids(tokens, batch))));

  if (mask->shape() != ids.shape())
    throw ShapeError(fmt::format("LanguageModel: the mask {} has another shape than the ids {}",
                                 mask->shape().to_string(), ids.shape().to_string()));
  const std::vector<std::int32_t> present = integers(Tensor(not_equal(mask->lazy(), 0)));
  // Each row by itself, without what is masked: such places have neither a position nor a key.
  std::vector<LazyTensor> rows;
  for (std::int64_t row = 0; row < batch; ++row) {
    std::vector<std::int32_t> own;
    std::vector<std::int32_t> from;  // row of the computed logits, or one of zeros behind them
    for (std::int64_t i = row * length; i < (row + 1) * length; ++i) {
      const auto at = static_cast<std::size_t>(i);
      from.push_back(present[at] != 0 ? static_cast<std::int32_t>(own.size()) : -1);
      if (present[at] != 0) own.push_back(tokens[at]);
    }
    const LazyTensor nothing =
        LazyTensor::zeros(Shape{1, config_.vocab_size()}, DType::f32, model_->device());
    LazyTensor logits = nothing;
    if (!own.empty())
      logits = concat({squeeze(in_f32(model_->forward(model_->make_ids(own))), 0), nothing}, 0);
    for (std::int32_t& index : from)
      if (index < 0) index = static_cast<std::int32_t>(own.size());
    rows.push_back(take(logits, LazyTensor::from_vector(from, Shape{length}, model_->device())));
  }
  return Tensor::of_call(stack(rows, 0));
}

ModelLoader ModelLoader::with_dtype(DType dtype) const {
  ModelLoader other = *this;
  other.dtype_ = dtype;
  return other;
}

LanguageModel ModelLoader::load() const {
  require_folder(path_);
  const ModelConfig config = ModelConfig::from_file(path_);
  try {
    return {load_causal_lm(path_, device_, dtype_), config};
  } catch (const FileError& error) {
    throw ModelError::invalid_format(path_.string(), error.what());
  }
}

LanguageModel ModelLoader::load_with_validation() const {
  LanguageModel model = load();
  for (const Parameter& p : model.lazy().parameters())
    if (!all(isfinite(*p.tensor)).item<bool>())
      throw ModelError::invalid_format(path_.string(),
                                       fmt::format("{} holds numbers that are not finite", p.name));
  return model;
}

ModelInfo ModelLoader::inspect() const {
  require_folder(path_);
  ModelInfo info{.config = ModelConfig::from_file(path_), .num_parameters = 0, .tensors = {}};
  try {
    const ModelFiles files = ModelFiles::open(path_);
    for (const std::string& tensor : files.names()) {
      info.tensors.push_back(tensor);
      info.num_parameters += files.weight(tensor).shape().numel();
    }
  } catch (const FileError& error) {
    throw ModelError::invalid_format(path_.string(), error.what());
  }
  return info;
}

}  // namespace caldera::v1
