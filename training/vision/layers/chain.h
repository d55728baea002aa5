// Chain: layers one after the other, with PyTorch's names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lm/nn/module.h"

namespace caldera::vision {

using LayerPtr = std::unique_ptr<Layer>;

/// Applies layers and plain functions in the order in which they were added. A layer's name is one part of
/// its parameters' names ("0" in "features.0.weight"); an empty one adds no part.
class Chain final : public Layer {
 public:
  Chain& add(std::string name, LayerPtr layer);
  /// Adds a function that has no parameters.
  Chain& then(std::function<LazyTensor(const LazyTensor&)> function);

  LazyTensor forward(const LazyTensor& x) override;
  void visit(const std::string& prefix, ParameterVisitor& visitor) override;

 private:
  struct Link {
    std::string name;
    LayerPtr layer;  // or
    std::function<LazyTensor(const LazyTensor&)> function;
  };
  std::vector<Link> links_;
};

}  // namespace caldera::vision
