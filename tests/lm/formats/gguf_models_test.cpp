// Models in files of llama.cpp's quantiser, against logits of an independent dequantisation, and their
// adapters.
#include <cstring>
#include <fstream>

#include "engine/autodiff/autodiff.h"
#include "lm/adapters/lora.h"
#include "lm/embed/sentence_modules.h"
#include "lm/formats/convert/convert.h"
#include "lm/formats/model_files.h"
#include "lm/formats/safetensors/safetensors.h"
#include "lm/models/registry.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_data.h"
#include "training/objectives/loss.h"

namespace caldera::testing {
namespace {

std::vector<std::int32_t> read_ids(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; in >> id;) ids.push_back(id);
  return ids;
}

Doubles read_floats(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  Doubles values;
  for (float value = 0; in.read(reinterpret_cast<char*>(&value), sizeof(value));) values.push_back(value);
  return values;
}

/// The bytes that a model's weights take, quantised or not.
std::int64_t weight_bytes(Module& model) {
  class Counter final : public ParameterVisitor {
   public:
    void parameter(const std::string&, Weight& weight) override {
      bytes += weight.is_quantized() ? weight.quantized.bytes()
                                     : weight.tensor.numel() * static_cast<std::int64_t>(sizeof(float));
    }
    std::int64_t bytes = 0;
  };
  Counter counter;
  model.visit({}, counter);
  return counter.bytes;
}

class GgufModels : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

TEST_P(GgufModels, HaveTheLogitsOfTheirDequantisation) {
  CALDERA_REQUIRE_DATA(data, "gguf");
  const std::vector<std::int32_t> ids = read_ids(data / "ids.txt");
  for (const char* type : {"F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0"}) {
    SCOPED_TRACE(type);
    const std::string name = std::string("tiny-") + type;
    const auto file = data / (name + ".gguf");
    const auto model = load_causal_lm(file, GetParam());
    expect_close((*model)(model->make_ids(ids)), read_floats(data / (name + ".logits.f32")), 1e-4, name);
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(file));
    if (std::string(type) != "F16") {
      EXPECT_LE(weight_bytes(*model), size) << "quantised weights stay as small as they are in the file";
    }
    EXPECT_EQ(model->config().bos_token_id, 1);
    EXPECT_EQ(model->config().rms_norm_eps, 1e-5);
  }
}

/// An adapter on a quantised model learns what one on the same weights as floats does.
TEST_P(GgufModels, TrainAdapters) {
  CALDERA_REQUIRE_DATA(data, "gguf");
  const TempFolder folder;
  convert_model(data / "tiny-Q4_K_M.gguf", folder / "floats", {.to = ModelFormat::safetensors});
  const std::vector<std::int32_t> ids = read_ids(data / "ids.txt");
  std::vector<Doubles> found;
  for (const auto& path : {data / "tiny-Q4_K_M.gguf", folder / "floats"}) {
    const auto model = load_causal_lm(path, GetParam());
    EXPECT_EQ(model->parameter_count(), 1'443'072);
    apply_lora(*model, {.rank = 4, .alpha = 8}, {"all-linear"}, 3);
    for (const Parameter& p : model->trainable_parameters())  // B, which begins as zeros
      if (p.name.ends_with("lora_B.weight"))
        *p.tensor = make_tensor(random_doubles(p.tensor->numel(), 5, -0.05, 0.05), p.tensor->shape(),
                                DType::f32, GetParam());
    const std::vector<std::int32_t> targets(ids.rbegin(), ids.rend());
    const LazyTensor loss = cross_entropy((*model)(model->make_ids(ids)), model->make_ids(targets));
    std::vector<LazyTensor> factors;
    for (const Parameter& p : model->trainable_parameters()) factors.push_back(*p.tensor);
    EXPECT_EQ(factors.size(), 28u);
    Doubles all = to_doubles(loss);
    for (const LazyTensor& gradient : grad(loss, factors))
      for (const double g : to_doubles(gradient)) all.push_back(g);
    found.push_back(std::move(all));
  }
  ASSERT_EQ(found[0].size(), found[1].size());
  for (std::size_t i = 0; i < found[0].size(); ++i)
    ASSERT_NEAR(found[0][i], found[1][i], 1e-4 * std::max(1.0, std::abs(found[1][i]))) << i;
}

