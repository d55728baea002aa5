// Layers of a model as one loop: how long plans are, what they take, and which layers are alike.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/autodiff/autodiff.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/runtime.h"
#include "lm/adapters/lora.h"
#include "lm/models/llama.h"
#include "lm/models/registry.h"
#include "ops/random/uniform_normal.h"
#include "tests/support/devices.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_llama.h"
#include "training/objectives/loss.h"

namespace caldera::testing {
namespace {

class LoopedLayers : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }

  /// The loss, and its gradients with respect to all that is trained.
  static std::vector<LazyTensor> step(CausalLM& model) {
    std::vector<std::int32_t> ids;
    for (std::int32_t i = 0; i < 16; ++i) ids.push_back(i * 11 % 50);
    const std::vector<std::int32_t> targets(ids.rbegin(), ids.rend());
    const LazyTensor goal = LazyTensor::from_span(std::span(targets), Shape{2, 8}, GetParam());
    const LazyTensor loss = cross_entropy(model(model.make_ids(ids, 2)), goal);
    std::vector<LazyTensor> inputs;
    for (const Parameter& p : model.trainable_parameters()) inputs.push_back(*p.tensor);
    std::vector<LazyTensor> all = grad(loss, inputs);
    all.push_back(loss);
    return all;
  }

  static std::int64_t loops(const Plan& plan) {
    return std::ranges::count_if(plan.steps, [](const Step& each) { return each.name() == "scan"; });
  }

