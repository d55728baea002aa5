// Asynchronous evaluation: eval_async() returns at once, the next graph is built while the device computes,
// and errors arrive where the result is asked for.
#include <caldera/caldera.h>

#include <cmath>
#include <cstdio>

using caldera::EvalFuture;
using caldera::LazyTensor;

namespace {

/// One step of a power iteration: the matrix's largest eigenvalue shows in the length of m v.
LazyTensor next(const LazyTensor& m, const LazyTensor& v) {
  const LazyTensor product = caldera::matmul(m, v);
  return product / caldera::sqrt(caldera::sum(caldera::square(product)));
}

}  // namespace

int main() {
  // Symmetric, with known eigenvalues: 1 everywhere plus n on the diagonal gives n (many times) and 2 n
  // (once).
  const int n = 200;
  const LazyTensor index = caldera::arange(n);
  const LazyTensor diagonal = caldera::expand_dims(index, 0) == caldera::expand_dims(index, 1);
  const LazyTensor m = caldera::astype(diagonal, caldera::DType::f32) * n + 1.0;

  LazyTensor v = caldera::random_uniform({n}, /*seed=*/3);
  EvalFuture running = v.eval_async();
  int built_ahead = 0;
  for (int step = 0; step < 30; ++step) {
    const LazyTensor following = next(m, v);  // built while `running` may still be under way
    if (!running.is_ready()) ++built_ahead;
    running.get();  // at most one step in flight
    running = following.eval_async();
    v = following;
  }
  running.get();
  const double eigenvalue = caldera::sum(v * caldera::matmul(m, v)).item<double>();
  std::printf(
      "largest eigenvalue %.4f, expected %d (%d of 30 graphs were built before the step before was done)\n",
      eigenvalue, 2 * n, built_ahead);
  bool good = std::abs(eigenvalue - 2 * n) < 1e-2;

  // A device that is not there. Nothing is thrown where the graph is built or sent off: the future carries
  // the error.
  const LazyTensor nowhere = LazyTensor::ones({2, 2}, caldera::DType::f32, caldera::Device::vulkan(255));
  const EvalFuture doomed = caldera::sum(nowhere).eval_async();
  try {
    doomed.get();
    std::printf("%s was evaluated\n", nowhere.to_string().c_str());
    good = false;
  } catch (const caldera::Error& error) {
    std::printf("the future says: %s\n", error.what());
  }
  // The engine goes on.
  good = good && caldera::sum(LazyTensor::ones({1000})).item() == 1000;
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
