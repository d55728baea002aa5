// Families of models against golden values of plain PyTorch (tests/golden/models): logits, hidden states, the
// gradients of an adapter in PEFT's format, and decoding with the cache. A line a model.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "engine/autodiff/autodiff.h"
#include "lm/adapters/lora.h"
#include "lm/generate/token_step.h"
#include "lm/nn/attention/packed_texts.h"
#include "lm/nn/attention/rope_frequencies.h"
#include "ops/ops.h"
#include "tests/lm/families/golden_model.h"
#include "tests/support/devices.h"
#include "tests/support/engine_setup.h"
#include "training/objectives/loss.h"

namespace caldera::testing {
namespace {

/// A folder of tests/golden/models, and the model_type that it is to have.
struct FamilyCase {
  const char* folder;
  const char* model_type;
  bool fusion = true;
};

constexpr FamilyCase kFamilies[] = {
    {"qwen2-untied", "qwen2"},
    {"qwen2-tied", "qwen2"},
    {"qwen2-untied", "qwen2", false},
    {"qwen2-tied", "qwen2", false},
    {"llama-linear", "llama"},
    {"llama-dynamic", "llama"},
    {"llama-llama3", "llama"},
    {"llama-yarn", "llama"},
    {"qwen3", "qwen3"},
    {"qwen3-sliding", "qwen3"},
    {"gemma2", "gemma2"},
    {"gemma3", "gemma3_text"},
    {"gemma3-new-names", "gemma3_text"},
    {"mistral", "mistral"},
    {"ministral3", "ministral3"},
    {"smollm3", "smollm3"},
    {"olmo2", "olmo2"},
    {"olmo3", "olmo3"},
    {"granite", "granite"},
    {"phi3-long", "phi3"},
    {"phi3-short", "phi3"},
    {"gpt2", "gpt2"},
    {"qwen3-moe", "qwen3_moe"},
    {"gpt-oss", "gpt_oss"},
};

class FamilyTest : public ::testing::TestWithParam<std::tuple<FamilyCase, Device>> {
 protected:
  static constexpr double kTolerance = GoldenModel::kTolerance;
  static constexpr std::int64_t kBatch = GoldenModel::kBatch;
  static constexpr std::int64_t kPositions = GoldenModel::kPositions;

  static FamilyCase family() { return std::get<0>(GetParam()); }
  static Device device() { return std::get<1>(GetParam()); }
  void SetUp() override { CALDERA_REQUIRE_DEVICE(device()); }

