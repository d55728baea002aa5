// The modules of lm/nn against plain loops in double precision, on every device.
#include <numbers>

#include "lm/nn/attention/attention.h"
#include "lm/nn/caches/kv_cache.h"
#include "lm/nn/feed_forward/gated_mlp.h"
#include "lm/nn/feed_forward/hidden_act.h"
#include "lm/nn/layers/dropout.h"
#include "lm/nn/layers/embedding.h"
#include "lm/nn/norms/rms_norm.h"
#include "ops/ops.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

constexpr double kTolerance = 2e-5;

class NnTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }

  LazyTensor tensor(const Doubles& values, const Shape& shape) const {
    return make_tensor(values, shape, DType::f32, GetParam());
  }
  std::unique_ptr<Projection> linear(const Doubles& weight, std::int64_t out, std::int64_t in) const {
    return std::make_unique<Linear>(tensor(weight, Shape{out, in}));
  }
};

TEST_P(NnTest, LinearTakesAnyRank) {
  const std::int64_t in = 33;
  const std::int64_t out = 7;
  const Doubles w = random_doubles(out * in, 1);
  const Doubles b = random_doubles(out, 2);
  Linear layer(tensor(w, Shape{out, in}), tensor(b, Shape{out}));
  for (const Shape& shape : {Shape{in}, Shape{5, in}, Shape{2, 3, in}, Shape{2, 1, 3, in}}) {
    const Doubles x = random_doubles(shape.numel(), 3);
    const LazyTensor y = layer.forward(tensor(x, shape));
    Shape expected = shape;
    expected[shape.rank() - 1] = out;
    EXPECT_EQ(y.shape(), expected);
    expect_close(y, linear_reference(x, w, b, in, out), kTolerance, shape.to_string());
  }
  EXPECT_THROW(layer.forward(tensor(random_doubles(out, 4), Shape{out})), ShapeError);
}

TEST_P(NnTest, LinearTakesFloatingWeightsOnly) {
  const LazyTensor w = tensor({1, 2, 3, 4}, Shape{2, 2});
  const LazyTensor b = tensor({1, 2}, Shape{2});
  EXPECT_NO_THROW(Linear(w.to(DType::bf16), b));
  for (const DType dtype : {DType::i32, DType::u8, DType::boolean}) {
    EXPECT_THROW(Linear(w.to(dtype), b), DTypeError);
    EXPECT_THROW(Linear(w, b.to(dtype)), DTypeError);
  }
}

TEST_P(NnTest, EmbeddingPicksRows) {
  const Doubles w = random_doubles(11 * 5, 1);
  Embedding layer(tensor(w, Shape{11, 5}));
  const std::vector<std::int32_t> ids{10, 0, 3, 3, 7, 1};
  const LazyTensor y = layer.forward(LazyTensor::from_vector(ids, Shape{2, 3}, GetParam()));
  EXPECT_EQ(y.shape(), (Shape{2, 3, 5}));
  Doubles expected;
  for (const std::int32_t id : ids)
    expected.insert(expected.end(), w.begin() + std::ptrdiff_t{5} * id,
                    w.begin() + std::ptrdiff_t{5} * (id + 1));
  expect_close(y, expected, 1e-6);
}

TEST_P(NnTest, RmsNorm) {
  for (const std::int64_t dim : {1, 7, 64, 1025}) {
    const Doubles x = random_doubles(3 * dim, 1, -3, 3);
    const Doubles w = random_doubles(dim, 2);
    RMSNorm layer(tensor(w, Shape{dim}), 1e-5);
    expect_close(layer.forward(tensor(x, Shape{3, 1, dim})), rms_norm_reference(x, w, 1e-5), kTolerance);
  }
}

TEST_P(NnTest, RotaryTurnsPairs) {
  const Doubles x = random_doubles(2 * 3 * 5 * 8, 1);
  RotaryEmbedding rotary(8, 512, 10000.0, GetParam());
  for (const std::int64_t offset : {0, 1, 300, 507}) {
    const LazyTensor y = apply_rotary(tensor(x, Shape{2, 3, 5, 8}), rotary.angles(5, offset));
    expect_close(y, rotary_reference(x, 5, 8, 10000.0, offset), kTolerance, std::to_string(offset));
  }
  EXPECT_THROW(rotary.angles(5, 508), ValueError);
  EXPECT_THROW(RotaryEmbedding(7, 10, 1e4, GetParam()), ValueError);
}

