// Models, adapters on them, generation and its parts in the eager API: golden logits of a trained model,
// plain formulas, and the lazy API underneath.
#include <caldera/v1.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "lm/adapters/lora.h"
#include "lm/models/registry.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/eager/oracle.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_data.h"

namespace caldera::v1 {
namespace {

using testing::error_of;
using testing::TempFolder;

constexpr const char* kQwen =
    R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 258, "eos_token_id": 257,
  "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 48, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
  "hidden_act": "silu", "tie_word_embeddings": true, "initializer_range": 0.4})";

Tensor ids_of(const std::vector<std::int32_t>& ids, std::int64_t batch = 1) {
  return {ids, Shape{batch, static_cast<std::int64_t>(ids.size()) / batch}};
}

TEST(EagerModelConfig, ReadsAndRefuses) {
  const ModelConfig config = ModelConfig::from_json(kQwen);
  EXPECT_EQ(config.head_dim(), 6);
  EXPECT_EQ(config.num_kv_heads(), 2);
  EXPECT_EQ(config.num_heads(), 4);
  EXPECT_NO_THROW(config.validate());
  const auto kind = [](auto&& call) {
    try {
      call();
    } catch (const ModelError& error) {
      return error.kind();
    }
    return ModelError::Kind::ShapeMismatch;  // which nothing here throws
  };
  EXPECT_EQ(kind([] { ModelConfig::from_json("{"); }), ModelError::Kind::InvalidConfig);
  EXPECT_EQ(kind([] { ModelConfig::from_json(R"({"model_type": "unheard of"})"); }),
            ModelError::Kind::InvalidConfig);
  EXPECT_EQ(kind([] { ModelConfig::from_file("/no/such/file"); }), ModelError::Kind::FileNotFound);
}

TEST(EagerLanguageModel, GivesTheLogitsOfTheTrainedModel) {
  CALDERA_REQUIRE_DATA(dir, "stories260K");
  const LanguageModel model = ModelLoader(dir).load_with_validation();
  std::vector<std::int32_t> ids;
  std::ifstream id_file(dir / "greedy_token_ids_200.txt");
  for (std::int32_t id = 0; id_file >> id;) ids.push_back(id);
  ASSERT_GE(ids.size(), 200U);
  std::vector<float> golden(std::size_t{200} * 512);
  std::ifstream(dir / "greedy_logits_200x512.f32", std::ios::binary)
      .read(reinterpret_cast<char*>(golden.data()),
            static_cast<std::streamsize>(golden.size() * sizeof(float)));
  ids.resize(200);
  const std::vector<float> logits = model.forward(ids_of(ids)).to_vector<float>();
  ASSERT_EQ(logits.size(), golden.size());
  for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], golden[i], 2e-3) << i;
  const ModelInfo info = ModelLoader(dir).inspect();
  EXPECT_EQ(info.num_parameters, model.num_parameters());
  EXPECT_EQ(info.config.model_type(), "llama");
}

TEST(EagerLanguageModel, MaskedPlacesAreNotThere) {
  const LanguageModel model(ModelConfig::from_json(kQwen), Device::cpu(), 3);
  // A row padded on the left, one in the middle, one on the right, and one without any token.
  const Tensor ids = ids_of({9, 9, 5, 6, 5, 9, 6, 7, 5, 6, 9, 9, 1, 2, 3, 4}, 4);
  const Tensor mask({0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}, {4, 4});
  const std::vector<float> logits = model.forward(ids, mask).to_vector<float>();
  const std::vector<float> two = model.forward(ids_of({5, 6})).to_vector<float>();
  const std::vector<float> three = model.forward(ids_of({5, 6, 7})).to_vector<float>();
  const auto row = [&](const std::vector<float>& from, std::size_t i) {
    return std::vector<float>(from.begin() + static_cast<std::ptrdiff_t>(i * 258),
                              from.begin() + static_cast<std::ptrdiff_t>((i + 1) * 258));
  };
  const auto expect_row = [&](std::size_t i, const std::vector<float>& expected) {
    const std::vector<float> found = row(logits, i);
    for (std::size_t j = 0; j < found.size(); ++j) ASSERT_NEAR(found[j], expected[j], 1e-5) << i << " " << j;
  };
  const std::vector<float> nothing(258, 0.0F);
  const std::vector<std::vector<float>> expected{nothing,       nothing,     row(two, 0),   row(two, 1),
                                                 row(three, 0), nothing,     row(three, 1), row(three, 2),
                                                 row(two, 0),   row(two, 1), nothing,       nothing};
  for (std::size_t i = 0; i < expected.size(); ++i) expect_row(i, expected[i]);
  for (std::size_t i = 12; i < 16; ++i) expect_row(i, nothing);
  EXPECT_THROW(model.forward(ids, Tensor({1, 1}, {1, 2})), ShapeError);
  EXPECT_THROW(model.forward(Tensor({1.0F}, {1, 1})), DTypeError);
  EXPECT_THROW(model.forward(ids_of({300})), ValueError);
}

