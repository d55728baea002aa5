#include "lm/models/causal_lm.h"

#include <fmt/format.h>

#include "engine/device/backend.h"
#include "engine/runtime/runtime.h"
#include "lm/nn/init.h"
#include "lm/nn/precision.h"
#include "ops/core/cast.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"

namespace caldera {
namespace {

constexpr const char* kHeadName = "lm_head";

}  // namespace

LazyTensor CausalLM::make_ids(std::span<const std::int32_t> ids, std::int64_t batch) const {
  const std::int64_t vocabulary = config().vocab_size;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= vocabulary)
      throw ValueError(fmt::format("token id {} at position {} is outside of the model's vocabulary of {}",
                                   ids[i], i, vocabulary));
  const auto count = static_cast<std::int64_t>(ids.size());
  if (batch < 1 || count == 0 || count % batch != 0)
    throw ShapeError(
        fmt::format("{}: {} token ids do not make a batch of {}", config().architecture, count, batch));
  return LazyTensor::from_span(ids, Shape{batch, count / batch}, device_);
}

std::unique_ptr<KVCache> CausalLM::make_cache(std::int64_t capacity, std::int64_t batch) const {
  const ModelConfig& c = config();
  if (capacity > c.max_positions())
    throw ValueError(
        fmt::format("a KV cache of {} positions exceeds the {} that the model allows "
                    "(max_position_embeddings)",
                    capacity, c.max_positions()));
  return std::make_unique<KVCache>(c.num_hidden_layers, batch, c.num_key_value_heads, capacity, cache_form(),
                                   device_);
}

void CausalLM::set_cache_type(CacheType type) {
  (void)CacheForm(type, dtype_, config().head_dim);  // says why not
  cache_type_ = type;
}

std::vector<std::optional<std::int64_t>> CausalLM::attention_windows() const {
  std::vector<std::optional<std::int64_t>> windows;
  for (std::int64_t layer = 0; layer < config().num_hidden_layers; ++layer)
    windows.push_back(config().layer(layer).sliding ? config().sliding_window : std::nullopt);
  return windows;
}

void CausalLM::add_score_head(std::int64_t classes, std::uint64_t seed) {
  if (classes < 1) throw ValueError(fmt::format("a head of {} scores: there must be at least 1", classes));
  score_ = {.tensor = normal_init(Shape{classes, config().hidden_size}, config().initializer_range, seed,
                                  device())};
  score_.tensor.eval();
}

LazyTensor CausalLM::scores(const LazyTensor& hidden) const {
  if (score_classes() == 0)
    throw ValueError(
        "the model has no head that scores texts: train one (objectives reward and classification), and load "
        "its "
        "adapter");
  return matmul(astype(hidden, score_.tensor.dtype()), transpose(score_.tensor));
}

void CausalLM::visit_score_head(const std::string& prefix, ParameterVisitor& visitor) {
  if (score_classes() > 0) visitor.parameter(join_name(prefix, "score.weight"), score_);
}

void CausalLM::visit_adaptable(const ProjectionVisitor& visitor) {
  class Walk final : public ParameterVisitor {
   public:
    explicit Walk(const ProjectionVisitor& visitor) : visitor_(visitor) {}
    void projection(const std::string& path, std::unique_ptr<Projection>& slot) override {
      visitor_(path, path.substr(path.rfind('.') + 1), slot);
    }

   private:
    const ProjectionVisitor& visitor_;
  };
  Walk walk(visitor);
  visit({}, walk);
}

void CausalLM::visit_projections(const ProjectionVisitor& visitor) {
  visit_adaptable([&](const std::string& path, const std::string& name, std::unique_ptr<Projection>& slot) {
    if (path != kHeadName) visitor(path, name, slot);
  });
}

void CausalLM::check_dtype(DType dtype) const {
  if (dtype != DType::f32 && !is_16bit_float(dtype))
    throw DTypeError(fmt::format("{}: cannot compute in {}; use float32, float16 or bfloat16",
                                 config().architecture, name(dtype)));
  if (!backend(device_).supports(dtype))
    throw DTypeError(fmt::format("{}: {} does not compute with {}; use float32", config().architecture,
                                 device_.to_string(), name(dtype)));
}

void CausalLM::set_dtype(DType dtype) {
  check_dtype(dtype);
  dtype_ = dtype;
  for (const Parameter& p : parameters())
    if (!p.trainable && p.tensor->dtype() != dtype) detail::convert(*p.tensor, dtype);
}

}  // namespace caldera
