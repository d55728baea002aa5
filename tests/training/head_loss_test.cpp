// Losses of a head that never make all logits: against the logits of all rows in f64, their memory, and the
// way that the trainer takes.
#include <algorithm>
#include <cmath>
#include <random>
#include <span>

#include "engine/runtime/evaluate.h"
#include "lm/formats/quantize/encoders.h"
#include "ops/quantized/quantized_products.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"
#include "tests/training/objective_setup.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/loss.h"
#include "training/objectives/next_token.h"

namespace caldera::testing {
namespace {

/// A head with what those of the families have, over random hidden states and targets.
struct HeadCase {
  std::int64_t rows = 1, features = 1, classes = 1;
  bool with_bias = false;
  double divisor = 1;
  double softcap = 0;

  LazyTensor finish(const LazyTensor& products) const {
    const LazyTensor scaled = divisor == 1 ? products : products / divisor;
    return softcap == 0 ? scaled : tanh(scaled / softcap) * softcap;
  }
  LazyTensor logits(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias) const {
    const LazyTensor products = matmul(x, transpose(weight));
    return finish(with_bias ? products + bias : products);
  }
};

HeadCase random_case(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  return {.rows = 1 + below(40),
          .features = 1 + below(33),
          .classes = 2 + below(300),
          .with_bias = below(2) == 0,
          .divisor = below(2) == 0 ? 1.0 : 4.0,
          .softcap = below(2) == 0 ? 0.0 : 3.0};
}

double norm_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

/// The difference of two tensors beside the norm of what is expected.
double distance(const LazyTensor& actual, const LazyTensor& expected) {
  std::vector<double> difference = to_doubles(actual);
  const std::vector<double> wanted = to_doubles(expected);
  EXPECT_EQ(difference.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) difference[i] -= wanted[i];
  return norm_of(difference) / std::max(norm_of(wanted), 1e-30);
}

class HeadLossTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

// Random sets of sizes, heads and blocks: values and gradients equal those with the logits of all rows, which
// are computed in f64 on the CPU. A squared sum over groups stands for losses that are no sum over rows.
TEST_P(HeadLossTest, InPartsAsWithAllLogits) {
  std::mt19937_64 random(7);
  for (int set = 0; set < 50; ++set) {
    const HeadCase head = random_case(random);
    const Doubles hidden = random_doubles(head.rows * head.features, random(), -1, 1);
    const Doubles matrix = random_doubles(head.classes * head.features, random(), -1, 1);
    const Doubles bias = random_doubles(head.classes, random(), -1, 1);
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < head.rows; ++i)
      ids.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(head.classes)));
    struct Result {
      LazyTensor value;
      std::vector<LazyTensor> grads;
    };
    // What the traits leave out is chosen; without any, all rows at once.
    const auto run = [&](DType dtype, Device device, const HeadTraits* traits) -> Result {
      const LazyTensor x = make_tensor(hidden, Shape{head.rows, head.features}, dtype, device);
      const LazyTensor w = make_tensor(matrix, Shape{head.classes, head.features}, dtype, device);
      const LazyTensor b = make_tensor(bias, Shape{head.classes}, dtype, device);
      const LazyTensor targets = LazyTensor::from_vector(ids, Shape{head.rows}, device);
      const Head logits = [&](const LazyTensor& rows) { return head.logits(rows, w, b); };
      LazyTensor log_p;
      if (traits == nullptr) {
        const LazyTensor all = log_softmax(logits(x));
        log_p = squeeze(take_along_axis(all, expand_dims(targets, -1), -1), -1);
      } else {
        HeadTraits own = *traits;
        if (own.matrix)
          own.matrix = LinearHead{w, [&](const LazyTensor& products) { return head.finish(products); }};
        log_p = log_probabilities_of_head(x, head.classes, logits, targets, own);
      }
      const LazyTensor value = square(sum(log_p)) * 0.01;
      std::vector<LazyTensor> inputs{x};
      if (traits == nullptr || traits->is_trained) inputs.push_back(w);
      if (inputs.size() > 1 && head.with_bias) inputs.push_back(b);
      return {value, grad(value, inputs)};
    };
    if (!head.with_bias && set % 2 == 0) ids.back() = static_cast<std::int32_t>(head.classes - 1);
    const Result expected = run(DType::f64, Device::cpu(), nullptr);
    std::vector<HeadTraits> ways{{.is_trained = true, .rows = 1 + set % 7},
                                 {.is_trained = false, .rows = 1 + set % 5}};
    if (!head.with_bias)
      ways.push_back(
          {.is_trained = false, .matrix = LinearHead{}, .rows = 1 + set % 9, .classes = 1 + set % 40});
    for (const HeadTraits& way : ways) {
      SCOPED_TRACE(fmt::format("set {}: {} rows, {} features, {} classes; way {}", set, head.rows,
                               head.features, head.classes, &way - ways.data()));
      const Result got = run(DType::f32, GetParam(), &way);
      EXPECT_LE(distance(got.value, expected.value), 1e-6);
      for (std::size_t k = 0; k < got.grads.size(); ++k)
        EXPECT_LE(distance(got.grads[k], expected.grads[k]), 1e-6) << "gradient " << k;
      // In f64 the parts are the whole to rounding: what is left above is f32's.
      if (GetParam().kind != DeviceKind::cpu) continue;
      const Result exact = run(DType::f64, Device::cpu(), &way);
      EXPECT_LE(distance(exact.value, expected.value), 1e-12);
      for (std::size_t k = 0; k < exact.grads.size(); ++k)
        EXPECT_LE(distance(exact.grads[k], expected.grads[k]), 1e-12) << "gradient " << k;
    }
  }
}

