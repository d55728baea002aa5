// ViT-Tiny (Dosovitskiy et al. 2020; Touvron et al. 2020) with the names of torchvision's VisionTransformer.
#include <fmt/format.h>

#include <cmath>

#include "engine/base/error.h"
#include "lm/nn/init.h"
#include "lm/nn/norms/layer_norm.h"
#include "lm/nn/precision.h"
#include "ops/core/broadcast.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/activations.h"
#include "ops/nn/attention.h"
#include "ops/shape/joining.h"
#include "training/vision/layers/layer_maker.h"
#include "training/vision/models/image_networks.h"

namespace caldera::vision {
namespace {

constexpr std::int64_t kWidth = 192, kHeads = 3, kLayers = 12;
constexpr double kEps = 1e-6;

LayerPtr layer_norm(LayerMaker& make) {
  return std::make_unique<LayerNorm>(kWidth, kEps, true, make.device());
}

/// Self-attention with the parameters of torch.nn.MultiheadAttention.
class SelfAttention final : public Layer {
 public:
  explicit SelfAttention(LayerMaker& make) : out_(make.linear(kWidth, kWidth)) {
    const double bound = std::sqrt(6.0 / (4 * kWidth));  // Glorot and Bengio 2010
    weight_.tensor = uniform_init(Shape{3 * kWidth, kWidth}, bound, make.next_seed(), make.device());
    bias_.tensor = LazyTensor::zeros(Shape{3 * kWidth}, DType::f32, make.device());
  }
  LazyTensor forward(const LazyTensor& x) override {
    const std::int64_t batch = x.shape(0), tokens = x.shape(1);
    const LazyTensor all = matmul(x, transpose(cast_like(weight_.tensor, x))) + cast_like(bias_.tensor, x);
    // (3, batch, heads, tokens, features)
    const LazyTensor parts =
        permute_dims(reshape(all, Shape{batch, tokens, 3, kHeads, kWidth / kHeads}), {2, 0, 3, 1, 4});
    const LazyTensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    return out_->forward(reshape(permute_dims(y, {0, 2, 1, 3}), Shape{batch, tokens, kWidth}));
  }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    visitor.parameter(join_name(prefix, "in_proj_weight"), weight_);
    visitor.parameter(join_name(prefix, "in_proj_bias"), bias_);
    visitor.module(join_name(prefix, "out_proj"), *out_);
  }

 private:
  Weight weight_, bias_;
  LayerPtr out_;
};

class EncoderLayer final : public Layer {
 public:
  explicit EncoderLayer(LayerMaker& make)
      : first_(layer_norm(make)), second_(layer_norm(make)), attention_(make) {
    mlp_.add("0", make.linear(kWidth, 4 * kWidth)).then([](const LazyTensor& x) { return gelu(x); });
    mlp_.add("3", make.linear(4 * kWidth, kWidth));
  }
  LazyTensor forward(const LazyTensor& x) override {
    const LazyTensor y = x + attention_.forward(first_->forward(x));
    return y + mlp_.forward(second_->forward(y));
  }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    visitor.module(join_name(prefix, "ln_1"), *first_);
    visitor.module(join_name(prefix, "self_attention"), attention_);
    visitor.module(join_name(prefix, "ln_2"), *second_);
    visitor.module(join_name(prefix, "mlp"), mlp_);
  }

 private:
  LayerPtr first_, second_;
  SelfAttention attention_;
  Chain mlp_;
};

class VisionTransformer final : public Layer {
 public:
  VisionTransformer(LayerMaker& make, const ImageModelOptions& options, std::int64_t patch)
      : patches_(make.conv(options.channels, kWidth, patch, {.stride = patch})),
        norm_(layer_norm(make)),
        head_(make.linear(kWidth, options.classes)) {
    const std::int64_t tokens = 1 + (options.height / patch) * (options.width / patch);
    token_.tensor = LazyTensor::zeros(Shape{1, 1, kWidth}, DType::f32, make.device());
    positions_.tensor = normal_init(Shape{1, tokens, kWidth}, 0.02, make.next_seed(), make.device());
    for (std::int64_t i = 0; i < kLayers; ++i)
      layers_.add("encoder_layer_" + std::to_string(i), std::make_unique<EncoderLayer>(make));
  }
  LazyTensor forward(const LazyTensor& x) override {
    const LazyTensor y = patches_->forward(x);
    const std::int64_t batch = y.shape(0), tokens = y.shape(2) * y.shape(3);
    if (tokens + 1 != positions_.tensor.shape(1))
      throw ShapeError(fmt::format("vit_tiny: images {} give {} patches, and there are positions for {}",
                                   x.shape().to_string(), tokens, positions_.tensor.shape(1) - 1));
    const LazyTensor rows = permute_dims(reshape(y, Shape{batch, kWidth, tokens}), {0, 2, 1});
    const LazyTensor first = broadcast_to(cast_like(token_.tensor, y), Shape{batch, 1, kWidth});
    const LazyTensor all = concatenate({first, rows}, 1) + cast_like(positions_.tensor, y);
    return head_->forward(slice(norm_->forward(layers_.forward(all)), 1, 0, 1).reshape(Shape{batch, kWidth}));
  }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    visitor.parameter(join_name(prefix, "class_token"), token_);
    visitor.module(join_name(prefix, "conv_proj"), *patches_);
    visitor.parameter(join_name(prefix, "encoder.pos_embedding"), positions_);
    visitor.module(join_name(prefix, "encoder.layers"), layers_);
    visitor.module(join_name(prefix, "encoder.ln"), *norm_);
    visitor.module(join_name(prefix, "heads.head"), *head_);
  }

 private:
  LayerPtr patches_, norm_, head_;
  Weight token_, positions_;
  Chain layers_;
};

}  // namespace

std::unique_ptr<Layer> vit_tiny(const ImageModelOptions& options) {
  LayerMaker make(options.device, options.seed);
  const std::int64_t patch = options.is_small() ? options.height / 8 : 16;
  if (options.height % patch != 0 || options.width % patch != 0)
    throw ValueError(fmt::format("vit_tiny: images of {} x {} are no whole number of patches of {} x {}",
                                 options.height, options.width, patch, patch));
  return std::make_unique<VisionTransformer>(make, options, patch);
}

}  // namespace caldera::vision
