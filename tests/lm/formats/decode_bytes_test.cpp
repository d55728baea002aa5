// What a token of a quantised model moves through the memory, by the counters of traces, against what its
// weights take in their file.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/explain/explanation.h"
#include "engine/runtime/profiler.h"
#include "lm/formats/convert/convert.h"
#include "lm/formats/gguf/gguf_file.h"
#include "lm/formats/weights/model_weights.h"
#include "lm/generate/generator.h"
#include "lm/models/registry.h"
#include "tests/support/devices.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

// Wide enough for weights to outweigh activations, as in models that are quantised; the table of tokens is
// the head as well, so that a token reads every matrix.
constexpr const char* kWideModel = R"({
  "model_type": "qwen3", "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 2,
  "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 2048,
  "max_position_embeddings": 64, "tie_word_embeddings": true
})";

/// The bytes of the tensors of a GGUF file, or of a folder.
std::int64_t bytes_in_file(const std::filesystem::path& path) {
  std::size_t bytes = 0;
  if (path.extension() == ".gguf") {
    const auto file = detail::GgufFile::open(path);
    for (const detail::GgufTensor& tensor : file.tensors()) bytes += tensor.bytes.size();
  } else {
    const ModelWeights weights = ModelWeights::open(path);
    for (const std::string& name : weights.names()) bytes += weights.bytes(name).size();
  }
  return static_cast<std::int64_t>(bytes);
}

/// The bytes that all steps of generating so many tokens move.
std::int64_t bytes_of_tokens(CausalLM& model, std::int64_t tokens) {
  const std::vector<std::int32_t> prompt{3, 1, 4, 1, 5};
  GenerateOptions options;
  options.max_tokens = tokens;
  const Profiler profiler;
  EXPECT_EQ(generate(model, prompt, options).ids.size(), static_cast<std::size_t>(tokens));
  std::int64_t bytes = 0;
  for (const auto& run : profiler.runs()) {
    const auto explained = nlohmann::json::parse(to_json(explain(*run)));
    for (const auto& step : explained.at("steps")) bytes += step.at("bytes").get<std::int64_t>();
  }
  return bytes;
}

struct FileType {
  ModelFormat format;
  const char* type;
};

class DecodeBytes : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

TEST_P(DecodeBytes, OfATokenAreAtMostAFifthMoreThanThoseOfTheWeights) {
  const TempFolder folder;
  folder.put("config.json", kWideModel);
  const auto random = make_causal_lm(folder.path(), Device::cpu(), 7);
  random->materialize();
  random->save(folder / "floats");
  for (const auto& [format, type] :
       {FileType{ModelFormat::gguf, "q8_0"}, FileType{ModelFormat::gguf, "q4_0"},
        FileType{ModelFormat::gguf, "q4_k"}, FileType{ModelFormat::mlx, "affine4"},
        FileType{ModelFormat::mlx, "affine8"}}) {
    const auto file = folder / (std::string(type) + (format == ModelFormat::gguf ? ".gguf" : ""));
    convert_model(folder / "floats", file, {.to = format, .type = type});
    const auto model = load_causal_lm(file, GetParam());
    // The prompt and the first token cost the same in both.
    const std::int64_t moved = (bytes_of_tokens(*model, 12) - bytes_of_tokens(*model, 4)) / 8;
    const double ratio = static_cast<double>(moved) / static_cast<double>(bytes_in_file(file));
    RecordProperty(type, std::to_string(ratio));
    EXPECT_LE(ratio, 1.2) << type << ": " << moved << " bytes a token";
    EXPECT_GE(ratio, 1) << type << ": every matrix is read";
  }
}

INSTANTIATE_TEST_SUITE_P(, DecodeBytes, ::testing::ValuesIn(tested_devices()), device_test_name);

}  // namespace
}  // namespace caldera::testing