 private:
  ScopedSettings settings_{family().fusion};
};

TEST_P(FamilyTest, GoldenLogits) {
  GoldenModel golden(family().folder, device());
  CausalLM& model = golden.model();
  EXPECT_EQ(model.config().model_type, family().model_type);
  const std::vector<std::int32_t> ids = golden.tokens("ids");
  expect_close(model(model.make_ids(ids, kBatch)), golden.values("base_logits"), kTolerance, "base_logits");

  load_adapter(model, golden.adapter());
  const LazyTensor hidden = model.hidden_states(model.make_ids(ids, kBatch));
  expect_close(hidden, golden.values("hidden"), kTolerance, "hidden");
  expect_close(model.logits(hidden), golden.values("logits"), kTolerance, "logits");
}

TEST_P(FamilyTest, GoldenGradientsOfEveryFactor) {
  GoldenModel golden(family().folder, device());
  CausalLM& model = golden.model();
  std::size_t projections = 0;
  model.visit_projections([&](const auto&, const auto&, const auto&) { ++projections; });
  load_adapter(model, golden.adapter());
  const LazyTensor targets =
      LazyTensor::from_vector(golden.tokens("targets"), Shape{kBatch, kPositions}, device());
  const LazyTensor loss = cross_entropy(model(model.make_ids(golden.tokens("ids"), kBatch)), targets);
  const std::vector<Parameter> factors = model.trainable_parameters();
  ASSERT_EQ(factors.size(), 2 * projections) << "the adapter is to wrap every projection";
  std::vector<LazyTensor> inputs;
  inputs.reserve(factors.size());
  for (const Parameter& p : factors) inputs.push_back(*p.tensor);
  const std::vector<LazyTensor> grads = grad(loss, inputs);
  expect_close(loss, golden.values("loss"), kTolerance, "loss");
  for (std::size_t i = 0; i < factors.size(); ++i) {
    EXPECT_EQ(grads[i].shape(), inputs[i].shape());
    expect_close(grads[i], golden.values("base_model.model." + factors[i].name), kTolerance, factors[i].name);
  }
}

/// In pieces, and token by token.
TEST_P(FamilyTest, DecodingWithTheCacheEqualsTheWholePass) {
  constexpr double kSame = 1e-5;
  GoldenModel golden(family().folder, device());
  CausalLM& model = golden.model();
  load_adapter(model, golden.adapter());
  model.set_training(false);
  const std::vector<std::int32_t> ids = golden.tokens("ids");
  const std::vector<float> logits_of_all = model(model.make_ids(ids, kBatch)).to_vector<float>();
  // Of logits as large as 1: sums of a row's products are rounded relative to the row, not to what is left.
  double size = 1;
  for (const float logit : logits_of_all) size = std::max(size, std::abs(static_cast<double>(logit)));
  Doubles whole;
  for (const float logit : logits_of_all) whole.push_back(logit / size);
  const std::int64_t vocab = model.config().vocab_size;
  const auto cache = model.make_cache(12, kBatch);
  cache->set_text_length(kPositions);  // frequencies may depend on it
  std::int64_t position = 0;
  for (const std::int64_t length : {4, 1, 1, 2, 1}) {
    std::vector<std::int32_t> fed;
    Doubles expected;
    for (std::int64_t b = 0; b < kBatch; ++b) {
      const std::int64_t begin = b * kPositions + position;
      fed.insert(fed.end(), ids.begin() + begin, ids.begin() + begin + length);
      expected.insert(expected.end(), whole.begin() + begin * vocab,
                      whole.begin() + (begin + length) * vocab);
    }
    const LazyTensor logits = model(model.make_ids(fed, kBatch), cache.get());
    std::vector<LazyTensor> outputs = cache->state();
    outputs.push_back(logits);
    eval(outputs);
    expect_close(logits / size, expected, kSame, "position " + std::to_string(position));
    position += length;
  }

  // And through a trace, each token as the last of its text.
  if (depends_on_length(model.config().rope_scaling)) return;
  TokenStep step(model, false);
  cache->truncate(4);
  for (position = 4; position < kPositions; ++position) {
    std::vector<std::int32_t> fed;
    Doubles expected;
    for (std::int64_t b = 0; b < kBatch; ++b) {
      const std::int64_t at = b * kPositions + position;
      fed.push_back(ids[static_cast<std::size_t>(at)]);
      expected.insert(expected.end(), whole.begin() + at * vocab, whole.begin() + (at + 1) * vocab);
    }
    const LazyTensor logits = step(*cache, model.make_ids(fed, kBatch));
    expect_close(logits / size, expected, kSame, "traced, position " + std::to_string(position));
  }
}

/// Texts side by side in a row, and shorter ones beside padding, give what each gives alone.
TEST_P(FamilyTest, PackedAndPaddedTextsEqualThePlainPass) {
  constexpr double kSame = 1e-5;
  GoldenModel golden(family().folder, device());
  CausalLM& model = golden.model();
  const std::vector<std::int32_t> ids = golden.tokens("ids");
  // A text as long as the longest where frequencies depend on that.
  const std::int64_t shorter = depends_on_length(model.config().rope_scaling) ? kPositions : 6;
  const auto row = [&](std::int64_t b, std::int64_t length) {
    return std::vector<std::int32_t>(ids.begin() + b * kPositions, ids.begin() + b * kPositions + length);
  };
  const auto alone = [&](std::int64_t b, std::int64_t length) {
    const std::vector<float> logits = model(model.make_ids(row(b, length))).to_vector<float>();
    return Doubles(logits.begin(), logits.end());
  };
  const Doubles first = alone(0, kPositions), second = alone(1, shorter);

  std::vector<std::int32_t> together = row(0, kPositions);
  for (const std::int32_t id : row(1, shorter)) together.push_back(id);
  const auto length = static_cast<std::int64_t>(together.size());
  const std::vector<std::vector<std::int64_t>> in_one_row{{kPositions, shorter}};
  PackedTexts packed(in_one_row, length, device());
  const LazyTensor logits = model(model.make_ids(together), &packed);
  expect_close(slice(logits, 1, 0, kPositions), first, kSame, "packed, first");
  expect_close(slice(logits, 1, kPositions, length), second, kSame, "packed, second");

  constexpr std::int64_t kWidth = kPositions + 2;
  for (const auto where : {PackedTexts::Padding::behind, PackedTexts::Padding::before}) {
    const bool behind = where == PackedTexts::Padding::behind;
    std::vector<std::int32_t> rows;
    for (const auto& [b, n] : {std::pair{0, kPositions}, {1, shorter}}) {
      std::vector<std::int32_t> filled = row(b, n);
      filled.insert(behind ? filled.end() : filled.begin(), static_cast<std::size_t>(kWidth - n), 0);
      rows.insert(rows.end(), filled.begin(), filled.end());
    }
    const std::vector<std::vector<std::int64_t>> lengths{{kPositions}, {shorter}};
    PackedTexts padded(lengths, kWidth, device(), where);
    const LazyTensor both = model(model.make_ids(rows, kBatch), &padded);
    const auto part = [&](std::int64_t b, std::int64_t n) {
      const std::int64_t begin = behind ? 0 : kWidth - n;
      return slice(slice(both, 0, b, b + 1), 1, begin, begin + n);
    };
    expect_close(part(0, kPositions), first, kSame, "padded, first");
    expect_close(part(1, shorter), second, kSame, "padded, second");
  }
}

/// "qwen2_tied_cpu".
std::string family_test_name(const ::testing::TestParamInfo<std::tuple<FamilyCase, Device>>& info) {
  std::string name = std::get<0>(info.param).folder;
  std::ranges::replace(name, '-', '_');
  if (!std::get<0>(info.param).fusion) name += "_unfused";
  return name + "_" + device_test_name({std::get<1>(info.param), 0});
}

INSTANTIATE_TEST_SUITE_P(Models, FamilyTest,
                         ::testing::Combine(::testing::ValuesIn(kFamilies),
                                            ::testing::ValuesIn(tested_devices())),
                         family_test_name);

}  // namespace
}  // namespace caldera::testing
