#include "lm/models/sharded_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/autodiff/custom_vjp.h"
#include "engine/base/error.h"
#include "engine/distributed/distributed.h"
#include "engine/distributed/sharded_layers.h"
#include "engine/graph/node.h"
#include "lm/base/mapped_file.h"
#include "lm/models/causal_lm.h"
#include "lm/nn/precision.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/quantized/quantized_products.h"

namespace caldera {
namespace {

/// A linear layer whose matrix ranks hold parts of.
class ShardedLinear final : public Projection {
 public:
  ShardedLinear(distributed::ShardedLayers layers, std::size_t layer, std::size_t number, const Shape& shape,
                Weight bias, Device device)
      : shape_(shape), bias_(std::move(bias)), device_(device) {
    // Read again in the backward pass: what the product keeps of itself for that would be all layers.
    const auto matrix_for = [layers = std::move(layers), layer, number](const LazyTensor& x) {
      return cast_like(layers.read(layer, number, x), x);
    };
    product_ = custom_vjp(
        [matrix_for](std::span<const LazyTensor> x) { return matmul(x[0], transpose(matrix_for(x[0]))); },
        [matrix_for](std::span<const LazyTensor>, const LazyTensor&, const LazyTensor& cotangent) {
          return std::vector<LazyTensor>{matmul(cotangent, matrix_for(cotangent))};
        },
        "product with a sharded matrix");
  }

  LazyTensor forward(const LazyTensor& x) override {
    if (x.rank() == 0 || x.shape(-1) != in_features())
      throw ShapeError(fmt::format("ShardedLinear: input {} does not end in {} features",
                                   x.shape().to_string(), in_features()));
    const LazyTensor y = product_(std::span(&x, 1));
    return bias_.tensor.defined() ? y + cast_like(bias_.tensor, x) : y;
  }
  std::int64_t in_features() const override { return shape_[1]; }
  std::int64_t out_features() const override { return shape_[0]; }
  Device device() override { return device_; }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override {
    if (bias_.tensor.defined()) visitor.parameter(join_name(prefix, "bias"), bias_);
  }

 private:
  Shape shape_;
  Weight bias_;
  Device device_;
  TensorFunction product_;
};

/// The weights of a linear layer.
class WeightsOf final : public ParameterVisitor {
 public:
  void parameter(const std::string& /*name*/, Weight& weight) override { bias = &weight; }
  void matrix(const std::string& /*name*/, Weight& weight) override { matrix_weight = &weight; }
  Weight *matrix_weight = nullptr, *bias = nullptr;
};

/// Makes floats of the model's dtype of what is in 16 bits in files.
class AsFloats final : public ParameterVisitor {
 public:
  explicit AsFloats(DType dtype) : dtype_(dtype) {}
  void matrix(const std::string& name, Weight& weight) override {
    if (!weight.is_quantized()) return;
    const QuantizedFormat format = weight.quantized.layout.format;
    if (format != QuantizedFormat::f16 && format != QuantizedFormat::bf16 && format != QuantizedFormat::f32)
      throw ValueError(fmt::format(
          "{} is quantised: a base is divided among ranks where it is floats, and quantised ones are small "
          "as they are; leave out --shard-base",
          name));
    weight.tensor = dequantize(weight.quantized, dtype_);
    weight.tensor.eval();
    weight.quantized = {};
  }

 private:
  DType dtype_;
};

/// Up to the number in it: "model.layers.3".
std::string layer_of(const std::string& path) {
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    if (path.find_first_not_of("0123456789", at) >= end) return path.substr(0, end);
    at = end + 1;
  }
  return path;
}

/// Lets the pages of a mapped file go, of which this rank has copied its part.
void forget_pages(const LazyTensor& x) {
  if (!x.node().has_value()) return;
  const Value& value = x.node().value();
  const std::byte* const data = value.storage->host_data();
  if (data == nullptr) return;
  const std::span<const std::byte> bytes(data + value.byte_offset,
                                         static_cast<std::size_t>(x.numel()) * size_of(x.dtype()));
  if (detail::keep_mapped(bytes) != nullptr) detail::release_pages(bytes);
}

struct Place {
  std::string layer;
  std::unique_ptr<Projection>* slot = nullptr;
};

}  // namespace

ShardedBase shard_base(CausalLM& model, const distributed::Group& group) {
  ShardedBase result;
  if (group.size() == 1) return result;
  std::vector<Place> places;
  model.visit_projections(
      [&](const std::string& path, const std::string&, std::unique_ptr<Projection>& slot) {
        places.push_back({layer_of(path), &slot});
      });
  distributed::ShardedLayers layers(group);
  for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    while (end < places.size() && places[end].layer == places[begin].layer) ++end;
    std::vector<LazyTensor> matrices;
    std::vector<Weight> biases;
    for (std::size_t i = begin; i < end; ++i) {
      AsFloats floats(model.dtype());
      (*places[i].slot)->visit(places[i].layer, floats);
      WeightsOf weights;
      (*places[i].slot)->visit(places[i].layer, weights);
      if (weights.matrix_weight == nullptr || weights.matrix_weight->tensor.rank() != 2)
        throw ValueError(fmt::format("{}: its layers are no matrices that can be divided", places[i].layer));
      matrices.push_back(weights.matrix_weight->tensor);
      biases.push_back(weights.bias != nullptr ? *weights.bias : Weight{});
      result.parameters += matrices.back().numel();
    }
    const std::size_t number = layers.add(matrices);
    for (const LazyTensor& matrix : matrices) forget_pages(matrix);
    for (std::size_t i = begin; i < end; ++i) {
      const LazyTensor& matrix = matrices[i - begin];
      *places[i].slot = std::make_unique<ShardedLinear>(layers, number, i - begin, matrix.shape(),
                                                        std::move(biases[i - begin]), matrix.device());
    }
  }
  if (result.parameters == 0) throw ValueError("the model has no layers of matrices to divide among ranks");
  AsFloats floats(model.dtype());
  model.visit({}, floats);
  for (const Parameter& p : model.parameters())
    result.whole_bytes += p.tensor->numel() * static_cast<std::int64_t>(size_of(p.tensor->dtype()));
  result.own_bytes = layers.own_bytes();
  result.largest_layer_bytes = layers.largest_layer_bytes();
  return result;
}

}  // namespace caldera
