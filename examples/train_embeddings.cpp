// Embeddings: texts that belong together come near one another, against the other texts of the batch.
#include <caldera/training.h>

#include <cstdio>
#include <string>

using namespace caldera;  // NOLINT(google-build-using-namespace): an example may

namespace {

ExampleSet similar(int first, int count) {
  ExampleSet set;
  for (int i = first; i < first + count; ++i) {
    Example example;
    example.kind = ExampleKind::similar;
    example.text = "order number " + std::to_string(i);
    example.rejected = std::to_string(i) + " is its number";  // the text that belongs to it
    set.examples.push_back(example);
  }
  return set;
}

}  // namespace

int main() {
  LlamaConfig config;  // the other sizes have defaults; a real program calls load_causal_lm("folder")
  config.hidden_size = 48;
  config.intermediate_size = 96;
  config.num_hidden_layers = 2;
  config.num_attention_heads = config.num_key_value_heads = 4;
  config.head_dim = 12;
  config.vocab_size = 258;
  config.initializer_range = 0.2;
  Llama model(config, default_device(), /*seed=*/1);
  apply_lora(model, {.rank = 8, .alpha = 16}, {"all-linear"}, /*seed=*/2);

  const ByteTokenizer tokenizer;
  const TokenDataset training(similar(100, 200), tokenizer, {.seq_len = 32});
  const TokenDataset held_out(similar(500, 16), tokenizer, {.seq_len = 32});
  TrainOptions options;
  options.iterations = 60;
  options.batch_size = 16;  // each text is compared with all of the batch
  options.optimizer.learning_rate = 3e-3;
  const auto objective = make_objective({.name = "embedding", .more = {}, .words = {{"pooling", "mean"}}});
  const TrainResult result = train(ObjectiveModels(model), *objective, training, &held_out, options);

  std::printf("loss on other texts: %.3f before, %.3f after\n", *result.initial_val_loss,
              *result.final_val_loss);
  for (const Metric& metric : result.final_val_metrics)
    std::printf("  %s %.3f\n", metric.name.c_str(), metric.value);
  return *result.final_val_loss < *result.initial_val_loss ? 0 : 1;
}
