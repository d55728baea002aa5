// EmbeddingModel: folders of sentence-transformers, against the model's own hidden states and plain loops.
#include "lm/embed/embedding_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lm/formats/safetensors/safetensors.h"
#include "lm/models/registry.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

using nlohmann::json;

// A BERT of bytes: 256 of them, bos and eos.
constexpr std::int64_t kHidden = 8;

class EmbeddingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    put("config.json", {{"architectures", {"BertModel"}},
                        {"model_type", "bert"},
                        {"vocab_size", 258},
                        {"hidden_size", kHidden},
                        {"intermediate_size", 12},
                        {"num_hidden_layers", 1},
                        {"num_attention_heads", 2},
                        {"max_position_embeddings", 16},
                        {"initializer_range", 0.7},
                        {"bos_token_id", 256},
                        {"eos_token_id", 257}});
    const auto model = make_text_model(dir_ / "config.json", Device::cpu(), 5);
    model->materialize();
    model->save(dir_);
  }
  void put(const std::string& file, const json& content) const {
    std::filesystem::create_directories((dir_ / file).parent_path());
    std::ofstream(dir_ / file) << content.dump();
  }
  void put_modules(const json& pooling) const {
    put("modules.json",
        json::array({{{"idx", 0}, {"path", ""}, {"type", "sentence_transformers.models.Transformer"}},
                     {{"idx", 1}, {"path", "1_Pooling"}, {"type", "sentence_transformers.models.Pooling"}}}));
    put("1_Pooling/config.json", pooling);
  }
  /// The hidden states of one text by itself, a row a token.
  std::vector<Doubles> states_of(EmbeddingModel& model, const std::string& text) const {
    std::vector<std::int32_t> ids{256};
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    if (model.encode(std::vector{text}).tokens[0] == static_cast<std::int64_t>(ids.size()) + 1)
      ids.push_back(257);
    const Doubles all = to_doubles(model.model().hidden_states(model.model().make_ids(ids)));
    std::vector<Doubles> rows;
    for (std::size_t i = 0; i < ids.size(); ++i)
      rows.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i * kHidden),
                        all.begin() + static_cast<std::ptrdiff_t>((i + 1) * kHidden));
    return rows;
  }
  static void expect_vector(const std::vector<float>& found, const Doubles& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-5) << i;
  }
  std::string refused() const {
    try {
      EmbeddingModel::from_pretrained(dir_, Device::cpu());
    } catch (const FileError& error) {
      return error.what();
    }
    return "accepted";
  }

  TempFolder folder_;
  const std::filesystem::path dir_ = folder_ / "model";
  const std::vector<std::string> texts_{"hello", "a", "longer text"};
};

TEST_F(EmbeddingTest, PoolsWhatTheFolderSays) {
  const std::vector<std::pair<const char*, Pooling>> modes{{"pooling_mode_mean_tokens", Pooling::mean},
                                                           {"pooling_mode_cls_token", Pooling::cls},
                                                           {"pooling_mode_max_tokens", Pooling::max},
                                                           {"pooling_mode_lasttoken", Pooling::last}};
  for (const auto& [field, pooling] : modes) {
    put_modules({{"word_embedding_dimension", kHidden}, {field, true}});
    EmbeddingModel model = EmbeddingModel::from_pretrained(dir_, Device::cpu());
    EXPECT_EQ(model.dimension(), kHidden);
    EXPECT_EQ(model.modules().pooling, pooling);
    const EncodedTexts encoded = model.encode(texts_, {.batch_size = 2});
    ASSERT_EQ(encoded.embeddings.size(), texts_.size());
    for (std::size_t t = 0; t < texts_.size(); ++t) {
      const std::vector<Doubles> rows = states_of(model, texts_[t]);
      Doubles expected = pooling == Pooling::last ? rows.back() : rows.front();
      for (std::size_t i = 0; i < kHidden; ++i)
        for (std::size_t r = 1; r < rows.size(); ++r) {
          if (pooling == Pooling::mean) expected[i] += rows[r][i];
          if (pooling == Pooling::max) expected[i] = std::max(expected[i], rows[r][i]);
        }
      if (pooling == Pooling::mean)
        for (double& v : expected) v /= static_cast<double>(rows.size());
      expect_vector(encoded.embeddings[t], expected);
    }
  }
}

