// Adapters on quantised weights: gradients are those on the same weights as floats, in every format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "lm/adapters/lora.h"
#include "lm/formats/convert/convert.h"
#include "lm/models/registry.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

/// Rows of 256 are whole blocks of every format.
constexpr const char* kWide =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 48,
  "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "hidden_act": "silu", "tie_word_embeddings": false})";

struct Base {
  const char* name;
  ModelFormat format;
};

class QuantizedBases : public ::testing::TestWithParam<std::tuple<Base, Device>> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(std::get<1>(GetParam())); }

  static std::vector<std::vector<float>> gradients(const std::filesystem::path& path, Device device,
                                                   LoRAOptions options, bool& is_quantized) {
    const auto model = load_causal_lm(path, device);
    apply_lora(*model, options, {"all-linear"}, 1);
    model->set_training(false);
    std::uint64_t seed = 60;
    std::vector<LazyTensor> inputs;
    for (const Parameter& p : model->trainable_parameters()) {
      *p.tensor = *p.tensor + random_normal(p.tensor->shape(), seed++, DType::f32, device) * 0.05;
      p.tensor->eval();
      inputs.push_back(*p.tensor);
    }
    is_quantized = model->has_quantized_weights();
    const std::vector<std::int32_t> ids{3, 17, 5, 40, 8, 21, 2, 33};
    const LazyTensor logits = model->forward(model->make_ids(ids));
    const LazyTensor along = random_normal(logits.shape(), 61, DType::f32, device);
    const LazyTensor loss = sum(tanh(logits) * along);
    std::vector<std::vector<float>> values;
    for (const LazyTensor& g : grad(loss, inputs)) values.push_back(g.to_vector<float>());
    return values;
  }
};
INSTANTIATE_TEST_SUITE_P(
    Formats, QuantizedBases,
    ::testing::Combine(::testing::Values(Base{"q8_0", ModelFormat::gguf}, Base{"q4_0", ModelFormat::gguf},
                                         Base{"q4_k", ModelFormat::gguf}, Base{"affine4", ModelFormat::mlx},
                                         Base{"affine8", ModelFormat::mlx}),
                       ::testing::ValuesIn(tested_devices())),
    [](const auto& each) {
      return std::string(std::get<0>(each.param).name) +
             (std::get<1>(each.param).kind == DeviceKind::vulkan ? "_vulkan" : "_cpu");
    });

TEST_P(QuantizedBases, GradientsAreThoseOfTheDequantisedWeights) {
  const auto [base, device] = GetParam();
  const TempFolder folder;
  folder.put("config.json", kWide);
  const auto model = make_causal_lm(folder / "config.json", Device::cpu(), 3);
  model->materialize();
  model->save(folder / "floats");
  const std::filesystem::path quantised = folder / (base.format == ModelFormat::gguf ? "q.gguf" : "q");
  convert_model(folder / "floats", quantised, {.to = base.format, .type = base.name});
  // The oracle: what the reader says the weights are, in f32, through plain products.
  convert_model(quantised, folder / "dequantised", {.to = ModelFormat::safetensors, .type = "f32"});
  LoRAOptions dora{.rank = 3, .alpha = 6};
  dora.use_dora = true;
  for (const LoRAOptions& options : {LoRAOptions{.rank = 3, .alpha = 6}, dora}) {
    bool is_quantized = false, is_oracle_quantized = true;
    const auto actual = gradients(quantised, device, options, is_quantized);
    const auto expected = gradients(folder / "dequantised", device, options, is_oracle_quantized);
    EXPECT_TRUE(is_quantized);
    EXPECT_FALSE(is_oracle_quantized);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      float largest = 0;
      for (const float value : expected[i]) largest = std::max(largest, std::abs(value));
      ASSERT_GT(largest, 0) << i;
      for (std::size_t k = 0; k < actual[i].size(); ++k)
        ASSERT_NEAR(actual[i][k], expected[i][k], 2e-4F * largest) << "parameter " << i << " element " << k;
    }
  }
}

}  // namespace
}  // namespace caldera::testing
