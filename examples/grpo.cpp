// GRPO: a model is rewarded for what it writes by a function of this program. Here it is paid for 'a'.
#include <caldera/training.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

using namespace caldera;  // NOLINT(google-build-using-namespace): an example may

namespace {

double share_of_a(const std::string& text) {
  const auto count = static_cast<double>(std::count(text.begin(), text.end(), 'a'));
  return text.empty() ? 0 : count / static_cast<double>(text.size());
}

std::vector<double> rewards(std::span<const Answer> answers) {
  std::vector<double> values;
  for (const Answer& answer : answers) values.push_back(share_of_a(answer.text));
  return values;
}

ExampleSet prompts() {
  ExampleSet set;
  for (const char* const prompt : {"Once", "Then", "So", "And"}) {
    Example example;
    example.kind = ExampleKind::prompt;
    example.text = prompt;
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

  const auto tokenizer = std::make_shared<ByteTokenizer>();
  const TokenDataset data(prompts(), *tokenizer, {.seq_len = 48});
  const auto objective = make_grpo(
      rewards, {.name = "grpo", .more = {{"group_size", 8}, {"completion_length", 12}}, .words = {}});
  TrainOptions options;
  options.iterations = 60;
  options.batch_size = 4;
  options.optimizer.learning_rate = 1e-2;
  const TrainResult result =
      train(ObjectiveModels(model, nullptr, tokenizer), *objective, data, &data, options);

  double reward = 0;
  for (const Metric& metric : result.final_val_metrics) {
    std::printf("  %s %.3f\n", metric.name.c_str(), metric.value);
    if (metric.name == "reward") reward = metric.value;
  }
  std::printf("mean reward after the training: %.2f of 1\n", reward);
  return reward > 0.2 ? 0 : 1;
}