/// What llama.cpp's converter does to weights is undone: files that tests/golden/weights/gguf_models.py
/// wrote, and the folders that it made them of.
TEST(GgufFamilies, HaveTheWeightsOfTheirFolders) {
  for (const char* name : {"gpt2", "gpt-oss", "gemma3", "qwen3-moe"}) {
    SCOPED_TRACE(name);
    const auto gguf =
        ModelFiles::open(std::filesystem::path("tests/golden/weights") / (std::string(name) + ".gguf"));
    const auto folder = ModelFiles::open(std::filesystem::path("tests/golden/models") / name);
    EXPECT_EQ(gguf.names().size(), folder.names().size());
    for (const std::string& stored : folder.names()) {
      // The first folders of GPT-2 leave out the module that holds all.
      const std::string full = gguf.contains(stored) ? stored : "transformer." + stored;
      ASSERT_EQ(gguf.weight(full).shape(), folder.weight(stored).shape()) << stored;
      const std::vector<float> found = gguf.weight(full).values();
      const std::vector<float> expected = folder.weight(stored).values();
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(found[i], expected[i], 1e-6) << stored << " " << i;
    }
  }
}

/// Those whose configuration a GGUF file can say whole.
TEST_P(GgufModels, HaveTheLogitsOfTheirFolders) {
  for (const char* name : {"gpt2", "gpt-oss"}) {
    SCOPED_TRACE(name);
    const auto golden =
        SafetensorsFile::open(std::filesystem::path("tests/golden/models") / name / "golden.safetensors");
    const auto bytes = golden.bytes("ids");
    std::vector<std::int32_t> ids(bytes.size() / sizeof(std::int32_t));
    std::memcpy(ids.data(), bytes.data(), bytes.size());
    const std::vector<float> logits = golden.read_f32("base_logits");
    const auto model = load_causal_lm(
        std::filesystem::path("tests/golden/weights") / (std::string(name) + ".gguf"), GetParam());
    expect_close((*model)(model->make_ids(ids, golden.info("ids").shape[0])),
                 Doubles(logits.begin(), logits.end()), 1e-4, name);
  }
}

/// Encoders, with what says how their tokens are pooled.
TEST_P(GgufModels, OfEncodersHaveTheHiddenStatesOfTheirFolders) {
  for (const char* name : {"bert", "xlm-roberta", "modernbert", "embedding-gemma"}) {
    SCOPED_TRACE(name);
    const auto golden =
        SafetensorsFile::open(std::filesystem::path("tests/golden/models") / name / "golden.safetensors");
    const auto bytes = golden.bytes("ids");
    std::vector<std::int32_t> ids(bytes.size() / sizeof(std::int32_t));
    std::memcpy(ids.data(), bytes.data(), bytes.size());
    const std::vector<float> hidden = golden.read_f32("base_hidden");
    const auto file = std::filesystem::path("tests/golden/weights") / (std::string(name) + ".gguf");
    const auto model = load_text_model(file, GetParam());
    expect_close(model->hidden_states(model->make_ids(ids, golden.info("ids").shape[0])),
                 Doubles(hidden.begin(), hidden.end()), 1e-4, name);
    EXPECT_EQ(SentenceModules::from_folder(file).pooling,
              std::string(name) == "embedding-gemma" ? Pooling::mean : Pooling::cls);
    EXPECT_THROW(load_causal_lm(file, GetParam()), FileError);
  }
}

/// The folders that have no form as GGUF here say so.
TEST(GgufFamilies, EncodersAreNotWritten) {
  const TempFolder folder;
  for (const char* name : {"bert", "modernbert", "embedding-gemma"})
    EXPECT_THROW(convert_model(std::filesystem::path("tests/golden/models") / name, folder / "x.gguf",
                               {.to = ModelFormat::gguf}),
                 FileError)
        << name;
}

INSTANTIATE_TEST_SUITE_P(, GgufModels, ::testing::ValuesIn(tested_devices()), device_test_name);

}  // namespace
}  // namespace caldera::testing
