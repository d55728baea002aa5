#include "training/rl/nets/mlp.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/base/error.h"
#include "lm/nn/init.h"
#include "lm/nn/module.h"
#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/activations.h"

namespace caldera::rl {

Activation parse_activation(std::string_view name) {
  if (name == "tanh") return Activation::tanh;
  if (name == "relu") return Activation::relu;
  throw ValueError(fmt::format("unknown activation '{}' (valid: tanh, relu)", name));
}

std::string_view name(Activation activation) { return activation == Activation::tanh ? "tanh" : "relu"; }

std::vector<LazyTensor> make_mlp(std::span<const std::int64_t> widths, double last_gain, std::uint64_t seed,
                                 Device device) {
  if (widths.size() < 2) throw ValueError("make_mlp: give at least two widths, of the input and the output");
  for (const std::int64_t width : widths)
    if (width < 1) throw ValueError(fmt::format("make_mlp: a layer of width {}; at least 1", width));
  std::vector<LazyTensor> parameters;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const double gain = i + 2 == widths.size() ? last_gain : std::sqrt(2.0);
    parameters.push_back(orthogonal_init({widths[i + 1], widths[i]}, gain, mix_seed(seed, i), device));
    parameters.push_back(zeros({widths[i + 1]}, DType::f32, device).eval());
  }
  return parameters;
}

LazyTensor mlp(std::span<const LazyTensor> parameters, const LazyTensor& x, Activation activation) {
  LazyTensor h = x;
  for (std::size_t i = 0; i < parameters.size(); i += 2) {
    h = matmul(h, parameters[i].T()) + parameters[i + 1];
    if (i + 2 < parameters.size()) h = activation == Activation::tanh ? tanh(h) : relu(h);
  }
  return h;
}

std::vector<std::string> mlp_names(const std::string& prefix, std::size_t layers) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < layers; ++i)
    for (const char* kind : {"weight", "bias"}) names.push_back(fmt::format("{}.{}.{}", prefix, 2 * i, kind));
  return names;
}

}  // namespace caldera::rl
