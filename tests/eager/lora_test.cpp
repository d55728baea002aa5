// LoRALayer: the formula against loops in double with B != 0, eager against lazy, dropout, refusals.
#include "ops/ops.h"
#include "tests/eager/oracle.h"
#include "tests/support/devices.h"

namespace caldera::v1 {
namespace {

using oracle::doubles;
using oracle::expect_close;
using oracle::product;
using oracle::random_tensor;

class EagerLoRA : public ::testing::TestWithParam<caldera::Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  Device device() const { return Device::from(GetParam()); }
  /// A layer whose B is not zero.
  LoRALayer layer(std::int64_t in, std::int64_t out, const LoRAConfig& config) const {
    LoRALayer made(in, out, config, device(), 11);
    made.lora_b().set(random_tensor({config.rank, out}, 12, device()));
    return made;
  }
};

std::vector<double> expected_delta(const LoRALayer& layer, const Tensor& x) {
  const auto in = static_cast<std::size_t>(layer.in_features());
  const auto out = static_cast<std::size_t>(layer.out_features());
  const auto rank = static_cast<std::size_t>(layer.config().rank);
  const std::vector<double> values = doubles(x);
  const std::size_t rows = values.size() / in;
  std::vector<double> delta = product(product(values, doubles(layer.lora_a().tensor()), rows, in, rank),
                                      doubles(layer.lora_b().tensor()), rows, rank, out);
  for (double& value : delta) value *= layer.config().alpha / static_cast<double>(rank);
  return delta;
}

TEST_P(EagerLoRA, IsTheScaledProductForEveryRankOfInput) {
  const LoRALayer lora = layer(33, 20, {.rank = 5, .alpha = 7});
  for (const Shape& leading : {Shape{}, Shape{1}, Shape{7}, Shape{2, 3}, Shape{2, 1, 5}, Shape{0, 3}}) {
    Shape in = leading;
    in.push_back(33);
    Shape out = leading;
    out.push_back(20);
    const Tensor x = random_tensor(in, 21, device());
    const Tensor y = lora.forward(x);
    EXPECT_EQ(y.shape(), out);
    expect_close(y, expected_delta(lora, x), 1e-4);
    const LazyTensor lazy = lora.forward_lazy(x.lazy());
    EXPECT_EQ(lazy.shape(), out);
    expect_close(y, doubles(to_tensor(lazy)), 1e-6);
    expect_close(
        x.lora_forward_fused(lora.lora_a().tensor(), lora.lora_b().tensor(), lora.config().scaling()),
        expected_delta(lora, x), 1e-4);
  }
}

TEST_P(EagerLoRA, IsTheScaledProductForEveryRankOfTheLayer) {
  for (const std::int64_t rank : {1, 2, 3, 8, 17, 64}) {
    for (const auto& [in, out] : {std::pair{64, 129}, std::pair{129, 64}}) {
      const LoRALayer lora = layer(in, out, {.rank = rank, .alpha = 16});
      const Tensor x = random_tensor({3, in}, 22, device());
      expect_close(lora.forward(x), expected_delta(lora, x), 1e-4);
      expect_close(lora.forward(x), doubles(to_tensor(lora.forward_lazy(x.lazy()))), 1e-6);
      EXPECT_EQ(lora.num_parameters(), rank * (in + out));
    }
  }
}

TEST_P(EagerLoRA, LayersChain) {
  const LoRALayer first = layer(12, 30, {.rank = 4, .alpha = 2});
  const LoRALayer second = layer(30, 7, {.rank = 3, .alpha = 6});
  const Tensor x = random_tensor({5, 12}, 23, device());
  const Tensor middle = first.forward(x);
  const Tensor end = second.forward(middle);
  expect_close(end, expected_delta(second, middle), 1e-4);
  expect_close(end, doubles(to_tensor(second.forward_lazy(first.forward_lazy(x.lazy())))), 1e-6);
}

TEST_P(EagerLoRA, BeginsAsNothing) {
  const LoRALayer lora(400, 300, {.rank = 16}, device(), 5);
  const Tensor x = random_tensor({2, 400}, 24, device());
  EXPECT_EQ(lora.forward(x).to_vector(), std::vector<float>(600, 0.0F));
  double mean = 0, squares = 0;
  for (const double value : doubles(lora.lora_a().tensor())) {
    mean += value / 6400;
    squares += value * value / 6400;
  }
  // Deviation 1 / sqrt(16); bounds of five standard errors of 6400 draws.
  EXPECT_NEAR(mean, 0, 5 * 0.25 / 80);
  EXPECT_NEAR(std::sqrt(squares), 0.25, 5 * 0.25 / std::sqrt(2.0 * 6400));
}

TEST_P(EagerLoRA, SeedsDecideTheFactors) {
  const LoRALayer a(9, 8, {.rank = 2}, device(), 5), same(9, 8, {.rank = 2}, device(), 5),
      other(9, 8, {.rank = 2}, device(), 6), unseeded(9, 8, {.rank = 2}, device()),
      next(9, 8, {.rank = 2}, device());
  EXPECT_EQ(a.lora_a().tensor().to_vector(), same.lora_a().tensor().to_vector());
  EXPECT_NE(a.lora_a().tensor().to_vector(), other.lora_a().tensor().to_vector());
  EXPECT_NE(unseeded.lora_a().tensor().to_vector(), next.lora_a().tensor().to_vector());
}

TEST_P(EagerLoRA, DropsInTrainingEagerAndLazy) {
  // A and B are such that every element of the output is the mean of what is kept of 64 ones.
  LoRALayer lora(64, 64, {.rank = 64, .alpha = 64, .dropout = 0.25}, device(), 3);
  std::vector<float> identity(64 * 64, 0.0F);
  for (std::size_t i = 0; i < 64; ++i) identity[i * 65] = 1.0F;
  lora.lora_a().set(Tensor(identity, {64, 64}, device()));
  lora.lora_b().set(Tensor(identity, {64, 64}, device()));
  const Tensor x = Tensor::ones({100, 64}, DType::f32, device());
  EXPECT_FALSE(lora.is_training());
  EXPECT_EQ(lora.forward(x).to_vector(), x.to_vector());

  lora.set_training(true);
  EXPECT_TRUE(lora.is_training());
  const std::vector<float> dropped = lora.forward(x).to_vector();
  std::size_t zeros = 0;
  for (const float value : dropped) {
    if (value == 0.0F)
      ++zeros;
    else
      ASSERT_NEAR(value, 1 / 0.75, 1e-5);
  }
  EXPECT_NEAR(static_cast<double>(zeros) / 6400, 0.25, 5 * std::sqrt(0.25 * 0.75 / 6400));
  EXPECT_NE(lora.forward(x).to_vector(), dropped) << "each call draws anew";
  EXPECT_NE(to_tensor(lora.forward_lazy(x.lazy())).to_vector(), x.to_vector()) << "lazy calls drop too";

  lora.set_dropout_seed(77);
  const Tensor eager = lora.forward(x);
  lora.set_dropout_seed(77);
  expect_close(eager, doubles(to_tensor(lora.forward_lazy(x.lazy()))), 1e-6);
  lora.eval();
  EXPECT_EQ(lora.forward(x).to_vector(), x.to_vector());
}

TEST_P(EagerLoRA, KnowsItself) {
  const LoRALayer lora(10, 6, {.rank = 3, .alpha = 12, .dropout = 0.5}, device());
  EXPECT_EQ(lora.in_features(), 10);
  EXPECT_EQ(lora.out_features(), 6);
  EXPECT_EQ(lora.num_parameters(), 48);
  EXPECT_EQ(lora.config().scaling(), 4.0);
  EXPECT_EQ(lora.lora_a().shape(), (Shape{10, 3}));
  EXPECT_EQ(lora.lora_b().shape(), (Shape{3, 6}));
  ASSERT_EQ(lora.trainable_variables().size(), 2U);
  EXPECT_EQ(lora.trainable_variables()[0], lora.lora_a());
  EXPECT_EQ(lora.trainable_variables()[1], lora.lora_b());
  EXPECT_THROW(lora.forward(random_tensor({2, 9}, 1, device())), ShapeError);
  EXPECT_THROW(lora.forward(Tensor::ones({}, DType::f32, device())), ShapeError);
  EXPECT_THROW(lora.lora_b().set(Tensor::ones({6, 3}, DType::f32, device())), ShapeError);
}

TEST(EagerLoRAConfig, HasTheDocumentedDefaults) {
  const LoRAConfig config;
  EXPECT_EQ(config.rank, 8);
  EXPECT_EQ(config.alpha, 16);
  EXPECT_EQ(config.dropout, 0);
  EXPECT_EQ(config.scaling(), 2);
  EXPECT_NO_THROW(config.validate());
}

TEST(EagerLoRAConfig, RefusesWhatMakesNoSense) {
  const double nan = std::nan("");
  for (const LoRAConfig& bad :
       {LoRAConfig{.rank = 0}, LoRAConfig{.rank = -3}, LoRAConfig{.alpha = 0}, LoRAConfig{.alpha = -1},
        LoRAConfig{.alpha = nan}, LoRAConfig{.dropout = -0.1}, LoRAConfig{.dropout = 1.0},
        LoRAConfig{.dropout = nan}}) {
    try {
      LoRALayer(16, 16, bad);
      ADD_FAILURE() << "accepted rank " << bad.rank << ", alpha " << bad.alpha << ", dropout " << bad.dropout;
    } catch (const TrainingError& error) {
      EXPECT_EQ(error.kind(), TrainingError::Kind::InvalidLoRAConfig);
    }
  }
  EXPECT_NO_THROW(LoRALayer(16, 8, {.rank = 8}));
  EXPECT_THROW(LoRALayer(0, 16, {.rank = 1}), TrainingError);
  try {
    LoRALayer(16, 8, {.rank = 9});
    FAIL() << "accepted";
  } catch (const TrainingError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("rank 9"), std::string::npos) << message;
    EXPECT_NE(message.find("at most 8"), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, EagerLoRA, ::testing::ValuesIn(caldera::testing::tested_devices()),
                         caldera::testing::device_test_name);

}  // namespace
}  // namespace caldera::v1