  /// In f32 to the bit on the CPU. Numbers of 16 bits are rounded where a layer ends.
  static void expect_the_same_as_unrolled(CausalLM& model) {
    model.set_layers_as_scan(LayersAsScan::never);
    const std::vector<LazyTensor> want = step(model);
    eval(want);
    model.set_layers_as_scan(LayersAsScan::always);
    const std::vector<LazyTensor> got = step(model);
    EXPECT_GT(loops(*plan_for(got)), 0);
    eval(got);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const std::vector<float> x = got[i].to_vector<float>(), y = want[i].to_vector<float>();
      float largest = 0;
      for (const float value : y) largest = std::max(largest, std::abs(value));
      const float allowed = largest * (model.dtype() == DType::f16          ? 4e-3F
                                       : model.dtype() == DType::bf16       ? 3e-2F
                                       : GetParam().kind == DeviceKind::cpu ? 0
                                                                            : 1e-5F);
      for (std::size_t e = 0; e < x.size(); ++e)
        ASSERT_LE(std::abs(x[e] - y[e]), allowed) << "result " << i << ", element " << e;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, LoopedLayers, ::testing::ValuesIn(tested_devices()), [](const auto& each) {
  return each.param.kind == DeviceKind::vulkan ? "vulkan" : "cpu";
});

TEST_P(LoopedLayers, PlansAreAsLongHoweverManyLayers) {
  for (const bool adapted : {false, true}) {
    std::vector<std::size_t> steps, forward_steps;
    std::vector<std::int64_t> arena;
    for (const std::int64_t layers : {2, 32}) {
      Llama model(tiny_llama({.layers = layers}), GetParam(), 3);
      if (adapted) apply_lora(model, {.rank = 2, .alpha = 4}, {"all-linear"}, 1);
      model.materialize();
      model.set_layers_as_scan(LayersAsScan::always);
      const auto plan = plan_for(step(model));
      steps.push_back(plan->steps.size());
      arena.push_back(plan->arena_bytes);
      const std::vector<std::int32_t> ids{3, 1, 4, 1, 5};
      forward_steps.push_back(plan_for({model(model.make_ids(ids))})->steps.size());
    }
    EXPECT_EQ(steps[0], steps[1]) << "adapted: " << adapted;
    EXPECT_EQ(forward_steps[0], forward_steps[1]);
    // Thirty layers more keep their inputs more: (2, 8, 16) floats.
    EXPECT_LE(arena[1] - arena[0], 30 * 2 * 8 * 16 * 4) << "adapted: " << adapted;
  }
}

TEST_P(LoopedLayers, WithAdaptersOfEveryKind) {
  LoRAOptions dora{.rank = 2, .alpha = 4};
  dora.use_dora = true;
  for (const LoRAOptions& options : {LoRAOptions{.rank = 2, .alpha = 4}, dora}) {
    Llama model(tiny_llama({.layers = 4, .initializer_range = 0.2}), GetParam(), 3);
    apply_lora(model, options, {"all-linear"}, 1);
    for (const Parameter& p : model.trainable_parameters())
      *p.tensor = *p.tensor + random_normal(p.tensor->shape(), 5, DType::f32, GetParam()) * 0.05;
    model.materialize();
    model.set_checkpointing(std::vector(4, std::optional(Keep())));
    expect_the_same_as_unrolled(model);
  }
}

TEST_P(LoopedLayers, WithSixteenBitWeights) {
  for (const DType type : {DType::f16, DType::bf16}) {
    if (!backend(GetParam()).supports(type)) continue;
    Llama model(tiny_llama({.layers = 3, .initializer_range = 0.2}), GetParam(), 3);
    model.freeze();
    apply_lora(model, {.rank = 2, .alpha = 4}, {"all-linear"}, 1);
    model.set_dtype(type);
    model.materialize();
    model.set_checkpointing(std::vector(3, std::optional(Keep())));
    expect_the_same_as_unrolled(model);
  }
}

TEST_P(LoopedLayers, OnQuantisedWeights) {
  CALDERA_REQUIRE_DATA(data, "gguf");
  for (const char* file : {"tiny-Q4_0.gguf", "tiny-Q8_0.gguf"}) {
    SCOPED_TRACE(file);
    const auto model = load_causal_lm(data / file, GetParam());
    apply_lora(*model, {.rank = 4, .alpha = 8}, {"all-linear"}, 3);
    for (const Parameter& p : model->trainable_parameters())
      *p.tensor = *p.tensor + random_normal(p.tensor->shape(), 5, DType::f32, GetParam()) * 0.05;
    model->materialize();
    model->set_training(true);
    model->set_checkpointing(
        std::vector(static_cast<std::size_t>(model->config().num_hidden_layers), std::optional(Keep())));
    expect_the_same_as_unrolled(*model);
  }
}

TEST_P(LoopedLayers, LayersThatDrawOrKeepWhatOthersDoNotAreInARow) {
  Llama model(tiny_llama({.layers = 4}), GetParam(), 3);
  apply_lora(model, {.rank = 2, .alpha = 4, .dropout = 0.3}, {"all-linear"}, 1);
  model.materialize();
  model.set_layers_as_scan(LayersAsScan::always);
  EXPECT_EQ(loops(*plan_for(step(model))), 0) << "dropout";
  model.set_training(false);
  EXPECT_EQ(loops(*plan_for(step(model))), 2) << "none in evaluation";
  model.set_training(true);
  Llama some(tiny_llama({.layers = 4}), GetParam(), 3);
  some.materialize();
  some.set_layers_as_scan(LayersAsScan::always);
  some.set_checkpointing({std::nullopt, Keep()});
  EXPECT_EQ(loops(*plan_for(step(some))), 0) << "some are checkpointed";
  some.set_checkpointing(std::vector(4, std::optional(keep::products())));
  EXPECT_EQ(loops(*plan_for(step(some))), 0) << "they keep something";
  some.set_checkpointing(std::vector(4, std::optional(Keep())));
  some.set_layers_as_scan(LayersAsScan::checkpointed);
  EXPECT_EQ(loops(*plan_for(step(some))), 2) << "as checkpointed";
  some.set_layers_as_scan(LayersAsScan::never);
  EXPECT_EQ(loops(*plan_for(step(some))), 0);
  some.set_checkpointing({});
  some.set_layers_as_scan(LayersAsScan::checkpointed);
  EXPECT_EQ(loops(*plan_for(step(some))), 0) << "nothing is checkpointed";
  some.set_layers_as_scan(LayersAsScan::always);
  EXPECT_EQ(loops(*plan_for(step(some))), 2);
}

TEST_P(LoopedLayers, CachesOfKeysAndValuesGoWithoutIt) {
  Llama model(tiny_llama({.layers = 3, .initializer_range = 0.2}), GetParam(), 3);
  model.materialize();
  model.set_training(false);
  const std::vector<std::int32_t> ids{3, 1, 4, 1, 5, 9};
  const std::vector<float> whole = model(model.make_ids(ids)).to_vector<float>();
  model.set_layers_as_scan(LayersAsScan::always);
  const auto cache = model.make_cache(6);
  const std::vector<float> cached = model(model.make_ids(ids), cache.get()).to_vector<float>();
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(cached[i], whole[i], 1e-4);
}

}  // namespace
}  // namespace caldera::testing
