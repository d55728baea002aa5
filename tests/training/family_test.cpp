// Qwen2 against golden values of plain PyTorch (tests/golden/models/qwen2.py): logits, hidden states, and the
// gradients of an adapter in PEFT's format.
#include <cstring>
#include <filesystem>

#include "engine/autodiff/autodiff.h"
#include "ops/ops.h"
#include "tests/support/devices.h"
#include "tests/training/reference.h"
#include "training/io/safetensors.h"
#include "training/lora/lora.h"
#include "training/models/registry.h"
#include "training/nn/loss.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-4;

/// A folder that tests/golden/models/qwen2.py made.
class GoldenModel {
 public:
  GoldenModel(const char* name, Device device)
      : dir_(fs::path("tests/golden/models") / name),
        model_(load_causal_lm(dir_, device)),
        golden_(SafetensorsFile::open(dir_ / "golden.safetensors")) {}

  CausalLM& model() { return *model_; }
  fs::path adapter() const { return dir_ / "adapter"; }
  Doubles values(const std::string& name) const {
    const std::vector<float> floats = golden_.read_f32(name);
    return {floats.begin(), floats.end()};
  }
  /// "ids" or "targets", (2, 9).
  std::vector<std::int32_t> tokens(const std::string& name) const {
    const auto bytes = golden_.bytes(name);
    std::vector<std::int32_t> ids(bytes.size() / sizeof(std::int32_t));
    std::memcpy(ids.data(), bytes.data(), bytes.size());
    return ids;
  }

 private:
  fs::path dir_;
  std::unique_ptr<CausalLM> model_;
  SafetensorsFile golden_;
};

class Qwen2Test : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

constexpr const char* kModels[] = {"qwen2-untied", "qwen2-tied"};

TEST_P(Qwen2Test, GoldenLogits) {
  for (const char* name : kModels) {
    GoldenModel golden(name, GetParam());
    CausalLM& model = golden.model();
    EXPECT_EQ(model.config().model_type, "qwen2");
    const std::vector<std::int32_t> ids = golden.tokens("ids");
    expect_close(model(model.make_ids(ids, 2)), golden.values("base_logits"), kTolerance, name);

    load_adapter(model, golden.adapter());
    const LazyTensor hidden = model.hidden_states(model.make_ids(ids, 2));
    expect_close(hidden, golden.values("hidden"), kTolerance, name);
    expect_close(model.logits(hidden), golden.values("logits"), kTolerance, name);
  }
}

TEST_P(Qwen2Test, GoldenGradientsOfEveryFactor) {
  for (const char* name : kModels) {
    GoldenModel golden(name, GetParam());
    CausalLM& model = golden.model();
    load_adapter(model, golden.adapter());
    const LazyTensor targets = LazyTensor::from_vector(golden.tokens("targets"), Shape{2, 9}, GetParam());
    const LazyTensor loss = cross_entropy(model(model.make_ids(golden.tokens("ids"), 2)), targets);
    const std::vector<Parameter> factors = model.trainable_parameters();
    ASSERT_EQ(factors.size(), 28U);
    std::vector<LazyTensor> inputs;
    for (const Parameter& p : factors) inputs.push_back(*p.tensor);
    const std::vector<LazyTensor> grads = grad(loss, inputs);
    expect_close(loss, golden.values("loss"), kTolerance, name);
    for (std::size_t i = 0; i < factors.size(); ++i) {
      EXPECT_EQ(grads[i].shape(), inputs[i].shape());
      expect_close(grads[i], golden.values("base_model.model." + factors[i].name), kTolerance,
                   factors[i].name);
    }
  }
}

TEST_P(Qwen2Test, DecodingWithTheCacheEqualsTheWholePass) {
  GoldenModel golden("qwen2-untied", GetParam());
  CausalLM& model = golden.model();
  load_adapter(model, golden.adapter());
  model.set_training(false);
  const std::vector<std::int32_t> ids = golden.tokens("ids");
  const Doubles whole = golden.values("logits");
  const std::int64_t vocab = model.config().vocab_size;
  const auto cache = model.make_cache(12, 2);
  std::int64_t position = 0;
  for (const std::int64_t length : {4, 1, 1, 2, 1}) {
    std::vector<std::int32_t> fed;
    Doubles expected;
    for (std::int64_t b = 0; b < 2; ++b) {
      fed.insert(fed.end(), ids.begin() + b * 9 + position, ids.begin() + b * 9 + position + length);
      expected.insert(expected.end(), whole.begin() + (b * 9 + position) * vocab,
                      whole.begin() + (b * 9 + position + length) * vocab);
    }
    const LazyTensor logits = model(model.make_ids(fed, 2), cache.get());
    std::vector<LazyTensor> outputs = cache->state();
    outputs.push_back(logits);
    eval(outputs);
    expect_close(logits, expected, kTolerance, "position " + std::to_string(position));
    position += length;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Qwen2Test, ::testing::ValuesIn(tested_devices()), device_test_name);

}  // namespace
}  // namespace caldera::testing