TEST(EagerQwen, PartsMakeTheWhole) {
  const Qwen model(ModelConfig::from_json(kQwen), Device::cpu(), 3);
  const Tensor x = oracle::random_tensor({2, 5, 24}, 1, Device::cpu());
  const auto norm = [](const Tensor& y) { return y.rms_norm(1e-6); };  // the weights are one
  const QwenDecoderLayer layer = model.layer(1);
  const Tensor attended = x + layer.attention().forward(norm(x));
  const Tensor whole = attended + layer.mlp().forward(norm(attended));
  const std::vector<float> expected = whole.to_vector<float>(), found = layer.forward(x).to_vector<float>();
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-5);
  // Causal: what comes later changes nothing before.
  const Tensor other = Tensor(slice(x.lazy(), 1, 0, 3));
  const std::vector<float> first = layer.attention().forward(other).to_vector<float>();
  const std::vector<float> all = layer.attention().forward(x).to_vector<float>();
  for (std::size_t i = 0; i < 3 * 24; ++i) ASSERT_NEAR(first[i], all[i], 1e-5);
  EXPECT_THROW(model.layer(2), ValueError);
  EXPECT_THROW(layer.forward(oracle::random_tensor({5, 24}, 1, Device::cpu())), ShapeError);
}

TEST(EagerAdapter, NamesSizesAndMerging) {
  EXPECT_EQ(TargetModule::from_name("down_proj")->name(), "down_proj");
  EXPECT_FALSE(TargetModule::from_name("lm_head").has_value());
  EXPECT_EQ(TargetModule::all().size(), 7U);
  const ModelDimensions dimensions = ModelDimensions::of(ModelConfig::from_json(kQwen));
  const LoRAAdapter adapter(
      dimensions, {.rank = 2, .alpha = 4, .target_modules = {TargetModule::KProj, TargetModule::DownProj}});
  // Keys and values are half as wide as queries: their heads are grouped.
  EXPECT_EQ(adapter.num_trainable_parameters(), 2 * (2 * (24 + 12) + 2 * (40 + 24)));
  EXPECT_EQ(adapter.num_frozen_parameters(), 2 * (24 * 12 + 40 * 24));
  ASSERT_EQ(adapter.layers().size(), 4U);
  EXPECT_TRUE(adapter.layers().contains("layers.1.k_proj"));
  EXPECT_EQ(adapter.get_layer(0, TargetModule::QProj), nullptr);
  EXPECT_FALSE(adapter.forward(0, TargetModule::QProj, Tensor::zeros({1, 24})).has_value());
  const LoRALayer& layer = *adapter.get_layer(0, TargetModule::KProj);
  layer.lora_b().set(oracle::random_tensor({2, 12}, 5, Device::cpu()));
  const Tensor base = oracle::random_tensor({12, 24}, 6, Device::cpu());
  const Tensor x = oracle::random_tensor({3, 24}, 7, Device::cpu());
  const Tensor merged = adapter.merge_weights(base, 0, TargetModule::KProj);
  const std::vector<float> one = x.matmul(merged.transpose()).to_vector<float>();
  const std::vector<float> two =
      (x.matmul(base.transpose()) + *adapter.forward(0, TargetModule::KProj, x)).to_vector<float>();
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], two[i], 1e-5);
  EXPECT_THROW(adapter.merge_weights(x, 0, TargetModule::KProj), ShapeError);
  EXPECT_THROW(LoRAAdapter(dimensions, {.target_modules = {}}), TrainingError);
  EXPECT_THROW(LoRAAdapter(dimensions, {.target_modules = {TargetModule::QProj, TargetModule::QProj}}),
               TrainingError);
}

