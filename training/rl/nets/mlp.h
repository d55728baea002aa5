// Multi-layer perceptrons as functions of their parameters, so that one program may hold several of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera::rl {

enum class Activation : std::uint8_t { tanh, relu };

/// Finds "tanh" or "relu". Throws ValueError for another name.
Activation parse_activation(std::string_view name);
std::string_view name(Activation activation);

/// Makes the parameters of a network of these widths, input first: a weight (out, in) and a bias a layer.
/// Weights are orthogonal, with a gain of sqrt(2) but for the last layer's; biases are 0. A function of the
/// seed. Throws ValueError unless there are two widths, all positive.
std::vector<LazyTensor> make_mlp(std::span<const std::int64_t> widths, double last_gain, std::uint64_t seed,
                                 Device device);

/// Applies such a network to x (..., in): the activation stands between layers, not behind the last one.
LazyTensor mlp(std::span<const LazyTensor> parameters, const LazyTensor& x, Activation activation);

/// Names the parameters as PyTorch's Sequential does: "actor.0.weight", "actor.0.bias", "actor.2.weight", ...
std::vector<std::string> mlp_names(const std::string& prefix, std::size_t layers);

}  // namespace caldera::rl
