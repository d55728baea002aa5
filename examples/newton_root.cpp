// A loop that ends when it has converged, and its gradient: Newton's method for the cube root, on the device.
#include <caldera/caldera.h>

#include <cmath>
#include <cstdio>
#include <vector>

using caldera::LazyTensor;

namespace {

/// x with x^3 = a, from x = a on, until the step is small.
LazyTensor cube_root(const LazyTensor& a) {
  const std::vector<LazyTensor> start{a, a};  // where it is, and the last step
  const auto goes_on = [](std::span<const LazyTensor> state) { return abs(state[1]) > 1e-12; };
  const auto newton = [&](std::span<const LazyTensor> state) {
    const LazyTensor& x = state[0];
    const LazyTensor step = (x * x * x - a) / (3 * x * x);
    return std::vector{x - step, step};
  };
  return caldera::while_loop(goes_on, newton, start)[0];
}

}  // namespace

int main() {
  bool good = true;
  for (const double a : {2.0, 27.0, 1000.0}) {
    const std::vector<LazyTensor> at{LazyTensor::from_vector<double>({a}, {})};
    const auto [root, slope] =
        caldera::value_and_grad([](std::span<const LazyTensor> x) { return cube_root(x[0]); }, at);
    caldera::eval({root, slope[0]});
    std::printf("cube root of %6.1f: %.12f, its slope %.12f\n", a, root.item<double>(),
                slope[0].item<double>());
    const double expected = std::cbrt(a);
    good = good && std::abs(root.item<double>() - expected) < 1e-10 &&
           std::abs(slope[0].item<double>() - expected / (3 * a)) < 1e-10;
  }
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
