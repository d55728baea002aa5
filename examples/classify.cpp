// Classification: a head on the last token tells kinds of texts apart.
#include <caldera/caldera.h>
#include <caldera/training.h>

#include <cstdio>
#include <string>

using namespace caldera;  // NOLINT(google-build-using-namespace): an example may

namespace {

/// Sums, differences and words are three classes.
ExampleSet texts(int first, int count) {
  ExampleSet set;
  for (int i = first; i < first + count; ++i) {
    const std::string a = std::to_string(i), b = std::to_string(i * 7 % 50);
    Example example;
    example.text = i % 3 == 2 ? "words for number " : a;
    example.text += i % 3 == 2 ? a : (i % 3 == 0 ? " + " : " - ") + b;
    example.label = i % 3;
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
  const TokenDataset training(texts(0, 90), tokenizer, {.seq_len = 32});
  const TokenDataset held_out(texts(200, 30), tokenizer, {.seq_len = 32});
  TrainOptions options;
  options.iterations = 60;
  options.batch_size = 8;
  options.optimizer.learning_rate = 2e-3;
  const auto objective = make_objective({.name = "classification", .more = {}, .words = {}});
  const TrainResult result = train(ObjectiveModels(model), *objective, training, &held_out, options);
  std::printf("loss on other texts: %.3f before, %.3f after\n", *result.initial_val_loss,
              *result.final_val_loss);

  // The classes of a text of one's own: scores of its last token.
  const std::vector<std::int32_t> ids = tokenizer.encode("12 + 30");
  const EvaluationMode mode(model);
  const LazyTensor hidden = model.hidden_states(model.make_ids(ids));
  const LazyTensor last = slice(hidden, 1, hidden.shape(1) - 1, hidden.shape(1));
  std::printf("'12 + 30' is of class %d\n", argmax(flatten(model.scores(last)), 0).item<std::int32_t>());
  return *result.final_val_loss < 0.7 * *result.initial_val_loss ? 0 : 1;
}
