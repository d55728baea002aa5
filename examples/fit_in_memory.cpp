// Training in the memory one has: what a step takes under limits is known before it runs, and a run within
// half of the memory has the losses of one without a limit, to the bit.
#include <caldera/caldera.h>
#include <caldera/training.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

using namespace caldera;  // NOLINT(google-build-using-namespace): an example may

namespace {

std::unique_ptr<Llama> make_model() {
  LlamaConfig config;
  config.hidden_size = 64;
  config.intermediate_size = 160;
  config.num_hidden_layers = 8;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 16;
  config.vocab_size = 258;
  config.max_position_embeddings = 256;
  auto model = std::make_unique<Llama>(config, Device::cpu(), /*seed=*/1);
  apply_lora(*model, {.rank = 4, .alpha = 8}, {"all-linear"}, /*seed=*/2);
  model->materialize();
  return model;
}

TokenDataset make_data() {
  ExampleSet set;
  for (int i = 0; i < 16; ++i) set.examples.push_back({"", std::string(200, static_cast<char>('a' + i))});
  return {set, ByteTokenizer(), {.seq_len = 200}};
}

/// The last loss of a short run within `limit` bytes; 0: no limit.
double train_within(std::uint64_t limit) {
  const std::unique_ptr<Llama> model = make_model();
  set_memory_limit(Device::cpu(), limit);
  TrainOptions options{.iterations = 5, .batch_size = 8, .checkpointing = Checkpointing::automatic};
  options.optimizer.learning_rate = 1e-2;
  const TrainResult result = train(*model, make_data(), nullptr, options);
  set_memory_limit(Device::cpu(), 0);
  if (result.memory) std::printf("%s\n", to_text(*result.memory).c_str());
  return result.last_step.loss;
}

}  // namespace

int main() {
  const std::vector<double> shares{1, 0.8, 0.6, 0.5, 0.4, 0.3};
  std::vector<MemoryRow> rows;
  {
    const std::unique_ptr<Llama> model = make_model();
    rows =
        memory_curve(ObjectiveModels(*model), NextToken(), make_data(), nullptr, {.batch_size = 8}, shares);
  }
  for (const MemoryRow& row : rows) {
    if (row.choice)
      std::printf("%7.2f MiB: %3.0f %% of the forward pass again\n",
                  static_cast<double>(row.choice->predicted_peak_bytes) / (1 << 20),
                  100 * row.choice->recomputed);
    else
      std::printf("too low: %.2f MiB is the least\n", static_cast<double>(row.least_bytes) / (1 << 20));
  }
  const double free = train_within(0);
  const double half = train_within(rows[4].limit_bytes + (1 << 20));
  std::printf("loss without a limit %.9f, in half of the memory %.9f\n", free, half);
  const bool good = free == half && rows[4].choice && rows[4].choice->recomputed > 0;
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
