// Adapters on quantised weights: gradients are those on the same weights as floats, in every format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/settings.h"
#include "lm/adapters/lora.h"
#include "lm/formats/convert/convert.h"
#include "lm/models/registry.h"
#include "tests/lm/formats/quantized_files.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

/// Rows of 256 are whole blocks of every format.
constexpr const char* kWide =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 48,
  "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "hidden_act": "silu", "tie_word_embeddings": false})";

/// How a base of some format is made of a folder of floats.
enum class Written : std::uint8_t { gguf, mlx, random_gguf, nf4, nf4_over_rows };

struct Base {
  const char* name;
  Written written;
};

void write_base(const Base& base, const std::filesystem::path& floats, const std::filesystem::path& path) {
  switch (base.written) {
    case Written::gguf:
      convert_model(floats, path, {.to = ModelFormat::gguf, .type = base.name});
      return;
    case Written::mlx:
      convert_model(floats, path, {.to = ModelFormat::mlx, .type = base.name});
      return;
    case Written::random_gguf:
      return write_random_gguf(floats, path, block_format(base.name));
    case Written::nf4:
      return write_nf4_folder(floats, path);
    case Written::nf4_over_rows:
      return write_nf4_folder(floats, path, 512);
  }
}

/// A model with an adapter on every projection, whose B is not zero, and a loss whose gradients are compared.
struct Adapted {
  Adapted(const std::filesystem::path& path, Device device, const LoRAOptions& options,
          DType dtype = DType::f32)
      : model(load_causal_lm(path, device)) {
    apply_lora(*model, options, {"all-linear"}, 1);
    model->set_training(false);
    std::uint64_t seed = 60;
    for (const Parameter& p : model->trainable_parameters())
      *p.tensor = *p.tensor + random_normal(p.tensor->shape(), seed++, DType::f32, device) * 0.05;
    for (const Parameter& p : model->parameters()) {
      *p.tensor = astype(*p.tensor, dtype);
      p.tensor->eval();
    }
    for (const Parameter& p : model->trainable_parameters()) trained.push_back(p.tensor);
  }

  LazyTensor loss() const {
    const std::vector<std::int32_t> ids{3, 17, 5, 40, 8, 21, 2, 33};
    const LazyTensor logits = model->forward(model->make_ids(ids));
    return sum(tanh(logits) * random_normal(logits.shape(), 61, DType::f32, logits.device()));
  }

  std::vector<std::vector<float>> gradients() const {
    std::vector<LazyTensor> inputs;
    for (const LazyTensor* tensor : trained) inputs.push_back(*tensor);
    std::vector<std::vector<float>> values;
    for (const LazyTensor& g : grad(loss(), inputs)) values.push_back(g.to_vector<float>());
    return values;
  }

  std::unique_ptr<CausalLM> model;
  std::vector<LazyTensor*> trained;
};

class QuantizedBases : public ::testing::TestWithParam<std::tuple<Base, Device>> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(std::get<1>(GetParam()));
    if (std::get<1>(GetParam()).kind == DeviceKind::vulkan && !settings().fusion)
      GTEST_SKIP() << "half a minute a format on a software device; tests/engine/quantized has the formats "
                      "without fusion";
    folder_.put("config.json", kWide);
    const auto model = make_causal_lm(folder_ / "config.json", Device::cpu(), 3);
    model->materialize();
    model->save(folder_ / "floats");
    const Base& base = std::get<0>(GetParam());
    const bool is_gguf = base.written == Written::gguf || base.written == Written::random_gguf;
    quantised_ = folder_ / (is_gguf ? "q.gguf" : "q");
    write_base(base, folder_ / "floats", quantised_);
    // The oracle: what the reader says the weights are, in f32, through plain products.
    convert_model(quantised_, dequantised(), {.to = ModelFormat::safetensors, .type = "f32"});
  }

  const std::filesystem::path& quantised() const { return quantised_; }
  std::filesystem::path dequantised() const { return folder_ / "dequantised"; }

 private:
  TempFolder folder_;
  std::filesystem::path quantised_;
};
INSTANTIATE_TEST_SUITE_P(
    Formats, QuantizedBases,
    ::testing::Combine(
        ::testing::Values(Base{"q8_0", Written::gguf}, Base{"q4_0", Written::gguf},
                          Base{"q4_k", Written::gguf}, Base{"affine4", Written::mlx},
                          Base{"affine8", Written::mlx}, Base{"nf4", Written::nf4},
                          Base{"nf4_over_rows", Written::nf4_over_rows}, Base{"q4_1", Written::random_gguf},
                          Base{"q5_0", Written::random_gguf}, Base{"q5_1", Written::random_gguf},
                          Base{"q2_k", Written::random_gguf}, Base{"q3_k", Written::random_gguf},
                          Base{"q5_k", Written::random_gguf}, Base{"q6_k", Written::random_gguf},
                          Base{"iq4_nl", Written::random_gguf}, Base{"mxfp4", Written::random_gguf}),
        ::testing::ValuesIn(tested_devices())),
    [](const auto& each) {
      return std::string(std::get<0>(each.param).name) +
             (std::get<1>(each.param).kind == DeviceKind::vulkan ? "_vulkan" : "_cpu");
    });

TEST_P(QuantizedBases, GradientsAreThoseOfTheDequantisedWeights) {
  const Device device = std::get<1>(GetParam());
  LoRAOptions dora{.rank = 3, .alpha = 6};
  dora.use_dora = true;
  for (const LoRAOptions& options : {LoRAOptions{.rank = 3, .alpha = 6}, dora}) {
    const Adapted on_quantised(quantised(), device, options);
    const Adapted on_floats(dequantised(), Device::cpu(), options);
    EXPECT_TRUE(on_quantised.model->has_quantized_weights());
    EXPECT_FALSE(on_floats.model->has_quantized_weights());
    const auto actual = on_quantised.gradients(), expected = on_floats.gradients();
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

/// Central differences of the model of the dequantised weights in f64, along the gradient of each matrix.
TEST_P(QuantizedBases, GradientsAreCentralDifferencesInF64) {
  const Adapted on_quantised(quantised(), std::get<1>(GetParam()), {.rank = 3, .alpha = 6});
  const Adapted in_f64(dequantised(), Device::cpu(), {.rank = 3, .alpha = 6}, DType::f64);
  const auto gradients = on_quantised.gradients();
  ASSERT_EQ(gradients.size(), in_f64.trained.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const LazyTensor at = *in_f64.trained[i];
    const LazyTensor gradient = astype(LazyTensor::from_vector(gradients[i], at.shape()), DType::f64);
    const LazyTensor along = gradient / sqrt(sum(square(gradient)));
    const auto loss_at = [&](double step) {
      *in_f64.trained[i] = at + along * step;
      return in_f64.loss().item<double>();
    };
    constexpr double kStep = 1e-5;
    const double numerical = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    *in_f64.trained[i] = at;
    EXPECT_NEAR(numerical, sum(gradient * along).item<double>(), 1e-4 * std::abs(numerical)) << i;
  }
}

}  // namespace
}  // namespace caldera::testing
