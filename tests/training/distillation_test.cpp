// Distillation and embeddings against their formulas in double, and their gradients against central
// differences.
#include <cmath>

#include "tests/support/devices.h"
#include "tests/support/messages.h"
#include "tests/training/objective_setup.h"
#include "training/objectives/loss.h"
#include "training/objectives/registry.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

class DistillationTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

TokenDataset texts() {
  return TokenDataset({.examples = {{"", "a few words"}, {"", "more"}, {"", "others"}}}, ByteTokenizer(),
                      {.seq_len = 16});
}

/// softmax(logits / temperature) at every position, by loops.
std::vector<double> probabilities(CausalLM& model, const Batch& batch, double temperature) {
  const LazyTensor computed = model(model.make_ids(batch.inputs, batch.batch_size));
  std::vector<double> p = astype(computed, DType::f64).to_vector<double>();
  const auto classes = static_cast<std::size_t>(model.config().vocab_size);
  for (std::size_t at = 0; at < p.size(); at += classes) {
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += p[at + c] = std::exp(p[at + c] / temperature);
    for (std::size_t c = 0; c < classes; ++c) p[at + c] /= total;
  }
  return p;
}

TEST_P(DistillationTest, LossIsTheDivergenceFromTheTeacher) {
  const auto model = adapted_model(GetParam());
  const auto teacher = plain_model(GetParam(), /*seed=*/9);
  model->set_training(false);
  const Batch batch = whole(texts());
  const double temperature = 2, hard = 0.25;
  const std::vector<double> p = probabilities(*teacher, batch, temperature);
  const std::vector<double> q = probabilities(*model, batch, temperature);
  double kl = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    kl += p[i] * std::log(p[i] / q[i]) * batch.weights[i / static_cast<std::size_t>(258)];
  const auto counted = static_cast<double>(batch.counted());
  double nll = 0;
  for (const double row : row_log_p(*model, batch)) nll -= row / counted;
  kl /= counted;
  const auto objective =
      make_objective({.name = "distillation", .more = {{"temperature", temperature}, {"hard_weight", hard}}});
  const Evaluation got = evaluate(ObjectiveModels(*model, teacher.get()), *objective, {&batch, 1});
  ASSERT_GT(kl, 1e-4);
  EXPECT_NEAR(value_of(got.metrics, "kl"), kl, 1e-5 * std::max(1.0, kl));
  EXPECT_NEAR(value_of(got.metrics, "nll"), nll, 1e-5 * nll);
  EXPECT_NEAR(got.loss, (1 - hard) * temperature * temperature * kl + hard * nll, 1e-5 * got.loss);
}

// Vectors by loops over the hidden states of the last token; InfoNCE over the pairs of the batch.
TEST_P(DistillationTest, EmbeddingsAreToldApartFromTheBatchsOthers) {
  const auto model = adapted_model(GetParam());
  model->set_training(false);
  ExampleSet set;
  const std::vector<std::pair<std::string, std::string>> pairs{
      {"cat", "kitten"}, {"dog", "puppy"}, {"a", "bb"}};
  for (const auto& [anchor, positive] : pairs)
    set.examples.push_back(
        {.prompt = {}, .text = anchor, .rejected = positive, .kind = ExampleKind::similar});
  const ByteTokenizer tokenizer;
  const TokenDataset data(set, tokenizer, {.seq_len = 16});
  const Batch batch = whole(data);
  const auto vector_of = [&](std::int64_t index, std::int64_t which) {
    const std::span<const std::int32_t> ids = data.tokens(index, which);
    const LazyTensor states = model->hidden_states(model->make_ids(ids));
    const std::vector<float> all = states.to_vector<float>();
    std::vector<double> last(all.end() - 16, all.end());
    double norm = 0;
    for (const double x : last) norm += x * x;
    for (double& x : last) x /= std::sqrt(norm);
    return last;
  };
  const double temperature = 0.1;
  double loss = 0, similarity = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::vector<double> anchor = vector_of(i, 0);
    std::vector<double> scores;
    for (std::int64_t k = 0; k < 3; ++k) {
      const std::vector<double> positive = vector_of(k, 1);
      double score = 0;
      for (std::size_t d = 0; d < 16; ++d) score += anchor[d] * positive[d];
      scores.push_back(score);
    }
    double total = 0;
    for (const double score : scores) total += std::exp(score / temperature);
    loss += (std::log(total) - scores[static_cast<std::size_t>(i)] / temperature) / 3;
    similarity += scores[static_cast<std::size_t>(i)] / 3;
  }
  const auto objective =
      make_objective({.name = "embedding", .more = {{"similarity_temperature", temperature}}});
  const Evaluation got = evaluate(ObjectiveModels(*model), *objective, {&batch, 1});
  EXPECT_NEAR(got.loss, loss, 1e-4 * std::max(1.0, loss));
  EXPECT_NEAR(value_of(got.metrics, "similarity"), similarity, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Devices, DistillationTest, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(DistillationGradientTest, IsThatOfTheLoss) {
  const auto model = adapted_model();
  const auto teacher = plain_model(Device::cpu(), 9);
  compute_in_f64(*model);
  const GradcheckResult result = check_objective(*make_objective({.name = "distillation"}),
                                                 ObjectiveModels(*model, teacher.get()), whole(texts()));
  EXPECT_TRUE(result.passed) << result.message;
}

// In parts of rows as at once: the sum of the parts is the whole.
TEST(DistillationTest, RowsMayBeTakenInParts) {
  const LazyTensor x = random_normal({7, 5}, 1, DType::f64), y = random_normal({7, 4}, 2, DType::f64);
  const LazyTensor a = random_normal({5, 11}, 3, DType::f64), b = random_normal({4, 11}, 4, DType::f64);
  const LazyTensor weights = LazyTensor::from_vector<double>({1, 0, 1, 2, 1, 1, 0}, Shape{7});
  const auto divergence = [&](std::int64_t rows) {
    return head_divergence_sum({x, [&](const LazyTensor& r) { return matmul(r, a); }},
                               {y, [&](const LazyTensor& r) { return matmul(r, b); }}, 11, 1.5, weights,
                               rows);
  };
  EXPECT_NEAR(divergence(2).item<double>(), divergence(100).item<double>(), 1e-12);
}

TEST(DistillationTest, NeedsATeacher) {
  const auto model = adapted_model();
  const TokenDataset data = texts();
  EXPECT_MENTIONS(message_of<ValueError>([&] {
                    train(ObjectiveModels(*model), *make_objective({.name = "distillation"}), data, nullptr,
                          {.iterations = 1});
                  }),
                  "distillation learns from a second model");
}

}  // namespace
}  // namespace caldera::testing
