// The eager EmbeddingModel: plain loops, and the lazy model underneath.
#include <caldera/v1.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lm/models/registry.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

TEST(EagerEmbedding, PoolsAndNormalizes) {
  const v1::Tensor hidden({1.0F, 2.0F, 3.0F, 5.0F, 100.0F, 100.0F, 7.0F, 7.0F, 7.0F, 7.0F, 7.0F, 7.0F},
                          {2, 3, 2});
  const v1::Tensor mask({1.0F, 1.0F, 0.0F, 0.0F, 0.0F, 0.0F}, {2, 3});
  EXPECT_EQ(v1::mean_pool(hidden, mask).to_vector<float>(), (std::vector<float>{2, 3.5F, 0, 0}));
  const v1::Tensor ids({1, 1, 0, 0, 0, 0}, {2, 3});
  EXPECT_EQ(v1::mean_pool(hidden, ids).to_vector<float>(), (std::vector<float>{2, 3.5F, 0, 0}));
  EXPECT_THROW(v1::mean_pool(hidden, v1::Tensor({1.0F, 1.0F}, {2, 1})), ShapeError);
  const std::vector<float> unit =
      v1::normalize(v1::Tensor({3.0F, -4.0F, 0.0F, 0.0F}, {2, 2})).to_vector<float>();
  EXPECT_NEAR(unit[0], 0.6, 1e-6);
  EXPECT_NEAR(unit[1], -0.8, 1e-6);
  EXPECT_EQ(unit[2], 0);
}

TEST(EagerEmbedding, EncodesAsTheLazyModelDoes) {
  const TempFolder folder;
  const std::filesystem::path dir = folder / "model";
  std::filesystem::create_directories(dir);
  std::ofstream(dir / "config.json") << nlohmann::json{
      {"architectures", {"BertModel"}},
      {"model_type", "bert"},
      {"vocab_size", 258},
      {"hidden_size", 8},
      {"intermediate_size", 12},
      {"num_hidden_layers", 1},
      {"num_attention_heads", 2},
      {"max_position_embeddings", 16},
      {"initializer_range", 0.7},
      {"bos_token_id", 256},
      {"eos_token_id", 257}}.dump();
  const auto weights = make_text_model(dir / "config.json", Device::cpu(), 5);
  weights->materialize();
  weights->save(dir);

  const std::vector<std::string> texts{"hello", "a", "longer text"};
  v1::EmbeddingModel model = v1::EmbeddingModel::from_pretrained(dir);
  EXPECT_EQ(model.dimension(), 8);
  const v1::Tensor found = model.encode(texts);
  EXPECT_EQ(found.shape(), (Shape{3, 8}));
  v1::EmbeddingConfig config;
  config.model = dir;
  config.normalize = false;
  config.pooling = Pooling::cls;
  config.batch_size = 2;
  const std::vector<float> plain = v1::EmbeddingModel::from_config(config).encode(texts).to_vector<float>();
  EmbeddingModel lazy = EmbeddingModel::from_pretrained(dir, Device::cpu());
  const EncodedTexts mean = lazy.encode(texts);
  const EncodedTexts cls = lazy.encode(texts, {.pooling = Pooling::cls});
  for (std::size_t t = 0; t < texts.size(); ++t) {
    double square = 0;
    for (const float x : mean.embeddings[t]) square += static_cast<double>(x) * x;
    EXPECT_GT(std::abs(square - 1), 1e-2);  // or it would not show that lengths were changed
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_NEAR(found.to_vector<float>()[t * 8 + i], mean.embeddings[t][i] / std::sqrt(square), 2e-6);
      EXPECT_NEAR(plain[t * 8 + i], cls.embeddings[t][i], 2e-5);
    }
  }
  EXPECT_EQ(model.encode({}).shape(), (Shape{0, 8}));
}

TEST(EagerEmbedding, SaysWhatIsWrong) {
  const TempFolder folder;
  const auto kind_of = [](const v1::EmbeddingConfig& config) {
    try {
      v1::EmbeddingModel::from_config(config);
    } catch (const v1::ModelError& error) {
      return error.kind();
    }
    return v1::ModelError::Kind::IncompatibleVersion;  // no error at all
  };
  v1::EmbeddingConfig config;
  config.model = folder / "nothing";
  EXPECT_EQ(kind_of(config), v1::ModelError::Kind::FileNotFound);
  config.model = folder / "empty";
  std::filesystem::create_directories(config.model);
  EXPECT_EQ(kind_of(config), v1::ModelError::Kind::InvalidFormat);
  config.batch_size = 0;
  EXPECT_EQ(kind_of(config), v1::ModelError::Kind::InvalidConfig);
}

}  // namespace
}  // namespace caldera::testing
