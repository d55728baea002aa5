// Model folders: what is saved is what is loaded, and what does not fit is refused with one line.
#include <filesystem>
#include <fstream>

#include "lm/adapters/lora.h"
#include "lm/formats/weights/model_weights.h"
#include "tests/lm/models/reference_llama.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;

class LlamaFilesTest : public ::testing::Test {
 protected:
  /// Writes the model's weights again after `change` has edited the list of tensors.
  template <class Change>
  void rewrite(Change change) {
    struct Entry {
      std::string name;
      DType dtype;
      Shape shape;
      std::vector<std::byte> bytes;
    };
    std::vector<Entry> entries;
    {
      const ModelWeights weights = ModelWeights::open(dir_);
      for (const std::string& name : weights.names()) {
        const auto bytes = weights.bytes(name);
        entries.push_back(
            {name, weights.info(name).dtype, weights.info(name).shape, {bytes.begin(), bytes.end()}});
      }
    }
    change(entries);
    std::vector<TensorToWrite> list;
    for (const Entry& e : entries) list.push_back({e.name, e.dtype, e.shape, e.bytes});
    write_safetensors(dir_ / "model.safetensors", list);
  }

  void expect_refused(const std::vector<std::string>& parts) {
    try {
      Llama::load(dir_, Device::cpu());
      FAIL() << "the folder was accepted";
    } catch (const FileError& e) {
      const std::string message = e.what();
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }

  TempFolder folder_;
  const fs::path dir_ = folder_ / "files";
};

Doubles logits_of(Llama& model) {
  return to_doubles(model.forward(model.make_ids(std::vector<std::int32_t>{1, 5, 9})));
}

TEST_F(LlamaFilesTest, RoundTrip) {
  for (const bool tied : {false, true}) {
    LlamaConfig config = small_config(4, 2);
    config.tie_word_embeddings = tied;
    config.attention_bias = !tied;
    Llama model(config, Device::cpu(), 1);
    randomize(model, 50);
    model.save(dir_);
    EXPECT_EQ(ModelWeights::open(dir_).contains("lm_head.weight"), !tied);
    const auto loaded = Llama::load(dir_, Device::cpu());
    EXPECT_EQ(loaded->config(), config);
    EXPECT_FALSE(loaded->is_training());
    EXPECT_EQ(logits_of(*loaded), logits_of(model));
  }
}

TEST_F(LlamaFilesTest, AnAdapterIsNoPartOfTheModel) {
  Llama model(small_config(4, 2), Device::cpu(), 1);
  const Doubles plain = logits_of(model);
  apply_lora(model, {.rank = 2}, {"all-linear"}, 1);
  randomize(model, 50);
  model.save(dir_);
  EXPECT_EQ(ModelWeights::open(dir_).names().size(), model.parameters().size() - 28);
  Llama::load(dir_, Device::cpu());
}

TEST_F(LlamaFilesTest, ShortFloatsAreWidened) {
  Llama model(small_config(4, 2), Device::cpu(), 1);
  randomize(model, 50);
  model.save(dir_);
  rewrite([](auto& entries) {
    for (auto& e : entries) {
      std::vector<std::byte> shorter(e.bytes.size() / 2);
      for (std::size_t i = 0; i < shorter.size(); i += 2)  // the upper half of an f32 is a truncated bf16
        std::copy_n(e.bytes.begin() + static_cast<std::ptrdiff_t>(2 * i + 2), 2,
                    shorter.begin() + static_cast<std::ptrdiff_t>(i));
      e.bytes = std::move(shorter);
      e.dtype = DType::bf16;
    }
  });
  const auto loaded = Llama::load(dir_, Device::cpu());
  EXPECT_EQ(loaded->parameters().front().tensor->dtype(), DType::f32);
  const Doubles expected = to_doubles(*model.parameters().front().tensor);
  const Doubles actual = to_doubles(*loaded->parameters().front().tensor);
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 0.01);
}

TEST_F(LlamaFilesTest, HarmlessTensorsAreSkipped) {
  LlamaConfig config = small_config(4, 2);
  config.tie_word_embeddings = true;
  Llama model(config, Device::cpu(), 1);
  model.save(dir_);
  rewrite([](auto& entries) {
    auto extra = entries.front();
    extra.name = "lm_head.weight";
    entries.push_back(extra);
    extra.name = "model.layers.0.self_attn.rotary_emb.inv_freq";
    entries.push_back(extra);
  });
  Llama::load(dir_, Device::cpu());
}

TEST_F(LlamaFilesTest, MissingTensor) {
  Llama(small_config(4, 2), Device::cpu(), 1).save(dir_);
  rewrite([](auto& entries) {
    std::erase_if(entries, [](const auto& e) { return e.name == "model.layers.1.mlp.up_proj.weight"; });
  });
  expect_refused({"model.layers.1.mlp.up_proj.weight", "(28, 20)", "missing"});
}

TEST_F(LlamaFilesTest, UnexpectedTensor) {
  Llama(small_config(4, 2), Device::cpu(), 1).save(dir_);
  rewrite([](auto& entries) {
    auto extra = entries.front();
    extra.name = "model.layers.0.self_attn.q_norm.weight";
    entries.push_back(extra);
  });
  expect_refused({"model.layers.0.self_attn.q_norm.weight", "unexpected"});
}

TEST_F(LlamaFilesTest, WrongShape) {
  Llama(small_config(4, 2), Device::cpu(), 1).save(dir_);
  rewrite([](auto& entries) {
    for (auto& e : entries)
      if (e.name == "model.layers.0.self_attn.k_proj.weight") e.shape = Shape{20, 12};
  });
  expect_refused({"model.layers.0.self_attn.k_proj.weight", "(20, 12)", "(12, 20)"});
}

TEST_F(LlamaFilesTest, MissingFolder) { expect_refused({"config.json"}); }

}  // namespace
}  // namespace caldera::testing
