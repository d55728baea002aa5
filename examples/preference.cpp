// Preferences: an adapter learns from pairs which answer is the better one. With DPO (the default), or with
// ORPO, which needs no reference: preference [dpo|orpo].
#include <caldera/training.h>

#include <cstdio>
#include <string>

using namespace caldera;  // NOLINT(google-build-using-namespace): an example may

namespace {

/// Polite answers are preferred to rude ones.
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

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "dpo";
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
  const TokenDataset train_pairs(pairs(0, 40), tokenizer, {.seq_len = 64});
  const TokenDataset valid_pairs(pairs(100, 10), tokenizer, {.seq_len = 64});
  const auto objective = make_objective({.name = name, .more = {{"beta", 0.2}}, .words = {}});
  TrainOptions options;
  options.iterations = 40;
  options.batch_size = 4;
  options.optimizer.learning_rate = 2e-3;
  // Without a second model DPO compares with the model whose adapter is switched off.
  const TrainResult result = train(ObjectiveModels(model), *objective, train_pairs, &valid_pairs, options);

  std::printf("%s: loss on pairs that were not trained on: %.3f before, %.3f after\n", name.c_str(),
              *result.initial_val_loss, *result.final_val_loss);
  for (const Metric& metric : result.final_val_metrics)
    std::printf("  %s %.3f\n", metric.name.c_str(), metric.value);
  return *result.final_val_loss < *result.initial_val_loss ? 0 : 1;
}
