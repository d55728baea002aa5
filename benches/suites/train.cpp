// The suite "train": steps of training, and what it costs to plan one.
#include <fmt/format.h>

#include <utility>

#include "benches/case.h"
#include "benches/suites/suites.h"
#include "engine/autodiff/autodiff.h"
#include "engine/device/backend.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/runtime.h"
#include "lm/generate/generator.h"
#include "ops/loss/cross_entropy.h"
#include "training/training.h"

namespace caldera::bench {
namespace {

using Tensors = std::vector<LazyTensor>;

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kLength = 128;
constexpr int kRank = 8;
constexpr std::int64_t kPrompt = 16;
constexpr std::int64_t kGenerated = 64;

/// 3.3 million parameters.
ModelConfig small_llama() {
  ModelConfig config;
  config.hidden_size = 256;
  config.intermediate_size = 688;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 8;
  config.head_dim = 32;
  config.vocab_size = 256;
  config.max_position_embeddings = kLength;
  return config;
}

/// Five layers and grouped queries, as the smallest of the published story tellers: what planning costs
/// depends on the number of operations, not on their sizes.
ModelConfig five_layers() {
  ModelConfig config;
  config.hidden_size = 64;
  config.intermediate_size = 172;
  config.num_hidden_layers = 5;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 4;
  config.head_dim = 8;
  config.vocab_size = 512;
  config.max_position_embeddings = kLength;
  config.tie_word_embeddings = true;
  return config;
}

LazyTensor token_ids(std::int64_t vocabulary, std::int64_t stride, Device device) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(kBatch * kLength));
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<std::int32_t>((static_cast<std::int64_t>(i) * stride + 11) % vocabulary);
  return LazyTensor::from_vector(ids, {kBatch, kLength}, device);
}

enum class Part : std::uint8_t {
  forward,  // loss alone
  full,     // loss, gradients and AdamW of all parameters
  lora      // the same of LoRA factors on the query and value projections
};

/// A model, its data and its optimiser. On the heap and never moved: the optimiser points into the model.
class Setup {
 public:
  Setup(const ModelConfig& config, Part part, Device device, DType dtype = DType::f32)
      : model_(config, device, 1),
        ids_(token_ids(config.vocab_size, 7919, device)),
        targets_(token_ids(config.vocab_size, 104729, device)) {
    if (part == Part::lora) apply_lora(model_, {.rank = kRank}, {"q_proj", "v_proj"}, 1);
    model_.set_dtype(dtype);
    model_.materialize();
    if (part == Part::forward) return;
    optimizer_ = std::make_unique<AdamW>(model_.trainable_parameters());
  }

  /// The graph of one step: everything that must be evaluated.
  Tensors step() {
    const LazyTensor loss = cross_entropy(model_.forward(ids_), targets_);
    if (!optimizer_) return {loss};
    optimizer_->update(grad(loss, optimizer_->inputs()));
    Tensors outputs = optimizer_->outputs();
    outputs.push_back(loss);
    return outputs;
  }
  /// The step's graph without a lasting effect: parameters and moments stay what they are.
  Tensors dry_step() {
    const std::vector<LazyTensor> parameters = optimizer_->inputs();
    const OptimizerState state = optimizer_->state();
    Tensors outputs = step();
    optimizer_->restore(state);
    for (std::size_t i = 0; i < parameters.size(); ++i) *optimizer_->parameters()[i].tensor = parameters[i];
    return outputs;
  }

 private:
  Llama model_;
  LazyTensor ids_;
  LazyTensor targets_;
  std::unique_ptr<AdamW> optimizer_;
};

struct Counts {
  double matrix = 0;      // parameters that multiply every token
  double parameters = 0;  // all
  double lora = 0;
  double score_flops = 0;  // of the attention's two products, forward
};

Counts count(const ModelConfig& c) {
  const double q = static_cast<double>(c.num_attention_heads * c.head_dim);
  const double kv = static_cast<double>(c.num_key_value_heads * c.head_dim);
  const double d = static_cast<double>(c.hidden_size);
  const double layers = static_cast<double>(c.num_hidden_layers);
  const double vocabulary = static_cast<double>(c.vocab_size);
  Counts n;
  n.matrix =
      layers * (2 * d * q + 2 * d * kv + 3 * d * static_cast<double>(c.intermediate_size)) + vocabulary * d;
  n.parameters = n.matrix + (c.tie_word_embeddings ? 0 : vocabulary * d) + d * (2 * layers + 1);
  n.lora = layers * kRank * ((d + q) + (d + kv));
  // Causal: half of the scores.
  n.score_flops = 0.5 * layers * 4 * static_cast<double>(kBatch * kLength * kLength) * q;
  return n;
}

nlohmann::json llama_peer(const ModelConfig& config, const std::string& part, DType dtype) {
  return {{"op", "llama"},
          {"part", part},
          {"dtype", name(dtype)},
          {"hidden", config.hidden_size},
          {"intermediate", config.intermediate_size},
          {"layers", config.num_hidden_layers},
          {"heads", config.num_attention_heads},
          {"vocabulary", config.vocab_size},
          {"batch", kBatch},
          {"length", kLength},
          {"rank", kRank}};
}

