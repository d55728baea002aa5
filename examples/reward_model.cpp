// A reward model: a head that scores texts learns from pairs, and orders pairs that it has not seen.
#include <caldera/training.h>

#include <cstdio>
#include <string>

using namespace caldera;  // NOLINT(google-build-using-namespace): an example may

namespace {

/// Polite answers are preferred to rude ones, whatever they are about.
ExampleSet pairs(int first, int count) {
  ExampleSet set;
  for (int i = first; i < first + count; ++i) {
    Example example;
    example.kind = ExampleKind::preference;
    example.prompt = "Guest " + std::to_string(i) + " asks for tea. ";
    example.text = "With pleasure, guest " + std::to_string(i) + ".";
    example.rejected = "Go away, number " + std::to_string(i) + "!";
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
  const TokenDataset training(pairs(0, 40), tokenizer, {.seq_len = 64});
  const TokenDataset held_out(pairs(100, 20), tokenizer, {.seq_len = 64});
  TrainOptions options;
  options.iterations = 30;
  options.optimizer.learning_rate = 2e-3;
  const auto objective = make_objective({.name = "reward", .more = {}, .words = {}});
  const TrainResult result = train(ObjectiveModels(model), *objective, training, &held_out, options);

  double accuracy = 0;
  for (const Metric& metric : result.final_val_metrics) {
    std::printf("  %s %.3f\n", metric.name.c_str(), metric.value);
    if (metric.name == "accuracy") accuracy = metric.value;
  }
  std::printf("of 20 pairs that it has not seen it orders %.0f %% right\n", 100 * accuracy);
  save_adapter(model, "adapter");  // with the head
  return accuracy > 0.9 ? 0 : 1;
}