TEST(EagerAdapter, OnAModelItComputesLearnsAndGoes) {
  const LanguageModel model(ModelConfig::from_json(kQwen), Device::cpu(), 3);
  const Tensor ids = ids_of({1, 5, 9, 30, 2, 7});
  const std::vector<float> before = model.forward(ids).to_vector<float>();
  auto adapter = std::make_shared<LoRAAdapter>(ModelDimensions::of(model.config()),
                                               LoRAAdapterConfig{.rank = 4, .alpha = 8});
  EXPECT_FALSE(has_adapter(model));
  apply_adapter(model, adapter);
  EXPECT_TRUE(has_adapter(model));
  EXPECT_EQ(model.forward(ids).to_vector<float>(), before);  // B is zero
  EXPECT_THROW(apply_adapter(model, adapter), TrainingError);

  const Tensor targets = ids_of({5, 9, 30, 2, 7, 1});
  Trainer trainer(adapter->trainable_variables(),
                  {.num_epochs = 30, .optimizer_config = {.learning_rate = 2e-2}});
  const auto loss_of = [&](const Tensor& batch) { return cross_entropy_loss(model.forward(batch), targets); };
  const double first = loss_of(ids).item<double>();
  const StepMetrics last = trainer.train(std::vector<Tensor>{ids}, loss_of);
  EXPECT_EQ(last.step, 30);
  EXPECT_LT(last.loss, 0.6 * first);
  EXPECT_NE(model.forward(ids).to_vector<float>(), before);

  // The same numbers through PEFT's files: A and B transposed.
  remove_adapter(model);
  EXPECT_EQ(model.forward(ids).to_vector<float>(), before);
  EXPECT_THROW(remove_adapter(model), TrainingError);
  const LanguageModel other(ModelConfig::from_json(
      R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 258,
  "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 48, "tie_word_embeddings": true})"));
  EXPECT_THROW(apply_adapter(other, adapter), ShapeError);
  EXPECT_FALSE(has_adapter(other));
}

TEST(EagerAdapterRegistry, HoldsLoadsAndNames) {
  const TempFolder temp;
  const LanguageModel model(ModelConfig::from_json(kQwen), Device::cpu(), 3);
  // An adapter of the lazy API, saved as PEFT has it.
  LanguageModel lazy(ModelConfig::from_json(kQwen), Device::cpu(), 3);
  apply_lora(lazy.lazy(), {.rank = 3, .alpha = 5, .use_rslora = true}, {"q_proj", "v_proj"}, 1);
  std::uint64_t seed = 9;
  for (const Parameter& p : lazy.lazy().trainable_parameters())
    *p.tensor =
        *p.tensor + random_normal(p.tensor->shape(), seed++, DType::f32, caldera::Device::cpu()) * 0.2;
  lazy.lazy().set_training(false);
  save_adapter(lazy.lazy(), temp / "peft");

  AdapterRegistry registry;
  EXPECT_TRUE(registry.is_empty());
  registry.load_adapter_from_checkpoint("peft", temp / "peft", model);
  registry.add_adapter(
      "fresh", std::make_shared<LoRAAdapter>(ModelDimensions::of(model.config()), LoRAAdapterConfig{}));
  EXPECT_EQ(registry.list_adapters(), (std::vector<std::string>{"fresh", "peft"}));
  EXPECT_EQ(registry.len(), 2U);
  EXPECT_THROW(registry.add_adapter("peft", nullptr), TrainingError);
  EXPECT_FALSE(registry.active_adapter().has_value());
  registry.activate("peft");
  EXPECT_EQ(registry.active_adapter(), "peft");
  EXPECT_THROW(registry.activate("absent"), TrainingError);
  EXPECT_EQ(registry.active_adapter(), "peft");

  const Tensor ids = ids_of({1, 5, 9, 30, 2, 7});
  apply_adapter(model, registry.get_adapter(*registry.active_adapter()));
  const std::vector<float> found = model.forward(ids).to_vector<float>();
  const std::vector<float> expected = lazy.forward(ids).to_vector<float>();
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4);
  registry.unload_adapter("peft");
  EXPECT_FALSE(registry.active_adapter().has_value());
  EXPECT_EQ(registry.get_adapter("peft"), nullptr);
  registry.deactivate();
  try {
    registry.load_adapter_from_checkpoint("none", temp / "absent", model);
    FAIL() << "a folder that is not there was read";
  } catch (const CheckpointError& error) {
    EXPECT_EQ(error.kind(), CheckpointError::Kind::LoadFailed);
  }
}

