// How few dispatches well-known programs become, and that no barrier stands between them which their
// dependencies do not ask for. These are promises: a number may fall, never rise.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/runtime.h"
#include "ops/loss/cross_entropy.h"
#include "ops/nn/optimizer_updates.h"
#include "ops/shape/joining.h"
#include "tests/support/engine_setup.h"
#include "tests/support/plans/dispatch_depth.h"
#include "tests/support/plans/named_programs.h"
#include "training/evaluate/evaluate.h"
#include "training/optim/clip.h"
#include "training/training.h"

namespace caldera::testing {
namespace {

using Tensors = std::vector<LazyTensor>;

constexpr Device kDevice = Device::null();

LazyTensor in(const Shape& shape, float first = 0.25F) { return program_input(shape, kDevice, first); }

/// The plan, whose barriers must be as few as those of any order of its dispatches.
std::shared_ptr<const Plan> plan_of(const Tensors& outputs) {
  const ScopedSettings scope;
  auto plan = plan_for(outputs);
  EXPECT_EQ(plan->barrier_count(), depth_by_reads(*plan) - 1) << plan->to_string();
  return plan;
}

int dispatches(const Tensors& outputs) { return plan_of(outputs)->dispatch_count(); }

// ---- one kernel each: by name and written by hand ----

LazyTensor hand_softmax(const LazyTensor& x) {
  const LazyTensor e = exp(x - max(x, -1, true));
  return e / sum(e, -1, true);
}
LazyTensor hand_rms_norm(const LazyTensor& x, const LazyTensor& w) {
  return w * (x / sqrt(mean(x * x, -1, true) + 1e-5));
}
LazyTensor hand_layer_norm(const LazyTensor& x, const LazyTensor& w, const LazyTensor& b) {
  const LazyTensor centred = x - mean(x, -1, true);
  return centred / sqrt(mean(square(centred), -1, true) + 1e-5) * w + b;
}

TEST(DispatchBounds, OneKernel) {
  for (const Shape& shape : {Shape{33, 70}, Shape{4, 5, 1024}, Shape{1, 1024}, Shape{2, 3, 4, 5, 64}}) {
    SCOPED_TRACE(shape.to_string());
    const LazyTensor x = in(shape), w = in({shape.back()}), b = in({shape.back()}, 1);
    EXPECT_EQ(dispatches({softmax(x)}), 1);
    EXPECT_EQ(dispatches({hand_softmax(x)}), 1);
    EXPECT_EQ(dispatches({exp(x) / sum(exp(x), -1, true)}), 1);
    EXPECT_EQ(dispatches({log_softmax(x)}), 1);
    EXPECT_EQ(dispatches({x - logsumexp(x, -1, true)}), 1);
    EXPECT_EQ(dispatches({rms_norm(x, 1e-5, w)}), 1);
    EXPECT_EQ(dispatches({hand_rms_norm(x, w)}), 1);
    EXPECT_EQ(dispatches({layer_norm(x, 1e-5, w, b)}), 1);
    EXPECT_EQ(dispatches({hand_layer_norm(x, w, b)}), 1);
    EXPECT_EQ(dispatches({silu(x) * in(shape, 1)}), 1);
    EXPECT_EQ(dispatches({x / (1.0 + exp(-x)) * in(shape, 1)}), 1);
    EXPECT_EQ(dispatches({x * 0.5 * (1.0 + erf(x * 0.7071067811865476))}), 1);
  }
}

TEST(DispatchBounds, ChainOfThirtyWithTwoOutputs) {
  const LazyTensor x = in({33, 70});
  LazyTensor y = x, middle;
  for (int i = 0; i < 15; ++i) {
    y = tanh(y) * x;
    if (i == 7) middle = y;
  }
  EXPECT_EQ(dispatches({y, middle}), 1);
}

TEST(DispatchBounds, RotaryEmbeddingOfQueriesAndKeys) {
  const RotaryAngles angles{in({33, 16}), in({33, 16}, 1)};
  const LazyTensor q = in({2, 8, 33, 16}), k = in({2, 2, 33, 16});
  EXPECT_EQ(dispatches({apply_rotary(q, angles), apply_rotary(k, angles)}), 1);
  // As Hugging Face writes it.
  const auto rotated = [&](const LazyTensor& x) {
    const LazyTensor half = concatenate({-slice(x, -1, 8, {}), slice(x, -1, 0, 8)}, -1);
    return x * angles.cos + half * angles.sin;
  };
  EXPECT_EQ(dispatches({rotated(q), rotated(k)}), 1);
  const LazyTensor large = LazyTensor::zeros({1, 32, 512, 64}, DType::f32, kDevice).eval();
  const LazyTensor fewer = LazyTensor::zeros({1, 8, 512, 64}, DType::f32, kDevice).eval();
  const RotaryAngles wide{in({512, 64}), in({512, 64}, 1)};
  EXPECT_EQ(dispatches({apply_rotary(large, wide), apply_rotary(fewer, wide)}), 1);
}

// ---- gradients ----

TEST(DispatchBounds, Gradients) {
  const LazyTensor x = in({33, 70}), g = in({33, 70}, 1), w = in({70}, 1);
  const LazyTensor y = softmax(x).eval();  // the forward pass is over
  EXPECT_EQ(dispatches({y * (g - sum(y * g, -1, true))}), 1);
  EXPECT_EQ(dispatches({grad(sum(softmax(x) * g), x)}), 1);
  EXPECT_EQ(dispatches({grad(sum(hand_softmax(x) * g), x)}), 1);
  EXPECT_LE(dispatches(grad(sum(rms_norm(x, 1e-5, w) * g), {x, w})), 3);
  EXPECT_LE(dispatches(grad(sum(hand_rms_norm(x, w) * g), {x, w})), 3);
  EXPECT_LE(dispatches(grad(sum(layer_norm(x, 1e-5, w, in({70})) * g), {x, w})), 3);

  const LazyTensor logits = in({64, 1000});
  const LazyTensor targets = LazyTensor::from_vector(std::vector<std::int32_t>(64, 3), {64}, kDevice);
  const LazyTensor loss = mean_cross_entropy(logits, targets);
  EXPECT_LE(dispatches({loss, grad(loss, logits)}), 2);
}

// ---- LoRA ----

TEST(DispatchBounds, LowRankProductsHoweverWritten) {
  const LazyTensor x = in({2, 33, 64}), w = in({64, 96}), wt = in({96, 64}), a = in({64, 8}), b = in({8, 96});
  const LazyTensor at = in({8, 64}), bt = in({96, 8}), bias = in({96}), residual = in({2, 33, 96});
  const double s = 0.5;
  const Tensors forms{
      matmul(x, w) + s * matmul(matmul(x, a), b),
      matmul(matmul(x, a), b) * s + matmul(x, w),
      matmul(x, w) + matmul(s * matmul(x, a), b),
      bias + (matmul(x, w) + s * matmul(matmul(x, a), b)),
      matmul(x, transpose(wt)) + s * matmul(matmul(x, transpose(at)), transpose(bt)) + residual,
      silu(matmul(x, w) + lora_delta(x, a, b, s)),
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_LE(dispatches({forms[i]}), 2);
  }
  // What a product reads is scaled before it, and a bias between two products is added between them: behind
  // both it would change what overflows, and what is left where large numbers cancel.
  const Tensors longer{
      matmul(x, w) + matmul(matmul(x * s, a), b),
      matmul(x, w) + matmul(matmul(x, a * s), b),
      matmul(x, w) + matmul(matmul(x, a), s * b),
      matmul(x, w) + bias + s * matmul(matmul(x, a), b),
      s * matmul(matmul(x, a), b) + (matmul(x, w) + bias),
      residual + (matmul(x, w) + bias + s * matmul(matmul(x, a), b)),
  };
  for (std::size_t i = 0; i < longer.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_LE(dispatches({longer[i]}), 3);
  }
}

TEST(DispatchBounds, LowRankGradientsDoNotFormTheDelta) {
  const LazyTensor x = in({66, 64}), w = in({64, 96}), a = in({64, 8}), b = in({8, 96});
  const LazyTensor y = matmul(x, w) + lora_delta(x, a, b, 0.5);
  Tensors outputs = grad(sum(square(y)), {x, a, b});
  EXPECT_LE(dispatches(outputs), 7);
  const auto plan = plan_of(outputs);
  for (const PlanBuffer& buffer : plan->buffers) {
    EXPECT_NE(buffer.bytes, 64 * 96 * 4 * (buffer.role == BufferRole::arena ? 1 : -1)) << "A B in memory";
  }
}

/// The update of 448 matrices of two shapes.
int adamw_dispatches(const Shape& first, const Shape& second) {
  Tensors p, g, m, v, outputs;
  const LazyTensor one = LazyTensor::zeros(first, DType::f32, kDevice).eval();
  const LazyTensor two = LazyTensor::zeros(second, DType::f32, kDevice).eval();
  for (int i = 0; i < 448; ++i) {
    // Leaves of their own that share their memory.
    for (Tensors* list : {&p, &g, &m, &v}) list->push_back((i % 2 == 0 ? one : two).detach());
  }
  outputs.push_back(clip_grad_norm(g, 1.0));
  AdamWScalars scalars;
  scalars.learning_rate = 1e-3;
  scalars.step = 3;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const AdamWUpdate update = adamw_update(p[i], g[i], m[i], v[i], scalars);
    outputs.insert(outputs.end(), {update.param, update.m, update.v});
  }
  return dispatches(outputs);
}

TEST(DispatchBounds, AdamWWithClippingOverManyMatrices) {
  EXPECT_LE(adamw_dispatches({8, 48}, {64, 8}), 4);
  EXPECT_LE(adamw_dispatches({16, 8192}, {28672, 16}), 4);
}

// ---- attention ----

Tensors attention_step(std::int64_t length, bool by_hand) {
  const Shape shape{1, 8, length, 16};
  const LazyTensor q = LazyTensor::zeros(shape, DType::f32, kDevice).eval(), k = q + 1.0, v = q + 2.0;
  LazyTensor out;
  if (by_hand) {
    const LazyTensor i = expand_dims(arange(length, DType::i32, kDevice), -1);
    const LazyTensor seen = arange(length, DType::i32, kDevice) <= i;
    out = matmul(hand_softmax(where(seen, matmul(q, transpose(k)) * 0.25, -1e9)), v);
  } else {
    out = scaled_dot_product_attention(
        q, k, v, {.mask = causal_mask(length, length, 0, kDevice), .scale = 0.25, .enable_gqa = true});
  }
  Tensors outputs = grad(sum(square(out)), {q, k, v});
  outputs.push_back(out);
  return outputs;
}

TEST(DispatchBounds, AttentionScratchIsLinearInTheLength) {
  const ScopedSettings scope;
  for (bool by_hand : {false, true}) {
    SCOPED_TRACE(by_hand ? "by hand" : "by name");
    const std::int64_t shorter = plan_for(attention_step(1024, by_hand))->arena_bytes;
    const std::int64_t longer = plan_for(attention_step(4096, by_hand))->arena_bytes;
    EXPECT_LE(longer, 4 * shorter + 4096);
    EXPECT_LT(longer, std::int64_t{8} * 4096 * 4096 / 8);
  }
}

TEST(DispatchBounds, AttentionGradientsInAnyOrderAndAlone) {
  constexpr std::int64_t kLength = 2048;
  const ScopedSettings scope;
  const LazyTensor q = LazyTensor::zeros({1, 2, kLength, 16}, DType::f32, kDevice).eval().detach();
  const LazyTensor k = (q + 1.0).eval().detach(), v = (q + 2.0).eval().detach(),
                   go = (q + 3.0).eval().detach();
  const auto out = [&] { return matmul(softmax(matmul(q, transpose(k)) * 0.25), v); };
  const LazyTensor linear = sum(out() * go), square_loss = sum(square(out()));
  const Tensors all = grad(linear, {q, k, v});
  const Tensors outputs[] = {all,
                             {all[2], all[0]},
                             {linear, all[0], all[1], all[2]},
                             {all[0], all[1], all[2], linear},
                             grad(square_loss, {v}),
                             grad(square_loss, {q}),
                             grad(square_loss, {k, v})};
  for (const Tensors& some : outputs) EXPECT_LT(plan_for(some)->arena_bytes, kLength * kLength * 4 / 2);
}

// ---- Llama ----

/// A model of Llama-3.2-1B's layers, narrow.
ModelConfig narrow_1b() {
  ModelConfig config;
  config.vocab_size = 512;
  config.hidden_size = 128;
  config.intermediate_size = 512;
  config.num_hidden_layers = 16;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 2;
  config.head_dim = 64;
  config.max_position_embeddings = 1024;
  config.tie_word_embeddings = true;
  return config;
}

/// The plan of a training step as the trainer takes it, or of one without an update.
std::shared_ptr<const Plan> lora_step(const ModelConfig& config, std::int64_t batch, std::int64_t length,
                                      bool update) {
  Llama model(config, kDevice, 1);
  LoRAOptions options;
  options.rank = 16;
  apply_lora(model, options, {"all-linear"}, 7);
  model.set_dtype(DType::bf16);
  model.set_training(true);
  AdamW optimizer(model.trainable_parameters());
  const ScopedSettings scope;
  const auto tokens = static_cast<std::size_t>(batch * length);
  const std::vector<std::int32_t> ids(tokens, 3);
  LazyTensor loss = batch_loss(model, {batch, length, ids, ids, std::vector<float>(tokens, 1.0F)}).loss;
  Tensors grads = grad(loss, optimizer.inputs());
  if (!update) {
    grads.push_back(loss);
    return plan_for(grads);
  }
  LazyTensor norm = clip_grad_norm(grads, 1.0);
  optimizer.update(grads, 1e-3);
  Tensors outputs = optimizer.outputs();
  outputs.push_back(stack({loss, norm}, 0));
  grads.clear();
  loss = norm = LazyTensor();
  return plan_for(outputs);
}

TEST(DispatchBounds, LoraStepOfSixteenLayers) {
  EXPECT_LE(lora_step(narrow_1b(), 2, 256, true)->dispatch_count(), 450);
}

TEST(DispatchBounds, TokenOfSixteenLayers) {
  Llama model(narrow_1b(), kDevice, 1);
  model.freeze();
  model.set_dtype(DType::bf16);
  const EvaluationMode mode(model);
  const auto cache = model.make_cache(1024);
  const LazyTensor hidden = model.hidden_states(model.make_ids(std::vector<std::int32_t>{3}), cache.get());
  const LazyTensor logits = astype(model.logits(hidden), DType::f32);
  Tensors outputs = cache->state();
  outputs.push_back(logits);
  const ScopedSettings scope;
  EXPECT_LE(plan_for(outputs)->dispatch_count(), 84);
}

/// 8 x 512 tokens of a vocabulary of 128256 have 2.1 GB of logits in f32: they are never one tensor.
TEST(DispatchBounds, NothingOfALoraStepIsAboveOneGibibyte) {
  ModelConfig config = narrow_1b();
  config.vocab_size = 128256;
  config.hidden_size = 32;
  config.intermediate_size = 64;
  config.num_hidden_layers = 1;
  const auto plan = lora_step(config, 8, 512, false);
  constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
  for (const PlanBuffer& buffer : plan->buffers) EXPECT_LE(buffer.bytes, kGibibyte / 2);
  for (const ArenaSegment& segment : plan->arena_segments())
    EXPECT_LE(segment.end - segment.begin, kGibibyte);
}

enum class Lora { none, all, queries_and_values };

/// Dispatches that one more layer costs.
int layer_dispatches(Lora lora, bool backward) {
  const auto count = [&](std::int64_t layers) {
    ModelConfig config;
    config.vocab_size = 64;
    config.hidden_size = 32;
    config.intermediate_size = 88;
    config.num_hidden_layers = layers;
    config.num_attention_heads = 4;
    config.num_key_value_heads = 2;
    config.head_dim = 8;
    config.max_position_embeddings = 64;
    Llama model(config, kDevice, 1);
    if (lora != Lora::none) {
      const std::vector<std::string> all{"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                         "gate_proj", "up_proj", "down_proj"};
      LoRAOptions options;
      options.rank = 2;
      apply_lora(model, options, lora == Lora::all ? all : std::vector<std::string>{"q_proj", "v_proj"}, 7);
    }
    model.materialize();
    const LazyTensor hidden =
        model.hidden_states(model.make_ids(std::vector<std::int32_t>(14, 3), 2), nullptr);
    Tensors outputs{hidden};
    if (backward) {
      Tensors inputs;
      for (const Parameter& p : model.trainable_parameters()) inputs.push_back(*p.tensor);
      for (const LazyTensor& g : grad(sum(square(hidden)), inputs)) outputs.push_back(g);
    }
    return dispatches(outputs);
  };
  return count(3) - count(2);
}

TEST(DispatchBounds, LlamaLayers) {
  EXPECT_LE(layer_dispatches(Lora::none, false), 12);
  EXPECT_LE(layer_dispatches(Lora::all, false), 19);
  EXPECT_LE(layer_dispatches(Lora::queries_and_values, true), 45);
}

}  // namespace
}  // namespace caldera::testing