TEST_P(NnTest, GroupedQueryAttention) {
  for (const AttentionSizes& s : {AttentionSizes{2, 6, 2, 5, 5, 4}, AttentionSizes{1, 3, 3, 7, 7, 8},
                                  AttentionSizes{2, 4, 1, 1, 9, 6}, AttentionSizes{1, 4, 2, 3, 33, 16}}) {
    const Doubles q = random_doubles(s.batch * s.heads * s.queries * s.dim, 1, -2, 2);
    const Doubles k = random_doubles(s.batch * s.kv_heads * s.keys * s.dim, 2, -2, 2);
    const Doubles v = random_doubles(s.batch * s.kv_heads * s.keys * s.dim, 3, -2, 2);
    const Shape kv{s.batch, s.kv_heads, s.keys, s.dim};
    for (const std::int64_t offset : {std::int64_t{0}, s.keys - s.queries}) {
      const LazyTensor out = scaled_dot_product_attention(
          tensor(q, Shape{s.batch, s.heads, s.queries, s.dim}), tensor(k, kv), tensor(v, kv),
          {.mask = causal_mask(s.queries, s.keys, offset, GetParam()), .enable_gqa = true});
      expect_close(out, attention_reference(q, k, v, s, offset), kTolerance);
    }
  }
}

TEST_P(NnTest, FullyMaskedRowIsTheMeanAndNotNan) {
  const Doubles v = random_doubles(3 * 2, 1);
  const LazyTensor k = tensor(random_doubles(3 * 2, 2), Shape{1, 1, 3, 2});
  const LazyTensor q = tensor(random_doubles(2 * 2, 3), Shape{1, 1, 2, 2});
  const LazyTensor out = scaled_dot_product_attention(
      q, k, tensor(v, Shape{1, 1, 3, 2}), {.mask = causal_mask(2, 3, -1, GetParam()), .scale = 1});
  const Doubles values = to_doubles(out);
  EXPECT_NEAR(values[0], (v[0] + v[2] + v[4]) / 3, 1e-6);  // query 0 sees nothing
  EXPECT_NEAR(values[2], v[0], 1e-6);                      // query 1 sees key 0
}

TEST_P(NnTest, GatedMlpWithEachActivation) {
  const Doubles gate = random_doubles(7 * 5, 1);
  const Doubles up = random_doubles(7 * 5, 2);
  const Doubles down = random_doubles(5 * 7, 3);
  const Doubles x = random_doubles(6 * 5, 4, -3, 3);
  const auto gelu_exact = [](double v) { return v * 0.5 * std::erfc(-v / std::numbers::sqrt2); };
  const auto gelu_tanh = [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
  };
  const auto relu_of = [](double v) { return std::max(v, 0.0); };
  const std::vector<std::pair<const char*, std::function<double(double)>>> activations{
      {"silu", silu_reference}, {"swish", silu_reference},        {"gelu", gelu_exact},
      {"gelu_new", gelu_tanh},  {"gelu_pytorch_tanh", gelu_tanh}, {"relu", relu_of}};
  for (const auto& [name, reference] : activations) {
    GatedMLP layer(linear(gate, 7, 5), linear(up, 7, 5), linear(down, 5, 7), activation_of(name));
    Doubles inner = linear_reference(x, gate, {}, 5, 7);
    const Doubles right = linear_reference(x, up, {}, 5, 7);
    for (std::size_t i = 0; i < inner.size(); ++i) inner[i] = reference(inner[i]) * right[i];
    expect_close(layer.forward(tensor(x, Shape{2, 3, 5})), linear_reference(inner, down, {}, 7, 5),
                 kTolerance, name);
  }
  EXPECT_THROW(activation_of("no-such-activation"), ValueError);
}

TEST_P(NnTest, DropoutKeepsTheExpectedShareAndScales) {
  const std::int64_t n = 20000;
  const Doubles x = random_doubles(n, 1, 0.5, 1);
  Dropout layer(0.3, 5);
  layer.set_random_seed(17);
  const LazyTensor input = tensor(x, Shape{n});
  const Doubles first = to_doubles(layer.forward(input));
  std::int64_t kept = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] == 0) continue;
    ++kept;
    ASSERT_NEAR(first[i], x[i] / 0.7, 1e-6);
  }
  EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(n), 0.7, 0.015);
  EXPECT_NE(to_doubles(layer.forward(input)), first) << "every call draws anew";
  layer.set_random_seed(17);
  EXPECT_EQ(to_doubles(layer.forward(input)), first) << "a seed starts the stream over";
  layer.set_training(false);
  EXPECT_EQ(layer.forward(input).node_id(), input.node_id());
  EXPECT_THROW(Dropout(1.0), ValueError);
}