TEST(EagerKVCache, KeepsWhatIsPutIntoIt) {
  KVCache cache({.num_layers = 2, .num_kv_heads = 2, .head_dim = 3, .max_seq_len = 5});
  EXPECT_TRUE(cache.is_empty());
  const auto rows = [](std::int64_t positions, std::uint32_t seed) {
    return oracle::random_tensor({1, 2, positions, 3}, seed, Device::cpu());
  };
  const Tensor k1 = rows(3, 1), v1 = rows(3, 2), k2 = rows(2, 3), v2 = rows(2, 4);
  cache.update(0, k1, v1);
  EXPECT_EQ(cache.position(), 0);  // the other layer has none
  cache.update(1, k1, v1);
  EXPECT_EQ(cache.position(), 3);
  const auto [keys, values] = cache.update(0, k2, v2);
  EXPECT_EQ(keys.shape(), (Shape{1, 2, 5, 3}));
  for (std::int64_t head = 0; head < 2; ++head)
    for (std::int64_t position = 0; position < 5; ++position)
      for (std::int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(keys.at({0, head, position, i}),
                  position < 3 ? k1.at({0, head, position, i}) : k2.at({0, head, position - 3, i}));
        EXPECT_EQ(values.at({0, head, position, i}),
                  position < 3 ? v1.at({0, head, position, i}) : v2.at({0, head, position - 3, i}));
      }
  try {
    cache.update(0, rows(1, 1), rows(1, 1));
    FAIL() << "a sixth position went into a cache of five";
  } catch (const InferenceError& error) {
    EXPECT_EQ(error.kind(), InferenceError::Kind::CacheFull);
    EXPECT_EQ(error.cache_position()->position, 5);
    EXPECT_EQ(error.cache_position()->max_len, 5);
  }
  EXPECT_EQ(cache.get(0)->first.to_vector<float>(), keys.to_vector<float>());
  EXPECT_THROW(cache.update(1, rows(1, 1), rows(2, 1)), ShapeError);
  EXPECT_THROW(cache.update(2, k1, v1), InferenceError);
  cache.clear();
  EXPECT_TRUE(cache.is_empty());
  EXPECT_FALSE(cache.get(0).has_value());
  EXPECT_THROW(KVCache({.num_layers = 1}), InferenceError);
}

TEST(EagerSampling, ChoosesByItsStrategy) {
  const Tensor logits({1.0F, 3.0F, 2.0F, -1.0F}, {4});
  EXPECT_EQ(sample_token(logits, SamplingStrategy::greedy()), 1);
  // Of (rows, vocabulary) the last row.
  EXPECT_EQ(sample_token(Tensor({9.0F, 0.0F, 0.0F, 5.0F}, {2, 2}), SamplingStrategy::greedy()), 1);
  std::vector<int> counts(4, 0);
  constexpr int kDraws = 4000;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed)
    ++counts[static_cast<std::size_t>(sample_token(logits, SamplingStrategy::top_k(2), seed))];
  EXPECT_EQ(counts[0] + counts[3], 0);
  EXPECT_NEAR(counts[1] / double{kDraws}, 1 / (1 + std::exp(-1.0)), 0.03);
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_EQ(sample_token(logits, SamplingStrategy::top_p(0.5), seed), 1);
  const SampledToken token = sample_token_with_metadata(logits, SamplingStrategy::temperature(0.5), 3);
  double sum = 0;
  for (const double logit : {1.0, 3.0, 2.0, -1.0}) sum += std::exp(2 * logit);
  EXPECT_EQ(token.logit, logits.at({token.token_id}));
  EXPECT_NEAR(token.probability, std::exp(2 * double{token.logit}) / sum, 1e-6);
  EXPECT_THROW(SamplingStrategy::top_k(0), InferenceError);
  EXPECT_THROW(SamplingStrategy::top_p(1.5), InferenceError);
  EXPECT_THROW(SamplingStrategy::temperature(0), InferenceError);
  EXPECT_THROW(sample_token(Tensor({std::nanf(""), 1.0F}, {2}), SamplingStrategy::greedy()), InferenceError);
}

