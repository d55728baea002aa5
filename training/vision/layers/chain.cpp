#include "training/vision/layers/chain.h"

namespace caldera::vision {

Chain& Chain::add(std::string name, LayerPtr layer) {
  links_.push_back({std::move(name), std::move(layer), {}});
  return *this;
}

Chain& Chain::then(std::function<LazyTensor(const LazyTensor&)> function) {
  links_.push_back({{}, nullptr, std::move(function)});
  return *this;
}

LazyTensor Chain::forward(const LazyTensor& x) {
  LazyTensor y = x;
  for (const Link& link : links_) y = link.layer ? link.layer->forward(y) : link.function(y);
  return y;
}

void Chain::visit(const std::string& prefix, ParameterVisitor& visitor) {
  for (const Link& link : links_) {
    if (!link.layer) continue;
    visitor.module(link.name.empty() ? prefix : join_name(prefix, link.name), *link.layer);
  }
}

}  // namespace caldera::vision
