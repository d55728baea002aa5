// LoRALinear against plain loops and central differences. B is never zero here, and in != out.
#include "lm/adapters/lora.h"

#include "ops/ops.h"
#include "tests/lm/models/reference_llama.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

struct Factors {
  std::int64_t in, out, rank;
  double scaling;
  Doubles w, a, b;

  Factors(std::int64_t in, std::int64_t out, std::int64_t rank, double alpha, std::uint64_t seed)
      : in(in),
        out(out),
        rank(rank),
        scaling(alpha / static_cast<double>(rank)),
        w(random_doubles(out * in, seed)),
        a(random_doubles(rank * in, seed + 1)),
        b(random_doubles(out * rank, seed + 2)) {}

  LoRAOptions options() const {
    return {.rank = static_cast<int>(rank), .alpha = scaling * static_cast<double>(rank)};
  }
  Doubles apply(const Doubles& x) const {
    Doubles y = linear_reference(x, w, {}, in, out);
    const Doubles delta = linear_reference(linear_reference(x, a, {}, in, rank), b, {}, rank, out);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += scaling * delta[i];
    return y;
  }
  std::unique_ptr<LoRALinear> layer(Device device) const {
    const auto make = [&](const Doubles& v, const Shape& s) { return make_tensor(v, s, DType::f32, device); };
    return std::make_unique<LoRALinear>(std::make_unique<Linear>(make(w, Shape{out, in})), options(),
                                        make(a, Shape{rank, in}), make(b, Shape{out, rank}));
  }
};

class LoraTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

TEST_P(LoraTest, InputsOfOneToFourDimensions) {
  const Factors f(33, 7, 3, 16, 1);
  const auto layer = f.layer(GetParam());
  for (const Shape& shape : {Shape{33}, Shape{5, 33}, Shape{2, 3, 33}, Shape{2, 1, 3, 33}}) {
    const Doubles x = random_doubles(shape.numel(), 9);
    const LazyTensor y = layer->forward(make_tensor(x, shape, DType::f32, GetParam()));
    Shape expected = shape;
    expected[shape.rank() - 1] = 7;
    EXPECT_EQ(y.shape(), expected);
    expect_close(y, f.apply(x), 5e-5, shape.to_string());
  }
}

TEST_P(LoraTest, RanksOneToSixtyFour) {
  for (const std::int64_t rank : {1, 2, 3, 7, 8, 16, 33, 64}) {
    const Factors f(72, 65, rank, 16, to_size(rank));
    const Doubles x = random_doubles(5 * 72, 9);
    expect_close(f.layer(GetParam())->forward(make_tensor(x, Shape{5, 72}, DType::f32, GetParam())),
                 f.apply(x), 2e-4, std::to_string(rank));
  }
}

TEST_P(LoraTest, ChainedLayers) {
  const Factors first(10, 17, 4, 8, 1);
  const Factors second(17, 6, 2, 4, 11);
  const Doubles x = random_doubles(3 * 10, 9);
  const LazyTensor y =
      second.layer(GetParam())
          ->forward(first.layer(GetParam())->forward(make_tensor(x, Shape{3, 10}, DType::f32, GetParam())));
  expect_close(y, second.apply(first.apply(x)), 2e-4);
}

TEST_P(LoraTest, BeginsAsItsBase) {
  const Factors f(12, 9, 4, 16, 1);
  auto base = std::make_unique<Linear>(make_tensor(f.w, Shape{9, 12}, DType::f32, GetParam()));
  LoRALinear layer(std::move(base), {.rank = 4}, 7);
  const Doubles x = random_doubles(2 * 12, 3);
  expect_close(layer.forward(make_tensor(x, Shape{2, 12}, DType::f32, GetParam())),
               linear_reference(x, f.w, {}, 12, 9), 2e-5);
  const Doubles a = to_doubles(layer.lora_a());
  const double bound = 1 / std::sqrt(12.0);
  double highest = 0;
  for (const double v : a) highest = std::max(highest, std::abs(v));
  EXPECT_LE(highest, bound);
  EXPECT_GT(highest, bound / 2);
  for (const double v : to_doubles(layer.lora_b())) EXPECT_EQ(v, 0);
}

