#include "engine/jit/signature.h"

#include "engine/runtime/settings.h"

namespace caldera {
namespace {

bool is_weak_number(const Node& node) { return node.is_scalar_leaf() && node.attributes()[1] != 0; }

}  // namespace

Signature::Argument Signature::argument_of(const Node& node) {
  return {node.shape(), node.dtype(), node.device(), node.is_scalar_leaf(), is_weak_number(node)};
}

Signature::Signature(std::span<const LazyTensor> arguments)
    : fusion_(settings().fusion), default_device_(caldera::default_device()) {
  arguments_.reserve(arguments.size());
  for (const LazyTensor& argument : arguments) arguments_.push_back(argument_of(argument.node()));
}

bool Signature::matches(std::span<const LazyTensor> arguments) const {
  if (arguments.size() != arguments_.size() || fusion_ != settings().fusion) return false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Node& node = arguments[i].node();
    const Argument& wanted = arguments_[i];
    const bool fits = node.dtype() == wanted.dtype && node.is_scalar_leaf() == wanted.is_number &&
                      node.device() == wanted.device && node.shape() == wanted.shape &&
                      (!wanted.is_number || is_weak_number(node) == wanted.is_weak);
    if (!fits) return false;
  }
  return default_device_ == caldera::default_device();
}

Hash128 Signature::hash(std::span<const LazyTensor> arguments) {
  Hash128 hash;
  const auto mix_device = [&](Device device) {
    hash.mix(static_cast<std::uint64_t>(device.kind) << 8 | device.index);
  };
  hash.mix(settings().fusion ? 1 : 0);
  mix_device(caldera::default_device());
  for (const LazyTensor& argument : arguments) {
    const Argument x = argument_of(argument.node());
    hash.mix(static_cast<std::uint64_t>(x.dtype) | static_cast<std::uint64_t>(x.is_number) << 8 |
             static_cast<std::uint64_t>(x.is_weak) << 9 | static_cast<std::uint64_t>(x.shape.rank()) << 16);
    mix_device(x.device);
    for (const std::int64_t extent : x.shape) hash.mix(static_cast<std::uint64_t>(extent));
  }
  return hash;
}

}  // namespace caldera
