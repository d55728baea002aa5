// LoRA fine-tuning from C++: a tiny Llama learns one text as a whole, then a LoRA adapter alone, with the
// model frozen, learns another.
#include <caldera/caldera.h>
#include <caldera/training.h>

#include <cstdio>
#include <string>

using namespace caldera;  // NOLINT(google-build-using-namespace): an example may

namespace {

constexpr int kBatch = 8;
constexpr int kLength = 32;

/// Rows of bytes from places that move on with `step`, and the byte that follows each of them.
std::pair<LazyTensor, LazyTensor> make_batch(const CausalLM& model, const std::string& text,
                                             std::size_t step) {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> next;
  for (std::size_t row = 0; row < kBatch; ++row)
    for (std::size_t i = 0; i < kLength; ++i) {
      const std::size_t at = step * 37 + row * 101 + i;
      ids.push_back(static_cast<unsigned char>(text[at % text.size()]));
      next.push_back(static_cast<unsigned char>(text[(at + 1) % text.size()]));
    }
  return {model.make_ids(ids, kBatch), model.make_ids(next, kBatch)};
}

double loss_on(CausalLM& model, const std::string& text) {
  const auto [ids, next] = make_batch(model, text, 1000);
  return cross_entropy(model(ids), next).item<double>();
}

/// Trains whatever is trainable. Each step is one graph: forward, gradients, clipping, AdamW; one eval runs
/// it.
void train(CausalLM& model, const std::string& text, std::size_t steps, double learning_rate) {
  AdamW optimizer(model.trainable_parameters());
  for (std::size_t step = 0; step < steps; ++step) {
    const auto [ids, next] = make_batch(model, text, step);
    const LazyTensor loss = cross_entropy(model(ids), next);
    std::vector<LazyTensor> grads = grad(loss, optimizer.parameters());
    clip_grad_norm(grads, 1.0);
    optimizer.update(grads, learning_rate);
    eval(loss, optimizer);
    if (step % 20 == 0) std::printf("  step %3zu  loss %.3f\n", step, loss.item<double>());
  }
}

}  // namespace

int main() {
  LlamaConfig config;
  config.hidden_size = 48;
  config.intermediate_size = 96;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 12;
  config.vocab_size = 128;  // ASCII
  Llama model(config, default_device(), /*seed=*/1);

  const std::string first =
      "the quick brown fox jumps over the lazy dog and runs far away into the deep dark wood; ";
  const std::string second =
      "Pack my box with five dozen liquor jugs! How vexingly quick daft zebras jump, said he. ";
  std::printf("pre-training %lld parameters\n", static_cast<long long>(model.parameter_count()));
  train(model, first, 80, 5e-3);

  const double before = loss_on(model, second);
  apply_lora(model, {.rank = 8, .alpha = 16}, {"all-linear"}, /*seed=*/2);
  std::printf("fine-tuning %lld parameters\n", static_cast<long long>(model.trainable_parameter_count()));
  train(model, second, 80, 1e-2);
  const double after = loss_on(model, second);
  std::printf("loss on the second text: %.3f before, %.3f after\n", before, after);
  return after < 0.7 * before ? 0 : 1;
}
