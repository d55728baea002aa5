// What keys and tensors of a GGUF file say of a model beside the usual: it is obeyed, or refused by name.
#include <gtest/gtest.h>

#include <map>

#include "lm/base/atomic_file.h"
#include "lm/formats/convert/convert.h"
#include "lm/formats/gguf/gguf_file.h"
#include "lm/formats/gguf/gguf_writer.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/lm/formats/random_folder.h"

namespace caldera::testing {
namespace {

using detail::GgufWritten;
using nlohmann::json;

class GgufMetadata : public ::testing::Test {
 protected:
  /// A file of a model of this family.
  void make(const char* type, const json& more = json::object()) {
    json config = smallest_config(type);
    config["num_key_value_heads"] = 4;
    config.update(more);
    make_random_folder(folder_ / "model", config);
    convert_model(folder_ / "model", original(), {.to = ModelFormat::gguf, .type = "f32"});
  }

  /// The file with other values for some keys, without some, and with further tensors: names and numbers.
  std::filesystem::path with(const std::map<std::string, GgufWritten>& keys,
                             const std::vector<std::string>& without = {},
                             const std::map<std::string, std::vector<float>>& tensors = {}) {
    const auto file = detail::GgufFile::open(original());
    detail::GgufWriter writer;
    for (const auto& [key, value] : file.metadata())
      if (!keys.contains(key) && std::ranges::find(without, key) == without.end()) writer.add(key, value);
    for (const auto& [key, value] : keys) writer.add(key, value);
    for (const detail::GgufTensor& tensor : file.tensors())
      writer.add_tensor(tensor.name, tensor.type->id, tensor.shape, [bytes = tensor.bytes] {
        return std::vector<std::byte>(bytes.begin(), bytes.end());
      });
    for (const auto& [name, values] : tensors)
      writer.add_tensor(name, detail::ggml::kF32, Shape{static_cast<std::int64_t>(values.size())}, [values] {
        const auto bytes = std::as_bytes(std::span(values));
        return std::vector<std::byte>(bytes.begin(), bytes.end());
      });
    StagedFiles staged;
    writer.write(staged, folder_ / "changed.gguf");
    staged.commit();
    return folder_ / "changed.gguf";
  }
  ModelConfig read(const std::filesystem::path& file) {
    return load_text_model(file, Device::cpu())->config();
  }
  void expect_refused(const std::filesystem::path& file, const std::string& name) {
    EXPECT_CONTAINS(error_of<FileError>([&] { load_text_model(file, Device::cpu()); }), name);
  }
  void expect_same(const std::filesystem::path& file) {
    EXPECT_LE(relative_error(said_by(file), said_by(original())), 1e-6);
  }
  std::filesystem::path original() const { return folder_ / "m.gguf"; }

