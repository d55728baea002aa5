// KTO: an adapter learns from answers that are good or bad by themselves, with no pairs.
#include <caldera/training.h>

#include <cstdio>
#include <string>

using namespace caldera;  // NOLINT(google-build-using-namespace): an example may

namespace {

/// Answers that say the number again are good.
ExampleSet answers(int first, int count) {
  ExampleSet set;
  for (int i = first; i < first + count; ++i) {
    Example example;
    example.prompt = "Say " + std::to_string(i) + ": ";
    example.text = i % 2 == 0 ? std::to_string(i) + ", of course." : "I will not!";
    example.label = i % 2 == 0 ? 1 : 0;
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
  const DatasetOptions form{.seq_len = 48, .loss_on = LossOn::completion};
  const TokenDataset training(answers(0, 40), tokenizer, form);
  const TokenDataset valid(answers(100, 10), tokenizer, form);
  TrainOptions options;
  options.iterations = 40;
  options.optimizer.learning_rate = 2e-3;
  const auto objective = make_objective({.name = "kto", .more = {{"beta", 0.2}}, .words = {}});
  const TrainResult result = train(ObjectiveModels(model), *objective, training, &valid, options);

  std::printf("kto: loss on other answers %.3f before, %.3f after\n", *result.initial_val_loss,
              *result.final_val_loss);
  for (const Metric& metric : result.final_val_metrics)
    std::printf("  %s %.3f\n", metric.name.c_str(), metric.value);
  return *result.final_val_loss < *result.initial_val_loss ? 0 : 1;
}
