#include <caldera/caldera.h>
#include <caldera/training.h>
#include <caldera/v1.h>

#include <cmath>
#include <cstdio>

int main() {
  using namespace caldera;
  const LazyTensor x = random_normal({32, 64}, /*seed=*/1);
  const LazyTensor w = random_normal({64, 8}, /*seed=*/2);
  const LazyTensor p = softmax(matmul(x, w));
  const LazyTensor loss = mean(square(p - 0.125));
  const LazyTensor dw = grad(loss, w);
  const LazyTensor total = sum(p);
  eval({loss, dw, total});
  std::printf("loss %g, probabilities sum to %g\n", loss.item(), total.item());
  // 32 rows of probabilities; adding one vector to all columns of w changes no softmax: dw sums to 0.
  const bool right = std::abs(total.item() - 32) < 1e-3 && loss.item() > 0 && loss.item() < 0.11 &&
                     std::abs(sum(dw).item()) < 1e-5 && sum(square(dw)).item() > 0;
  return right ? 0 : 1;
}
