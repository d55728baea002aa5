#include <caldera/caldera.h>
#include <caldera/chat.h>
#include <caldera/doctor.h>
#include <caldera/explain.h>
#include <caldera/survey.h>
#include <caldera/training.h>
#include <caldera/v1.h>

#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

namespace {

/// Whether the gradient rule of x * sigmoid(x) that has this share of its second term passes gradcheck.
bool passes(double share) {
  using namespace caldera;
  using Tensors = std::vector<LazyTensor>;
  const auto silu = custom_vjp([](std::span<const LazyTensor> a) { return a[0] * sigmoid(a[0]); },
                               [=](std::span<const LazyTensor> a, const LazyTensor& y, const LazyTensor& g) {
                                 const LazyTensor s = sigmoid(a[0]);
                                 return Tensors{g * (s + y * (1 - s) * share)};
                               },
                               "silu");
  const LazyTensor x = LazyTensor::from_vector<double>({-2, -0.5, 0.3, 4}, {4}, Device::cpu());
  const testing::GradcheckResult result = testing::gradcheck(silu, {x});
  if (!result) std::printf("%s\n", result.message.c_str());
  return result && testing::gradgradcheck(silu, {x});
}

/// Whether a chat template renders.
bool renders() {
  const caldera::ChatTemplate chat("{{ messages[0].content | upper }}");
  return chat.render({.messages = {{{"role", "user"}, {"content", "grün"}}}}).text == "GRÜN";
}

/// Whether this device adds right, and a graph says what it would become.
bool looks_inside() {
  using namespace caldera;
  const LazyTensor sum = random_normal({4}, /*seed=*/1) + 1.0;
  return doctor::examine(Device::cpu(), "casts").failed() == 0 && !to_text(explain({sum})).empty() &&
         find_card("no such card") == nullptr;
}

}  // namespace

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
  return right && renders() && looks_inside() && passes(1) && !passes(0.5) ? 0 : 1;
}