/// Greedy continuation of a prompt, keys and values kept, each token read: everything that generate() does.
Case decode_case() {
  const ModelConfig config = small_llama();
  const Counts n = count(config);
  constexpr double kTokens = kPrompt + kGenerated - 1;  // the last one is not fed
  // Of a token at a time the scores of all before it.
  const double scores =
      static_cast<double>(config.num_hidden_layers * config.num_attention_heads * config.head_dim) * 2 *
      kTokens * kTokens;
  Case c;
  c.name = "train/llama_3.3M/decode";
  c.shape = fmt::format("d {}, {} layers, {} tokens behind {}", config.hidden_size, config.num_hidden_layers,
                        kGenerated, kPrompt);
  c.flops = 2 * kTokens * n.matrix + scores;
  c.bytes = f32_bytes(n.matrix * kGenerated);
  c.peer = llama_peer(config, "decode", DType::f32);
  c.peer["prompt"] = kPrompt;
  c.peer["generated"] = kGenerated;
  c.aim_ratio = 0.3;
  c.make = [=](Device device) {
    auto model = std::make_shared<Llama>(config, device, 1);
    model->materialize();
    std::vector<std::int32_t> prompt(kPrompt);
    for (std::size_t i = 0; i < prompt.size(); ++i)
      prompt[i] = static_cast<std::int32_t>((i * 7919 + 11) % static_cast<std::size_t>(config.vocab_size));
    GenerateOptions options;
    options.max_tokens = kGenerated;
    options.sampling.temperature = 0;
    Work work;
    work.run = [=] { (void)generate(*model, prompt, options); };
    return work;
  };
  return c;
}

/// What a device does before the first replay of a step's graph: the plan, without the cache, and its
/// kernels. The graph is built before the clock starts.
Case first_call_case() {
  Case c;
  c.name = "train/llama_3.3M/plan_and_prepare";
  c.shape = "training step";
  c.bound_us = 15'000;
  c.make = [=](Device device) {
    auto setup = std::make_shared<Setup>(small_llama(), Part::full, device);
    auto outputs = std::make_shared<Tensors>(setup->dry_step());
    Work work;
    work.run = [=] { (void)backend(device).prepare(plan_for(*outputs)); };
    work.scope = setup;
    return work;
  };
  return c;
}

/// In 16 bits: mixed precision, as `caldera finetune --dtype` trains, without loss scaling.
Case step_case(const std::string& name, Part part, DType dtype = DType::f32) {
  const ModelConfig config = small_llama();
  const Counts n = count(config);
  const double tokens = static_cast<double>(kBatch * kLength);
  const double forward = 2 * tokens * n.matrix + n.score_flops;
  Case c;
  c.name = "train/llama_3.3M/" + name + type_suffix(dtype);
  c.dtype = dtype;
  c.shape = fmt::format("d {}, {} layers, {} heads, batch {} x {}", config.hidden_size,
                        config.num_hidden_layers, config.num_attention_heads, kBatch, kLength);
  // Weights are read by the forward and by the backward pass. The update reads parameter, gradient and two
  // moments and writes all but the gradient.
  switch (part) {
    case Part::forward:
      c.flops = forward;
      c.bytes = f32_bytes(n.parameters);
      break;
    case Part::full:
      c.flops = 3 * forward;
      c.bytes = f32_bytes(2 * n.parameters + 7 * n.parameters);
      break;
    case Part::lora:
      // No gradients of frozen weights; those of the scores remain.
      c.flops = 2 * forward + n.score_flops + 6 * tokens * n.lora;
      c.bytes = bytes_of(2 * n.parameters, dtype) + f32_bytes(7 * n.lora);
      break;
  }
  c.peer = llama_peer(config, name, dtype);
  c.make = [=](Device device) {
    auto setup = std::make_shared<Setup>(config, part, device, dtype);
    Work work;
    work.build = [=] { return setup->step(); };
    return work;
  };
  return c;
}

/// From the built graph of a step to its plan, without the cache. The graph is built before the clock starts.
Case train_plan_case(const std::string& name, Part part) {
  Case c;
  c.name = "train/plan_5_layers/" + name;
  c.shape = "training step of a 5-layer Llama";
  c.bound_us = 50'000;
  c.make = [=](Device device) {
    auto setup = std::make_shared<Setup>(five_layers(), part, device);
    auto outputs = std::make_shared<Tensors>(setup->dry_step());
    Work work;
    work.run = [=] { (void)plan_for(*outputs); };
    work.scope = setup;
    return work;
  };
  return c;
}

/// The graph of the step alone: model, gradients, optimiser; nothing planned or computed.
Case build_train_case(const std::string& name, Part part) {
  Case c;
  c.name = "train/build_5_layers/" + name;
  c.shape = "training step of a 5-layer Llama";
  c.make = [=](Device device) {
    auto setup = std::make_shared<Setup>(five_layers(), part, device);
    Work work;
    work.run = [=] { (void)setup->dry_step(); };
    return work;
  };
  return c;
}

}  // namespace

std::vector<Case> train_suite() {
  std::vector<Case> cases{step_case("forward", Part::forward), step_case("step", Part::full),
                          step_case("lora_step", Part::lora), decode_case()};
  for (const DType type : kHalfTypes) cases.push_back(step_case("lora_step", Part::lora, type));
  cases.push_back(first_call_case());
  cases.push_back(build_train_case("step", Part::full));
  cases.push_back(train_plan_case("step", Part::full));
  cases.push_back(train_plan_case("lora_step", Part::lora));
  return cases;
}

}  // namespace caldera::bench