TEST(EagerSampling, ThePenaltyMakesEachTokenLessLikelyOnce) {
  const std::vector<std::int32_t> seen{0, 1, 1, 1, 9};
  EXPECT_EQ(apply_repetition_penalty(Tensor({2.0F, -2.0F, 4.0F}, {3}), seen, 2).to_vector<float>(),
            (std::vector<float>{1, -4, 4}));
  EXPECT_THROW(apply_repetition_penalty(Tensor({2.0F}, {1}), seen, 0), InferenceError);
}

TEST(EagerGenerator, GoesOnAsTheLogitsSay) {
  const LanguageModel model(ModelConfig::from_json(kQwen), Device::cpu(), 3);
  const std::vector<std::int32_t> prompt{72, 105, 32};
  const Generator generator(model, {.max_tokens = 12, .stop_on_eos = false},
                            std::make_shared<ByteTokenizer>());
  // Token by token, with neither cache nor generator.
  std::vector<std::int32_t> all = prompt;
  std::vector<float> logits;
  for (int i = 0; i < 12; ++i) {
    const Tensor row = model.forward(ids_of(all));
    all.push_back(sample_token(row, SamplingStrategy::greedy()));
    logits.push_back(row.at({0, row.shape()[1] - 1, all.back()}));
  }
  const std::vector<std::int32_t> expected(all.begin() + 3, all.end());
  EXPECT_EQ(generator.generate(prompt), expected);
  std::vector<StreamToken> tokens;
  generator.generate_stream(prompt, [&](const StreamToken& token) {
    tokens.push_back(token);
    return tokens.size() < 5;
  });
  ASSERT_EQ(tokens.size(), 5U);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].token_id, expected[i]);
    EXPECT_NEAR(tokens[i].logit, logits[i], 1e-4);
    EXPECT_GT(tokens[i].probability, 0);
    EXPECT_LE(tokens[i].probability, 1);
    EXPECT_FALSE(tokens[i].is_eos);
  }
  std::vector<std::int32_t> streamed;
  TokenStream stream = generator.generate_stream_async(prompt);
  while (const auto token = stream.next()) streamed.push_back(token->token_id);
  EXPECT_EQ(streamed, expected);
  EXPECT_FALSE(stream.next().has_value());
  { const TokenStream left = generator.generate_stream_async(prompt); }  // ends with the stream

  const Generator stops(model, {.max_tokens = 12, .stop_on_eos = false, .stop_tokens = {expected[3]}});
  const auto first = std::ranges::find(expected, expected[3]) - expected.begin() + 1;
  EXPECT_EQ(std::ssize(stops.generate(prompt)), first);
  const Generator drawn(model, {.max_tokens = 12, .temperature = 1.5, .stop_on_eos = false, .seed = 4});
  EXPECT_EQ(drawn.generate(prompt), drawn.generate(prompt));
  EXPECT_NE(drawn.generate(prompt), expected);

  EXPECT_THROW(generator.generate({}), InferenceError);
  TokenStream failed = generator.generate_stream_async({1000});
  EXPECT_THROW(failed.next(), InferenceError);
  EXPECT_THROW(Generator(model, {.max_tokens = 0}), InferenceError);
  EXPECT_THROW(Generator(model, {.top_p = 2.0}), InferenceError);
}

}  // namespace
}  // namespace caldera::v1