  TempFolder folder_;
};

/// Rows of q and k are put in order by the number of heads, whichever way that is said.
TEST_F(GgufMetadata, NumbersByLayerAreTakenWhereTheyAreTheSame) {
  make("llama");
  expect_same(with({{"llama.attention.head_count", std::vector<std::int32_t>(4, 32)},
                    {"llama.attention.head_count_kv", std::vector<std::int32_t>(4, 4)},
                    {"llama.feed_forward_length", std::vector<std::int32_t>(4, 32)}}));
  for (const char* key :
       {"llama.attention.head_count", "llama.attention.head_count_kv", "llama.feed_forward_length"})
    expect_refused(with({{key, std::vector<std::int32_t>{4, 4, 8, 4}}}), std::string("key '") + key + "'");
  expect_refused(with({{"llama.attention.head_count_kv", std::vector<std::int32_t>{}}}), "head_count_kv");
}

TEST_F(GgufMetadata, UnknownKeysAreRefused) {
  make("llama");
  expect_refused(with({{"llama.attention.clamp_kqv", 8.0F}}), "key 'llama.attention.clamp_kqv'");
  expect_refused(with({{"llama.attention.causal", false}}), "key 'llama.attention.causal'");
  expect_refused(with({{"llama.expert_count", std::uint32_t{8}}}), "key 'llama.expert_count'");
  expect_refused(with({{"llama.rope.dimension_sections", std::vector<std::int32_t>{2, 2, 0, 0}}}),
                 "rope.dimension_sections");
  expect_same(with({{"llama.attention.clamp_kqv", 0.0F},
                    {"llama.attention.causal", true},
                    {"llama.tensor_data_layout", std::string("Meta AI original pth")},
                    {"llama.new_flag", false},
                    {"general.whatever", std::uint32_t{3}},
                    {"qwen2.unused", 1.5F}}));
}

TEST_F(GgufMetadata, StretchedPositions) {
  make("llama", {{"max_position_embeddings", 64}});
  const std::string scaling = "llama.rope.scaling.";
  EXPECT_EQ(read(with({{"llama.rope.scale_linear", 4.0F}})).rope_scaling.type, RopeType::linear);
  EXPECT_EQ(read(with({{scaling + "factor", 4.0F}})).rope_scaling.factor, 4)
      << "llama.cpp's default type is linear";
  EXPECT_EQ(
      read(with({{scaling + "factor", 4.0F}, {scaling + "type", std::string("none")}})).rope_scaling.type,
      RopeType::plain);
  const std::map<std::string, GgufWritten> yarn{{scaling + "factor", 4.0F},
                                                {scaling + "type", std::string("yarn")}};
  const auto and_also = [&](const std::string& key, const GgufWritten& value) {
    auto all = yarn;
    all.insert_or_assign(scaling + key, value);
    return with(all);
  };
  EXPECT_EQ(read(and_also("yarn_ext_factor", 1.0F)).rope_scaling.type, RopeType::yarn);
  expect_refused(and_also("yarn_ext_factor", 0.5F), "yarn_ext_factor");
  expect_refused(and_also("yarn_attn_factor", 2.0F), "yarn_attn_factor");
  expect_refused(and_also("yarn_log_multiplier", 0.1F), "yarn_log_multiplier");
  expect_refused(and_also("attn_factor", 1.5F), "attn_factor");
  expect_refused(and_also("type", std::string("longrope")), "rope.scaling.type");
  expect_refused(with(yarn, {}, {{"rope_freqs.weight", {1}}}), "rope.scaling.type");
}

TEST_F(GgufMetadata, LayersThatSlideMayBeListed) {
  make("gemma3_text", {{"sliding_window", 3}});
  const auto list = [](std::initializer_list<int> values) {
    // A list of bools, which our writer has no need of.
    detail::EncodedGgufValue value;
    const auto put = [&](auto number) {
      const auto bytes = std::as_bytes(std::span(&number, 1));
      value.bytes.insert(value.bytes.end(), bytes.begin(), bytes.end());
    };
    put(std::uint32_t{9});
    put(std::uint32_t{7});
    put(static_cast<std::uint64_t>(values.size()));
    for (const int v : values) put(static_cast<std::uint8_t>(v));
    return value;
  };
  const std::string key = "gemma3.attention.sliding_window_pattern";
  const ModelConfig listed = read(with({{key, list({1, 0, 1, 0})}}));
  EXPECT_TRUE(listed.layer(0).sliding && !listed.layer(1).sliding && listed.layer(2).sliding &&
              !listed.layer(3).sliding);
  const ModelConfig counted = read(with({{key, std::uint32_t{3}}}));
  EXPECT_TRUE(counted.layer(1).sliding && !counted.layer(2).sliding && counted.layer(3).sliding);
  expect_refused(with({{key, list({1, 0, 1})}}), key);
  expect_refused(with({{key, std::uint32_t{0}}}), key);
}

/// Biases of attention are known by their tensors in every family that may have them; what nothing reads is
/// refused.
TEST_F(GgufMetadata, BiasesAreNoticed) {
  const std::map<std::string, const char*> families{
      {"llama", "llama"},   {"granite", "granite"},    {"smollm3", "smollm3"}, {"qwen3", "qwen3"},
      {"gemma2", "gemma2"}, {"gemma3_text", "gemma3"}, {"olmo2", "olmo2"}};
  for (const auto& [type, architecture] : families) {
    SCOPED_TRACE(type);
    json more{{"head_dim", 4}};
    if (type.starts_with("gemma")) more["query_pre_attn_scalar"] = 4;
    make(type.c_str(), more);
    std::map<std::string, std::vector<float>> biases;
    for (int layer = 0; layer < 4; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      biases[block + "attn_q.bias"] = std::vector<float>(128, 0.5F);
      biases[block + "attn_k.bias"] = biases[block + "attn_v.bias"] = std::vector<float>(16, -0.5F);
      biases[block + "attn_output.bias"] = std::vector<float>(64, 0.25F);
    }
    const auto file = with({}, {}, biases);
    EXPECT_GT(relative_error(said_by(file), said_by(original())), 1e-3) << "they count";
    biases.erase("blk.2.attn_output.bias");
    expect_refused(with({}, {}, biases), "layers.2.self_attn.o_proj.bias");
    expect_refused(with({}, {}, {{"blk.3.ffn_gate.bias", std::vector<float>(32, 1)}}),
                   "layers.3.mlp.gate_proj.bias");
    expect_refused(with({}, {}, {{"blk.1.attn_q.scale", {2}}}), "blk.1.attn_q.scale");
  }
  // Of zeros they change nothing.
  make("qwen2");
  expect_refused(with({}, {}, {{"blk.0.attn_output.bias", std::vector<float>(64, 1)}}), "o_proj.bias");
  expect_same(with({}, {}, {{"blk.0.attn_output.bias", std::vector<float>(64, 0)}}));
}

/// Without the key llama.cpp scales scores as other families do.
TEST_F(GgufMetadata, GraniteWithoutAScale) {
  make("granite", {{"attention_multiplier", 1 / std::sqrt(2.0)}});
  expect_same(with({}, {"granite.attention.scale"}));
}

}  // namespace
}  // namespace caldera::testing
