// TokenStep: tokens fed one by one through a trace, beside passes over the whole text without a cache.
#include "lm/generate/token_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/caldera.h"
#include "tests/lm/generate/batch_requests.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

/// Counts how often the graph of a model is built.
class CountedModel final : public CausalLM {
 public:
  explicit CountedModel(Device device, const ModelConfig& config = batch_config())
      : CausalLM(device), inner_(config, device, 5) {}

  const ModelConfig& config() const override { return inner_.config(); }
  LazyTensor hidden_states(const LazyTensor& ids, AttentionCache* cache) override {
    ++built;
    if (looks) (void)ids.to_vector<std::int32_t>();
    return inner_.hidden_states(ids, cache);
  }
  LazyTensor logits(const LazyTensor& hidden) override { return inner_.logits(hidden); }
  void visit(const std::string& prefix, ParameterVisitor& visitor) override { inner_.visit(prefix, visitor); }

  int built = 0;
  bool looks = false;  ///< at the ids, which a trace does not have

 private:
  Llama inner_;
};

class TokenSteps : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }

  LazyTensor id(std::int32_t token) const {
    return LazyTensor::from_vector(std::vector<std::int32_t>{token}, Shape{1, 1}, GetParam());
  }
  /// Feeds a text to a cache of a few positions, which grows, and holds what follows each token to a pass
  /// over the text so far.
  void expect_whole_passes(CountedModel& model, KVCache& cache, double tolerance) const {
    const EvaluationMode mode(model);
    const Ids text = random_ids(40, 9);
    TokenStep logits_of(model, false);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (cache.position() == cache.capacity()) cache.grow(2 * cache.capacity());
      const std::vector<float> row = logits_of(cache, id(text[i])).to_vector<float>();
      const int built = model.built;
      const std::vector<float> all =
          model.forward(model.make_ids(std::span(text).first(i + 1))).to_vector<float>();
      model.built = built;
      ASSERT_EQ(all.size(), row.size() * (i + 1));
      for (std::size_t k = 0; k < row.size(); ++k)
        ASSERT_NEAR(row[k], all[all.size() - row.size() + k], tolerance) << "token " << i << ", logit " << k;
    }
  }
};

TEST_P(TokenSteps, AreWhatWholePassesSay) {
  CountedModel model(GetParam());
  const std::unique_ptr<KVCache> cache = model.make_cache(16);
  expect_whole_passes(model, *cache, 1e-4);
  EXPECT_EQ(model.built, 3) << "once for each capacity: 16, 32, 64";
}

TEST_P(TokenSteps, ReadCachesOfFewerBits) {
  ModelConfig config = batch_config();
  config.head_dim = 32;
  CountedModel model(GetParam(), config);
  model.set_cache_type(CacheType::q8_0);
  // Keys are rounded, so a pass over the whole text says something else: calls without a trace do not.
  const EvaluationMode mode(model);
  const std::unique_ptr<KVCache> cache = model.make_cache(64), other = model.make_cache(64);
  TokenStep step(model, false);
  for (const std::int32_t token : random_ids(40, 9)) {
    const std::vector<float> row = step(*cache, id(token)).to_vector<float>();
    const LazyTensor plain = model(id(token), other.get());
    std::vector<LazyTensor> outputs = other->state();
    outputs.push_back(plain);
    eval(outputs);
    const std::vector<float> expected = plain.to_vector<float>();
    for (std::size_t k = 0; k < row.size(); ++k) ASSERT_NEAR(row[k], expected[k], 1e-4) << k;
  }
}

TEST_P(TokenSteps, ChooseTheMostLikelyToken) {
  CountedModel model(GetParam());
  const EvaluationMode mode(model);
  const std::unique_ptr<KVCache> cache = model.make_cache(64), other = model.make_cache(64);
  TokenStep choice_of(model, true), logits_of(model, false);
  std::int32_t token = 7;
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> row = logits_of(*other, id(token)).to_vector<float>();
    token = choice_of(*cache, id(token)).item<std::int32_t>();
    ASSERT_EQ(token, std::max_element(row.begin(), row.end()) - row.begin()) << i;
  }
}

TEST_P(TokenSteps, GoBackToEarlierPositions) {
  CountedModel model(GetParam());
  const EvaluationMode mode(model);
  const std::unique_ptr<KVCache> cache = model.make_cache(64);
  TokenStep step(model, false);
  const auto fed = [&](const Ids& text) {
    std::vector<float> row;
    for (const std::int32_t token : text) row = step(*cache, id(token)).to_vector<float>();
    return row;
  };
  const std::vector<float> first = fed({3, 1, 4, 1, 5});
  cache->truncate(2);
  fed({9, 2, 6});
  cache->truncate(2);
  EXPECT_EQ(fed({4, 1, 5}), first);
}

TEST_P(TokenSteps, CallModelsThatLookAtValues) {
  CountedModel model(GetParam());
  model.looks = true;
  const std::unique_ptr<KVCache> cache = model.make_cache(64);
  expect_whole_passes(model, *cache, 1e-4);
  EXPECT_EQ(model.built, 41) << "once in vain, then for each token";
}

TEST_P(TokenSteps, AFullCacheIsAnErrorAndKeepsWhatItHas) {
  CountedModel model(GetParam());
  const EvaluationMode mode(model);
  const std::unique_ptr<KVCache> cache = model.make_cache(2);
  TokenStep step(model, false);
  const std::vector<float> first = step(*cache, id(1)).to_vector<float>();
  step(*cache, id(2));
  EXPECT_THROW(step(*cache, id(3)), ValueError);
  EXPECT_EQ(cache->position(), 2);
  cache->truncate(0);
  EXPECT_EQ(step(*cache, id(1)).to_vector<float>(), first);
}

INSTANTIATE_TEST_SUITE_P(Devices, TokenSteps, ::testing::ValuesIn(tested_devices()), device_test_name);

}  // namespace
}  // namespace caldera::testing
