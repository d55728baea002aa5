// Encoders against golden values of plain PyTorch (tests/golden/models): hidden states, the gradients of an
// adapter, and texts of several lengths in one batch.
#include <algorithm>
#include <tuple>

#include "engine/autodiff/autodiff.h"
#include "lm/adapters/lora.h"
#include "lm/nn/attention/packed_texts.h"
#include "ops/ops.h"
#include "tests/lm/families/golden_model.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

constexpr const char* kEncoders[] = {"bert", "xlm-roberta", "modernbert", "embedding-gemma"};

class EncoderTest : public ::testing::TestWithParam<std::tuple<const char*, Device>> {
 protected:
  static constexpr std::int64_t kRows = GoldenModel::kBatch;
  static constexpr std::int64_t kLength = GoldenModel::kPositions;

  static const char* folder() { return std::get<0>(GetParam()); }
  static Device device() { return std::get<1>(GetParam()); }
  void SetUp() override { CALDERA_REQUIRE_DEVICE(device()); }
};

TEST_P(EncoderTest, GoldenHiddenStatesAndGradients) {
  GoldenModel golden(folder(), device());
  CausalLM& model = golden.model();
  const LazyTensor ids = model.make_ids(golden.tokens("ids"), kRows);
  expect_close(model.hidden_states(ids), golden.values("base_hidden"), GoldenModel::kTolerance, "base");

  load_adapter(model, golden.adapter());
  const LazyTensor hidden = model.hidden_states(ids);
  expect_close(hidden, golden.values("hidden"), GoldenModel::kTolerance, "hidden");
  const LazyTensor loss =
      sum(hidden * make_tensor(golden.values("weights"), hidden.shape(), DType::f32, device())) / 20;
  const std::vector<Parameter> factors = model.trainable_parameters();
  std::vector<LazyTensor> inputs;
  inputs.reserve(factors.size());
  for (const Parameter& p : factors) inputs.push_back(*p.tensor);
  const std::vector<LazyTensor> grads = grad(loss, inputs);
  expect_close(loss, golden.values("loss"), GoldenModel::kTolerance, "loss");
  for (std::size_t i = 0; i < factors.size(); ++i)
    expect_close(grads[i], golden.values("base_model.model." + factors[i].name), GoldenModel::kTolerance,
                 factors[i].name);
}

TEST_P(EncoderTest, PaddingChangesNothing) {
  GoldenModel golden(folder(), device());
  CausalLM& model = golden.model();
  std::vector<std::int32_t> ids = golden.tokens("ids");
  const std::vector<std::int32_t> second(ids.begin() + kLength, ids.begin() + kLength + 5);
  const std::vector<float> alone = model.hidden_states(model.make_ids(second)).to_vector<float>();
  std::fill(ids.begin() + kLength + 5, ids.end(), 0);
  const std::vector<std::vector<std::int64_t>> lengths{{kLength}, {5}};
  PackedTexts padded(lengths, kLength, device());
  const LazyTensor both = model.hidden_states(model.make_ids(ids, kRows), &padded);
  expect_close(slice(slice(both, 0, 1, 2), 1, 0, 5), Doubles(alone.begin(), alone.end()), 1e-5, "shorter");
}

/// Learned positions end; RoBERTa's begin behind those that it keeps for padding.
TEST_P(EncoderTest, TextsBeyondTheLastPositionAreRefused) {
  GoldenModel golden(folder(), device());
  CausalLM& model = golden.model();
  const ModelConfig& config = model.config();
  const std::int64_t kept = config.model_type == "xlm-roberta" ? 2 : 0;
  const std::int64_t most = config.max_position_embeddings - kept;
  EXPECT_EQ(config.max_positions(), most);
  const std::vector<std::int32_t> text(static_cast<std::size_t>(most), 5);
  EXPECT_NO_THROW(model.hidden_states(model.make_ids(text)));
  const std::vector<std::int32_t> longer(static_cast<std::size_t>(most) + 1, 5);
  try {
    model.hidden_states(model.make_ids(longer));
    ADD_FAILURE() << "accepted";
  } catch (const ValueError& e) {
    const std::string message = e.what();
    EXPECT_NE(message.find("beyond the " + std::to_string(most) + " positions"), message.npos) << message;
    EXPECT_EQ(message.find("less the 2") != message.npos, kept != 0) << message;
  }
}

std::string encoder_test_name(const ::testing::TestParamInfo<std::tuple<const char*, Device>>& info) {
  std::string name = std::get<0>(info.param);
  std::ranges::replace(name, '-', '_');
  return name + "_" + device_test_name({std::get<1>(info.param), 0});
}

INSTANTIATE_TEST_SUITE_P(Models, EncoderTest,
                         ::testing::Combine(::testing::ValuesIn(kEncoders),
                                            ::testing::ValuesIn(tested_devices())),
                         encoder_test_name);

}  // namespace
}  // namespace caldera::testing
