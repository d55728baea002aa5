// Eager calls: every line has computed its result when it returns. A frozen linear layer, a LoRA layer beside
// it, softmax and a loss, on the best device there is.
#include <caldera/v1.h>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace caldera::v1;  // NOLINT(google-build-using-namespace): an example may

int main() {
  const Device device = Device::with_fallback(0);
  std::printf("device: %s (%s)\n", device.info().name.c_str(), device.to_string().c_str());

  // Two tokens of three features; a frozen layer with four outputs.
  const Tensor x({0.5f, -1.0f, 2.0f, 1.5f, 0.25f, -0.75f}, {2, 3}, device);
  const Tensor weight = Tensor::randn({3, 4}, /*seed=*/7, DType::f32, device) * 0.5;
  const Tensor base = x.rms_norm(1e-6).matmul(weight);

  // A new LoRA layer changes nothing, because its B is zero. Give it a B that does something.
  const LoRALayer lora(3, 4, {.rank = 2, .alpha = 4}, device, /*seed=*/1);
  const double before = lora.forward(x).sum().item<double>();
  lora.lora_b().set(Tensor({0.1f, -0.2f, 0.3f, 0.4f, -0.5f, 0.6f, 0.7f, -0.8f}, {2, 4}, device));
  const Tensor logits = base + lora.forward(x);

  const Tensor probabilities = logits.softmax_stable();
  std::printf("probabilities %s\n", probabilities.to_string().c_str());
  for (int row = 0; row < 2; ++row) {
    for (int column = 0; column < 4; ++column) std::printf("  %7.4f", probabilities.at({row, column}));
    std::printf("\n");
  }
  const Tensor targets(std::vector<int>{3, 0}, {2}, device);
  const double loss = cross_entropy_loss(logits, targets).item<double>();
  std::printf("cross-entropy %.4f\n", loss);

  // The same loss by hand, from the probabilities; and rows that sum to one.
  const double expected =
      -(std::log(probabilities.at<double>({0, 3})) + std::log(probabilities.at<double>({1, 0}))) / 2;
  const double total = probabilities.sum().item<double>();
  const bool good = before == 0 && std::abs(loss - expected) < 1e-4 && std::abs(total - 2) < 1e-5;
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
