// A training step on a batch that is taken in parts, as one loop: the gradients of the parts add up, and what
// a part needs is the memory of one. Eight parts are planned as one is.
#include <caldera/caldera.h>

#include <cmath>
#include <cstdio>
#include <vector>

using caldera::LazyTensor;
using caldera::Shape;
using Tensors = std::vector<LazyTensor>;

namespace {

LazyTensor loss_of(std::span<const LazyTensor> weights, const LazyTensor& x, const LazyTensor& y) {
  return mean(square(matmul(tanh(matmul(x, weights[0])), weights[1]) - y));
}

/// The loss and its gradients: those of the whole batch (parts, rows, width), part by part.
Tensors accumulated(const Tensors& weights, const LazyTensor& x, const LazyTensor& y) {
  const double share = 1.0 / static_cast<double>(x.shape(0));
  const auto part = [&](std::span<const LazyTensor> sums, std::span<const LazyTensor> rows) {
    const auto [loss, grads] = caldera::value_and_grad(
        [&](std::span<const LazyTensor> w) { return loss_of(w, rows[0], rows[1]); }, weights);
    return caldera::ScanTurn{
        {sums[0] + loss * share, sums[1] + grads[0] * share, sums[2] + grads[1] * share}};
  };
  const Tensors zeros{caldera::zeros({}), zeros_like(weights[0]), zeros_like(weights[1])};
  return caldera::scan(part, zeros, Tensors{x, y}).carry;
}

}  // namespace

int main() {
  caldera::manual_seed(1);
  const std::int64_t parts = 8, rows = 64, width = 16;
  const LazyTensor x = caldera::random_normal({parts, rows, width});
  const LazyTensor y = sin(x) + 0.1 * caldera::random_normal({parts, rows, width});
  Tensors weights{0.3 * caldera::random_normal({width, 32}), 0.3 * caldera::random_normal({32, width})};
  caldera::eval({x, y, weights[0], weights[1]});

  // The same as of the batch in one piece.
  const Tensors in_parts = accumulated(weights, x, y);
  const auto [loss, grads] = caldera::value_and_grad(
      [&](std::span<const LazyTensor> w) {
        return loss_of(w, reshape(x, Shape{parts * rows, width}), reshape(y, Shape{parts * rows, width}));
      },
      weights);
  const LazyTensor difference = max(abs(in_parts[2] - grads[1]));
  std::printf("loss %.6f in parts, %.6f in one piece; the gradients differ by %g\n", in_parts[0].item(),
              loss.item(), difference.item());

  const double first = loss.item();
  double last = first;
  for (int step = 0; step < 60; ++step) {
    const Tensors sums = accumulated(weights, x, y);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = weights[i] - 0.5 * sums[i + 1];
    caldera::eval({sums[0], weights[0], weights[1]});
    last = sums[0].item();
  }
  std::printf("after 60 steps: loss %.6f\n", last);
  const bool good = difference.item() < 1e-5 && last < first / 4;
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
