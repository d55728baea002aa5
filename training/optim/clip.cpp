#include "training/optim/clip.h"

#include <fmt/format.h>

#include "ops/core/arithmetic.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/shape/joining.h"

namespace caldera {

LazyTensor global_norm(std::span<const LazyTensor> grads) {
  if (grads.empty()) throw ValueError("global_norm: there are no gradients");
  std::vector<LazyTensor> squares;
  squares.reserve(grads.size());
  for (const LazyTensor& g : grads) squares.push_back(reshape(sum(square(g)), Shape{1}));
  return sqrt(sum(squares.size() == 1 ? squares.front() : concatenate(squares, 0)));
}

LazyTensor clip_grad_norm(std::vector<LazyTensor>& grads, double max_norm) {
  if (!(max_norm > 0)) throw ValueError(fmt::format("clip_grad_norm: max_norm {} is not positive", max_norm));
  LazyTensor norm = global_norm(grads);
  const LazyTensor factor = minimum(LazyTensor(max_norm) / (norm + 1e-6), 1.0);
  for (LazyTensor& g : grads) g = g * factor;
  return norm;
}

void clip_grad_value(std::vector<LazyTensor>& grads, double max_value) {
  if (!(max_value > 0))
    throw ValueError(fmt::format("clip_grad_value: max_value {} is not positive", max_value));
  const LazyTensor most = max_value;
  const LazyTensor least = -max_value;
  for (LazyTensor& g : grads) g = minimum(maximum(g, least), most);
}

}  // namespace caldera
