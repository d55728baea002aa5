// A training step that is traced once: compiled() calls the function on its first use, and replays the plan
// after that. The loop binds tensors and numbers; it builds no graph.
#include <caldera/caldera.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

using caldera::LazyTensor;
using Tensors = std::vector<LazyTensor>;

int main() {
  // Fit y = 2 x - 1 by gradient descent with momentum.
  int calls = 0;
  const auto loss = [](std::span<const LazyTensor> a) {  // weight, offset, x, y
    return caldera::mean(caldera::square(a[0] * a[2] + a[1] - a[3]));
  };
  // Arguments: weight, offset, their velocities, x, y, the rate. The first four are replaced at every call,
  // so the results may take their memory.
  const caldera::VectorFunction step = caldera::compiled(
      caldera::VectorFunction([&](std::span<const LazyTensor> a) {
        ++calls;
        const Tensors at{a[0], a[1], a[4], a[5]};
        const auto [value, grads] = caldera::value_and_grad(caldera::TensorFunction(loss), at);
        const LazyTensor dw = a[2] * 0.9 + grads[0], db = a[3] * 0.9 + grads[1];
        return Tensors{a[0] - a[6] * dw, a[1] - a[6] * db, dw, db, value};
      }),
      {.donate = {0, 1, 2, 3}});

  Tensors arguments;
  for (int i = 0; i < 4; ++i) arguments.push_back(LazyTensor::zeros({1}));
  const LazyTensor x = caldera::arange(64, caldera::DType::f32) / 32.0 - 1.0;
  arguments.insert(arguments.end(), {x, x * 2.0 - 1.0, 0.0});
  for (int i = 0; i < 200; ++i) {
    arguments[6] = i < 100 ? 0.1 : 0.05;  // a number: an argument, and no reason to trace again
    const Tensors results = step(arguments);
    std::copy(results.begin(), results.begin() + 4, arguments.begin());
    if (i % 50 == 49) std::printf("step %3d: loss %.3g\n", i + 1, results[4].item());
  }
  const double weight = arguments[0].item<double>(), offset = arguments[1].item<double>();
  std::printf("y = %.4f x %+.4f after 200 steps, of which %d called the function\n", weight, offset, calls);
  const bool good = calls == 1 && std::abs(weight - 2) < 1e-3 && std::abs(offset + 1) < 1e-3;
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
