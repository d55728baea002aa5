// Data parallel training by hand: every rank has rows of its own, and they add up their gradients. Start it
// with
//
//   mpirun -n 4 average_gradients
//
// Without mpirun it is a group of one, and prints the same.
#include <caldera/caldera.h>
#include <caldera/distributed.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

using caldera::LazyTensor;
namespace distributed = caldera::distributed;

int main() {
  const distributed::Group group = distributed::init();

  // The line y = 3x - 1 at 60 places, of which each rank has every size()-th. Their numbers may differ.
  std::vector<float> xs, ys;
  for (int i = group.rank(); i < 60; i += group.size()) {
    xs.push_back(static_cast<float>(i) / 30 - 1);
    ys.push_back(3 * xs.back() - 1);
  }
  const auto n = static_cast<std::int64_t>(xs.size());
  const LazyTensor x = LazyTensor::from_vector(xs, {n}), y = LazyTensor::from_vector(ys, {n});

  LazyTensor slope = LazyTensor::zeros({}), offset = LazyTensor::zeros({});
  for (int step = 0; step < 60; ++step) {
    // The sum of losses, not their mean: a mean over ranks would weight the rows of small shares more.
    const LazyTensor error = x * slope + offset - y;
    const LazyTensor loss = sum(error * error);
    std::vector<LazyTensor> grads = grad(loss, std::vector<LazyTensor>{slope, offset});
    const LazyTensor rows = distributed::all_sum(LazyTensor::full({}, static_cast<float>(n)), group);
    for (LazyTensor& g : grads) g = distributed::all_sum(g, group) / rows;
    slope = slope - 0.4F * grads[0];
    offset = offset - 0.4F * grads[1];
    caldera::eval(std::vector<LazyTensor>{slope, offset});
  }
  if (group.rank() == 0) std::printf("y = %.3f x %+.3f\n", slope.item<float>(), offset.item<float>());
  const bool right = std::abs(slope.item<float>() - 3) < 1e-3F && std::abs(offset.item<float>() + 1) < 1e-3F;
  distributed::finish();
  return right ? 0 : 1;
}