// A head that stays quantised is no matrix of floats: its rows go in parts. The oracle dequantises it, and
// makes all logits in f64.
TEST_P(HeadLossTest, OfAQuantisedHeadAsWithAllLogits) {
  std::mt19937_64 random(11);
  const Device device = GetParam();
  // Some sizes, each with many hidden states: on Vulkan each is kernels of its own.
  std::vector<HeadCase> heads;
  for (int i = 0; i < 5; ++i) {
    heads.push_back(random_case(random));
    heads.back().with_bias = false;
    heads.back().features = 32 * (1 + static_cast<std::int64_t>(random() % 3));
  }
  for (int set = 0; set < 50; ++set) {
    const HeadCase& head = heads[static_cast<std::size_t>(set) % heads.size()];
    const QuantizedFormat format = set % 2 == 0 ? QuantizedFormat::q8_0 : QuantizedFormat::q4_0;
    SCOPED_TRACE(fmt::format("set {}: {} rows, {} features, {} classes, {}", set, head.rows, head.features,
                             head.classes, name(format)));
    const Doubles hidden = random_doubles(head.rows * head.features, random(), -1, 1);
    const Doubles matrix = random_doubles(head.classes * head.features, random(), -1, 1);
    const Doubles weights = random_doubles(head.rows, random(), 0.5, 2);
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < head.rows; ++i)
      ids.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(head.classes)));
    const std::vector<float> floats(matrix.begin(), matrix.end());
    const auto bytes = detail::encode_blocks(format, floats, head.features, "head");
    const auto* const codes = reinterpret_cast<const std::uint8_t*>(bytes.data());
    const auto quantized = [&](Device on) {
      return quantized_tensor(
          {format}, Shape{head.classes, head.features},
          {LazyTensor::from_span(std::span(codes, bytes.size()),
                                 Shape{head.classes, std::ssize(bytes) / head.classes}, on)});
    };
    const QuantizedTensor q = quantized(device);
    const LazyTensor w = astype(dequantize(quantized(Device::cpu())), DType::f64);

    const LazyTensor x = make_tensor(hidden, Shape{head.rows, head.features}, DType::f32, device);
    const LazyTensor exact_x =
        make_tensor(to_doubles(x), Shape{head.rows, head.features}, DType::f64, Device::cpu());
    const LazyTensor all = log_softmax(head.logits(exact_x, w, {}));
    const LazyTensor exact_targets = LazyTensor::from_vector(ids, Shape{head.rows});
    const LazyTensor log_p = squeeze(take_along_axis(all, expand_dims(exact_targets, -1), -1), -1);
    const LazyTensor own = make_tensor(weights, Shape{head.rows}, DType::f32, device);
    const LazyTensor exact_own = make_tensor(to_doubles(own), Shape{head.rows}, DType::f64, Device::cpu());

    const Head logits = [&](const LazyTensor& rows) { return head.finish(quantized_matmul(rows, q)); };
    const LazyTensor targets = LazyTensor::from_vector(ids, Shape{head.rows}, device);
    const std::int64_t at_a_time = 1 + set % 7;
    const auto compare = [&](const LazyTensor& got, const LazyTensor& expected) {
      EXPECT_LE(distance(got, expected), 1e-6);
      EXPECT_LE(distance(grad(got, x), grad(expected, exact_x)), 1e-6);
    };
    compare(square(sum(log_probabilities_of_head(x, head.classes, logits, targets,
                                                 {.is_trained = false, .rows = at_a_time}))),
            square(sum(log_p)));
    compare(head_cross_entropy_sum(x, head.classes, logits, targets, own, {}, at_a_time).loss,
            -sum(log_p * exact_own));
  }
}