TEST_P(NnTest, KvCacheGrows) {
  KVCache cache(1, 1, 2, 2, 4, DType::f32, GetParam());
  const Doubles k = random_doubles(2 * 2 * 4, 5);
  cache.begin(2);
  cache.write(0, tensor(k, Shape{1, 2, 2, 4}), tensor(k, Shape{1, 2, 2, 4}) * 2.0);
  cache.finish();
  cache.grow(5);
  EXPECT_EQ(cache.capacity(), 5);
  EXPECT_EQ(cache.position(), 2);
  Doubles expected(to_size(2 * 5 * 4), 0);
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t i = 0; i < 8; ++i) expected[to_size(h * 20 + i)] = k[to_size(h * 8 + i)];
  expect_close(cache.keys(0), expected, 1e-6);
  for (double& d : expected) d *= 2;
  expect_close(cache.values(0), expected, 1e-6);
  EXPECT_THROW(cache.grow(4), ValueError);
  cache.begin(3);
}

TEST_P(NnTest, KvCacheHoldsWhatWasWritten) {
  const std::int64_t capacity = 6;
  KVCache cache(1, 2, 3, capacity, 4, DType::f32, GetParam());
  Doubles expected(to_size(2 * 3 * capacity * 4), 0);
  std::int64_t position = 0;
  for (const std::int64_t length : {3, 1, 2}) {
    const Doubles k = random_doubles(2 * 3 * length * 4, to_size(10 + length));
    for (std::int64_t h = 0; h < 6; ++h)
      for (std::int64_t i = 0; i < length * 4; ++i)
        expected[to_size((h * capacity + position) * 4 + i)] = k[to_size(h * length * 4 + i)];
    const LazyTensor rows = tensor(k, Shape{2, 3, length, 4});
    cache.begin(length);
    cache.write(0, rows, rows * 2.0);
    cache.finish();
    eval(cache.state());
    position += length;
    EXPECT_EQ(cache.position(), position);
    expect_close(cache.keys(0), expected, 1e-6);
    Doubles doubled = expected;
    for (double& d : doubled) d *= 2;
    expect_close(cache.values(0), doubled, 1e-6);
  }
  EXPECT_THROW(cache.begin(1), ValueError);
  cache.truncate(2);
  EXPECT_EQ(cache.position(), 2);
  EXPECT_THROW(cache.truncate(3), ValueError);
  cache.begin(4);
}