TEST_P(LoraTest, DropoutActsOnTheAdapterAlone) {
  const Factors f(64, 5, 2, 4, 1);
  LoRAOptions options = f.options();
  options.dropout = 0.5;
  const auto make = [&](const Doubles& v, const Shape& s) {
    return make_tensor(v, s, DType::f32, GetParam());
  };
  LoRALinear layer(std::make_unique<Linear>(make(f.w, Shape{5, 64})), options, make(f.a, Shape{2, 64}),
                   make(f.b, Shape{5, 2}));
  const Doubles x = random_doubles(64, 3);
  const LazyTensor input = make(x, Shape{64});
  EXPECT_NE(to_doubles(layer.forward(input)), to_doubles(layer.forward(input)));
  layer.set_training(false);
  expect_close(layer.forward(input), f.apply(x), 2e-5);
}

INSTANTIATE_TEST_SUITE_P(Devices, LoraTest, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(LoraGradientTest, FactorsAndInput) {
  for (const Shape& shape : {Shape{5}, Shape{3, 5}, Shape{2, 3, 5}, Shape{2, 1, 3, 5}}) {
    const std::vector<Shape> shapes{shape, Shape{4, 5}, Shape{2, 5}, Shape{4, 2}};
    std::vector<Doubles> values;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      values.push_back(random_doubles(shapes[i].numel(), 40 + i));
    check_gradients(
        [](std::span<const LazyTensor> in) {
          LoRALinear layer(std::make_unique<Linear>(in[1]), {.rank = 2, .alpha = 5}, in[2], in[3]);
          const LazyTensor y = layer.forward(in[0]);
          return sum(square(y) * y);
        },
        values, shapes);
  }
}

TEST(LoraGradientTest, ChainedLayers) {
  const std::vector<Shape> shapes{Shape{3, 5}, Shape{4, 5}, Shape{2, 5}, Shape{4, 2},
                                  Shape{6, 4}, Shape{3, 4}, Shape{6, 3}};
  std::vector<Doubles> values;
  for (std::size_t i = 0; i < shapes.size(); ++i) values.push_back(random_doubles(shapes[i].numel(), 50 + i));
  check_gradients(
      [](std::span<const LazyTensor> in) {
        LoRALinear first(std::make_unique<Linear>(in[1]), {.rank = 2, .alpha = 5}, in[2], in[3]);
        LoRALinear second(std::make_unique<Linear>(in[4]), {.rank = 3, .alpha = 2}, in[5], in[6]);
        return sum(square(second.forward(silu(first.forward(in[0])))));
      },
      values, shapes);
}

TEST(LoraArgumentsTest, RankAboveTheWidthNamesTheModule) {
  const auto make = [](int rank) {
    LoRALinear layer(std::make_unique<Linear>(6, 4, false, 0.02, 1, Device::cpu()), {.rank = rank}, 1,
                     "model.layers.0.self_attn.k_proj");
  };
  make(4);
  try {
    make(5);
    FAIL() << "rank 5 of a 6 to 4 layer was accepted";
  } catch (const ValueError& e) {
    const std::string message = e.what();
    for (const char* part : {"model.layers.0.self_attn.k_proj", "5", "in 6", "out 4"})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(LoraArgumentsTest, OptionsAndTargets) {
  EXPECT_THROW((LoRAOptions{.rank = 0}.validate()), ValueError);
  EXPECT_THROW((LoRAOptions{.alpha = 0}.validate()), ValueError);
  EXPECT_THROW((LoRAOptions{.dropout = 1}.validate()), ValueError);
  EXPECT_DOUBLE_EQ((LoRAOptions{.rank = 4, .alpha = 6}.scaling()), 1.5);
  Llama model(small_config(4, 2), Device::cpu(), 1);
  EXPECT_EQ(resolve_lora_targets(model, {"all-linear"}),
            (std::vector<std::string>{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
                                      "down_proj"}));
  EXPECT_EQ(resolve_lora_targets(model, {"v_proj", "q_proj", "v_proj"}),
            (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_THROW(resolve_lora_targets(model, {}), ValueError);
  EXPECT_THROW(resolve_lora_targets(model, {"embed_tokens"}), ValueError);
  try {
    resolve_lora_targets(model, {"qproj"});
    FAIL() << "qproj was accepted";
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("gate_proj"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace caldera::testing
