// Distillation: a small model learns from the predictions of a larger one that has been trained.
#include <caldera/training.h>

#include <cstdio>
#include <string>

using namespace caldera;  // NOLINT(google-build-using-namespace): an example may

namespace {

/// Sums of even numbers, or of odd ones.
ExampleSet texts(int first) {
  ExampleSet set;
  for (int i = first; i < 160; i += 2)
    set.examples.push_back(
        {"", std::to_string(i) + " and " + std::to_string(i) + " is " + std::to_string(2 * i)});
  return set;
}

LlamaConfig config_of(std::int64_t width) {
  LlamaConfig config;  // the other sizes have defaults
  config.hidden_size = width;
  config.intermediate_size = 2 * width;
  config.num_hidden_layers = 2;
  config.num_attention_heads = config.num_key_value_heads = 4;
  config.head_dim = width / 4;
  config.vocab_size = 258;
  return config;
}

}  // namespace

int main() {
  const ByteTokenizer tokenizer;
  const TokenDataset training(texts(0), tokenizer, {.seq_len = 32});
  const TokenDataset held_out(texts(1), tokenizer, {.seq_len = 32});
  TrainOptions options;
  options.iterations = 60;
  options.batch_size = 8;
  options.optimizer.learning_rate = 5e-3;

  Llama teacher(config_of(64), default_device(), /*seed=*/1);
  const TrainResult taught = train(teacher, training, &held_out, options);
  teacher.freeze();

  Llama student(config_of(32), default_device(), /*seed=*/2);
  const auto objective = make_objective({.name = "distillation", .more = {{"temperature", 2}}, .words = {}});
  const TrainResult result =
      train(ObjectiveModels(student, &teacher), *objective, training, &held_out, options);
  std::printf("the teacher's loss on other texts: %.3f\n", *taught.final_val_loss);
  for (const Metric& metric : result.final_val_metrics)
    std::printf("  the student's %s: %.3f\n", metric.name.c_str(), metric.value);
  return *result.final_val_loss < 0.5 * *result.initial_val_loss ? 0 : 1;
}