// What torch.nn gives a layer that is told its widths alone.
TEST_P(NnTest, LayersHaveTheDefaultsOfTorch) {
  const Linear layer(16, 48, {.device = GetParam(), .seed = 7});
  const Linear again(16, 48, {.device = GetParam(), .seed = 7});
  EXPECT_EQ(to_doubles(layer.weight()), to_doubles(again.weight()));
  EXPECT_NE(to_doubles(layer.weight()),
            to_doubles(Linear(16, 48, {.device = GetParam(), .seed = 8}).weight()));
  for (const LazyTensor& tensor : {layer.weight(), layer.bias()}) {
    const Doubles values = to_doubles(tensor);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    EXPECT_GE(*low, -0.25);
    EXPECT_LE(*high, 0.25);
    EXPECT_LT(*low, -0.2);
    EXPECT_GT(*high, 0.2);
  }
  EXPECT_EQ(layer.bias().shape(), (Shape{48}));
  EXPECT_FALSE(Linear(3, 4, {.bias = false}).bias().defined());
  EXPECT_THROW(Linear(0, 4), ValueError);
  EXPECT_NE(to_doubles(Linear(3, 4).weight()), to_doubles(Linear(3, 4).weight()));
  manual_seed(5);
  const Doubles drawn = to_doubles(Linear(3, 4).weight());
  manual_seed(5);
  EXPECT_EQ(to_doubles(Linear(3, 4).weight()), drawn);
  Linear first(3, 5);
  Linear second(5, 2);
  RMSNorm norm(5);
  Embedding table(11, 3);
  const LazyTensor ids =
      LazyTensor::from_vector(std::vector<std::int32_t>{1, 10, 4}, Shape{3}, default_device());
  EXPECT_EQ(second(norm(first(table(ids)))).shape(), (Shape{3, 2}));
  double squares = 0;
  Embedding large(64, 64);
  for (const double v : to_doubles(large.weight())) squares += v * v;
  // The mean of 4096 squares of normal numbers deviates by sqrt(2 / 4096) = 0.022: this is four and a half
  // times that.
  EXPECT_NEAR(squares / (64.0 * 64.0), 1, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Devices, NnTest, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(NnGradientTest, AttentionModule) {
  const AttentionConfig config{.hidden_size = 5, .heads = 4, .kv_heads = 2, .head_dim = 2};
  const std::vector<Shape> shapes{Shape{2, 3, 5}, Shape{8, 5}, Shape{4, 5}, Shape{4, 5}, Shape{5, 8}};
  std::vector<Doubles> values;
  for (std::size_t i = 0; i < shapes.size(); ++i) values.push_back(random_doubles(shapes[i].numel(), 20 + i));
  check_gradients(
      [&](std::span<const LazyTensor> in) {
        Attention layer(config, std::make_unique<Linear>(in[1]), std::make_unique<Linear>(in[2]),
                        std::make_unique<Linear>(in[3]), std::make_unique<Linear>(in[4]));
        RotaryEmbedding rotary(2, 16, 100.0, Device::cpu());
        const AttentionContext context = make_attention_context(rotary, 1, 3, nullptr);
        return sum(square(layer.forward(in[0], context, 0)));
      },
      values, shapes);
}

TEST(NnGradientTest, NormAndFeedForward) {
  const std::vector<Shape> shapes{Shape{2, 3, 5}, Shape{5}, Shape{7, 5}, Shape{7, 5}, Shape{5, 7}};
  std::vector<Doubles> values;
  for (std::size_t i = 0; i < shapes.size(); ++i) values.push_back(random_doubles(shapes[i].numel(), 30 + i));
  check_gradients(
      [](std::span<const LazyTensor> in) {
        RMSNorm norm(in[1], 1e-5);
        GatedMLP layer(std::make_unique<Linear>(in[2]), std::make_unique<Linear>(in[3]),
                       std::make_unique<Linear>(in[4]), silu);
        return sum(square(in[0] + layer.forward(norm.forward(in[0]))));
      },
      values, shapes);
}

TEST(NnGradientTest, EmbeddingAddsRepeatedRows) {
  const LazyTensor ids =
      LazyTensor::from_vector(std::vector<std::int32_t>{2, 0, 2, 4}, Shape{2, 2}, Device::cpu());
  check_gradients(
      [&](std::span<const LazyTensor> in) {
        Embedding layer(in[0]);
        const LazyTensor y = layer.forward(ids);
        return sum(square(y) * y);
      },
      {random_doubles(5 * 3, 1)}, {Shape{5, 3}});
}

TEST(ModuleTest, NamesFreezingAndCounting) {
  GatedMLP layer(std::make_unique<Linear>(3, 4, true, 0.02, 1, Device::cpu()),
                 std::make_unique<Linear>(3, 4, false, 0.02, 2, Device::cpu()),
                 std::make_unique<Linear>(4, 3, false, 0.02, 3, Device::cpu()), silu);
  std::vector<std::string> names;
  for (const Parameter& p : layer.parameters()) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"gate_proj.weight", "gate_proj.bias", "up_proj.weight",
                                             "down_proj.weight"}));
  EXPECT_EQ(layer.parameter_count(), 12 + 4 + 12 + 12);
  EXPECT_EQ(layer.trainable_parameter_count(), layer.parameter_count());
  layer.freeze();
  EXPECT_TRUE(layer.trainable_parameters().empty());
  EXPECT_TRUE(layer.gate_proj->is_training());
  layer.set_training(false);
  EXPECT_FALSE(layer.gate_proj->is_training());
}

TEST(ModuleTest, SeedsOfStreamsDiffer) {
  EXPECT_NE(mix_seed(1, 0), mix_seed(1, 1));
  EXPECT_NE(mix_seed(1, 0), mix_seed(2, 0));
  EXPECT_NE(mix_seed(1, 1), mix_seed(2, 0));
}

}  // namespace
}  // namespace caldera::testing
