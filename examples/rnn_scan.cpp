// A recurrent network as one scan: its plan is as long for a thousand steps as for ten, and its gradient
// keeps the states of a few steps at a time.
#include <caldera/caldera.h>

#include <cmath>
#include <cstdio>
#include <vector>

using caldera::LazyTensor;
using caldera::Shape;

namespace {

/// h' = tanh(x u + h w), over the first axis of x; returns the mean square of all h.
LazyTensor energy(const LazyTensor& u, const LazyTensor& w, const LazyTensor& x, std::int64_t snapshots) {
  const std::vector<LazyTensor> first{caldera::zeros({w.shape(0)})}, over{x};
  const auto step = [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slice) {
    const LazyTensor h = tanh(matmul(slice[0], u) + matmul(carry[0], w));
    return caldera::ScanTurn{{h}, {h}};
  };
  return mean(square(caldera::scan(step, first, over, {.snapshots = snapshots}).stacked[0]));
}

}  // namespace

int main() {
  caldera::manual_seed(1);
  const std::int64_t steps = 1000, width = 16;
  const LazyTensor x = caldera::random_normal({steps, 4});
  std::vector<LazyTensor> parameters{0.3 * caldera::random_normal({4, width}),
                                     0.2 * caldera::random_normal({width, width})};
  std::vector<std::vector<float>> gradients;
  for (const std::int64_t snapshots : {0, 10}) {
    const auto [value, grads] = caldera::value_and_grad(
        [&](std::span<const LazyTensor> p) { return energy(p[0], p[1], x, snapshots); }, parameters);
    caldera::eval({value, grads[0], grads[1]});
    std::printf("%4lld states kept: energy %.6f\n", static_cast<long long>(snapshots > 0 ? snapshots : steps),
                value.item());
    gradients.push_back(grads[1].to_vector<float>());
  }
  float difference = 0;
  for (std::size_t i = 0; i < gradients[0].size(); ++i)
    difference = std::max(difference, std::abs(gradients[0][i] - gradients[1][i]));
  std::printf("largest difference of the gradients: %g\n", static_cast<double>(difference));
  const bool good = difference < 1e-7F;
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