TEST_F(EmbeddingTest, DenseLayersNormsAndPrompts) {
  put("modules.json",
      json::array({{{"path", ""}, {"type", "sentence_transformers.models.Transformer"}},
                   {{"path", "1_Pooling"}, {"type", "sentence_transformers.models.Pooling"}},
                   {{"path", "2_Dense"}, {"type", "sentence_transformers.models.Dense"}},
                   {{"path", "3_Normalize"}, {"type", "sentence_transformers.models.Normalize"}}}));
  put("1_Pooling/config.json", {{"pooling_mode", "cls"}});
  put("2_Dense/config.json", {{"in_features", kHidden},
                              {"out_features", 3},
                              {"bias", true},
                              {"activation_function", "torch.nn.modules.activation.Tanh"}});
  put("config_sentence_transformers.json",
      {{"prompts", {{"query", "q: "}}}, {"default_prompt_name", nullptr}});
  const Doubles weight = random_doubles(3 * kHidden, 1), bias = random_doubles(3, 2);
  const std::vector<float> w(weight.begin(), weight.end()), b(bias.begin(), bias.end());
  const std::vector<TensorToWrite> tensors{
      {"linear.weight", DType::f32, Shape{3, kHidden}, std::as_bytes(std::span(w))},
      {"linear.bias", DType::f32, Shape{3}, std::as_bytes(std::span(b))}};
  write_safetensors(dir_ / "2_Dense" / "model.safetensors", tensors);
  EmbeddingModel model = EmbeddingModel::from_pretrained(dir_, Device::cpu());
  EXPECT_EQ(model.dimension(), 3);
  const std::vector<std::string> one{"it"};
  const EncodedTexts encoded = model.encode(one, {.prompt_name = "query"});
  Doubles expected = linear_reference(states_of(model, "q: it").front(), weight, bias, kHidden, 3);
  double length = 0;
  for (double& v : expected) {
    v = std::tanh(v);
    length += v * v;
  }
  for (double& v : expected) v /= std::sqrt(length);
  expect_vector(encoded.embeddings[0], expected);
  EXPECT_THROW(model.encode(one, {.prompt_name = "document"}), ValueError);
}

TEST_F(EmbeddingTest, LongTextsAreCut) {
  put_modules({{"pooling_mode_cls_token", true}});
  EmbeddingModel model = EmbeddingModel::from_pretrained(dir_, Device::cpu());
  const std::vector<std::string> texts{std::string(40, 'x')};
  const EncodedTexts encoded = model.encode(texts);
  EXPECT_EQ(encoded.tokens[0], 16) << "the model's positions";
  EXPECT_EQ(encoded.left_out[0], std::ssize(model.tokenize(texts[0])) - 16);
  put("sentence_bert_config.json", {{"max_seq_length", 7}});
  EXPECT_EQ(EmbeddingModel::from_pretrained(dir_, Device::cpu()).encode(texts).tokens[0], 7);
}

TEST_F(EmbeddingTest, WhatIsNotComputedIsRefusedByName) {
  const auto names = [&](const json& pooling, const char* field) {
    put_modules(pooling);
    const std::string message = refused();
    EXPECT_NE(message.find(field), std::string::npos) << message;
  };
  names({{"pooling_mode_weightedmean_tokens", true}}, "pooling_mode_weightedmean_tokens");
  names({{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", true}}, "several");
  names({{"pooling_mode", "median"}}, "'median'");
  names(json::object(), "pooling_mode");
  put("modules.json", json::array({{{"path", "x"}, {"type", "sentence_transformers.models.CLIPModel"}}}));
  EXPECT_NE(refused().find("CLIPModel"), std::string::npos);
  put("modules.json", json::array({{{"path", "../x"}, {"type", "sentence_transformers.models.Pooling"}}}));
  EXPECT_NE(refused().find("'../x'"), std::string::npos);
  put("modules.json", json::object());
  EXPECT_NE(refused().find("not a list"), std::string::npos);
}

}  // namespace
}  // namespace caldera::testing