TEST_P(HeadLossTest, ATargetThatIsNoClassIsNaN) {
  const Device device = GetParam();
  const LazyTensor x = random_normal({3, 4}, 1, DType::f32, device);
  const LazyTensor w = random_normal({9, 4}, 2, DType::f32, device);
  const Head logits = [&](const LazyTensor& rows) { return matmul(rows, transpose(w)); };
  const LinearHead matrix{w, [](const LazyTensor& products) { return products; }};
  for (const bool blocks : {false, true}) {
    const HeadTraits traits{.is_trained = false,
                            .matrix = blocks ? std::optional(matrix) : std::nullopt,
                            .rows = 2,
                            .classes = blocks ? 4 : 0};
    const std::vector<float> got =
        log_probabilities_of_head(
            x, 9, logits, LazyTensor::from_vector(std::vector<std::int32_t>{8, 9, -1}, Shape{3}, device),
            traits)
            .to_vector<float>();
    EXPECT_TRUE(std::isfinite(got[0]));
    EXPECT_TRUE(std::isnan(got[1]) && std::isnan(got[2])) << blocks << ": " << got[1] << ", " << got[2];
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, HeadLossTest, ::testing::ValuesIn(tested_devices()), device_test_name);

/// A model of few features and 131,072 tokens, and a batch of 512 of them.
struct WideVocabulary {
  WideVocabulary() {
    ModelConfig config = objective_config();
    config.vocab_size = 131072;
    config.max_position_embeddings = 512;
    model = std::make_unique<Llama>(config, Device::cpu(), 1);
    batch.batch_size = 2;
    batch.seq_len = 256;
    for (int i = 0; i < 512; ++i) {
      batch.inputs.push_back((i * 7919) % 131072);
      batch.targets.push_back((i * 104729) % 131072);
      batch.weights.push_back(1);
    }
  }
  /// The arena of the loss and of the gradient of all that is trained, and the loss.
  std::pair<double, double> step(const LazyTensor& loss) {
    std::vector<LazyTensor> trained;
    for (const Parameter& parameter : model->trainable_parameters()) trained.push_back(*parameter.tensor);
    std::vector<LazyTensor> outputs = grad(loss, trained);
    outputs.push_back(loss);
    const auto plan = plan_for(outputs);
    eval(outputs);
    return {static_cast<double>(plan->arena_bytes), loss.item<double>()};
  }
  LazyTensor with_all_logits() {
    const LazyTensor logits = (*model)(model->make_ids(batch.inputs, batch.batch_size));
    return sum(cross_entropy_terms(logits, batch_targets(*model, batch)).losses);
  }

  std::unique_ptr<Llama> model;
  Batch batch;
};

TEST(HeadLossMemoryTest, AStepTakesLessThanAQuarterOfOneWithAllLogits) {
  WideVocabulary wide;
  apply_lora(*wide.model, {.rank = 2}, {"all-linear"}, 1);
  const auto [full_bytes, full_loss] = wide.step(wide.with_all_logits());
  const auto [bytes, loss] = wide.step(batch_loss(*wide.model, wide.batch).loss);
  EXPECT_GE(full_bytes, 512.0 * 131072 * 4);
  EXPECT_LT(bytes, 0.25 * full_bytes) << bytes / 0x1p20 << " MiB, " << full_bytes / 0x1p20 << " MiB";
  EXPECT_NEAR(loss, full_loss, 1e-6 * full_loss);
  // A loss that is no sum over tokens.
  const LazyTensor rows = row_log_probabilities(*wide.model, wide.batch);
  const auto [bytes_of_rows, squared] = wide.step(sum(square(rows)));
  EXPECT_LT(bytes_of_rows, 0.25 * full_bytes) << bytes_of_rows / 0x1p20 << " MiB";
  EXPECT_GT(squared, 0);
}

// All is trained, the tied head too: its gradient is a sum over parts, which is kept once.
TEST(HeadLossMemoryTest, ATrainedHeadKeepsItsGradientAndAPart) {
  WideVocabulary wide;
  const auto [full_bytes, full_loss] = wide.step(wide.with_all_logits());
  const auto [bytes, loss] = wide.step(batch_loss(*wide.model, wide.batch).loss);
  EXPECT_LT(bytes, 0.6 * full_bytes) << bytes / 0x1p20 << " MiB, " << full_bytes / 0x1p20 << " MiB";
  EXPECT_NEAR(loss, full_loss, 1e-6 * full_loss);
}

}  // namespace
}  // namespace caldera::testing
