// Objectives: what train() asks of them, their metrics, and the reference model.
#include "training/objectives/objective.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "lm/adapters/adapter_switch.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/training/objective_setup.h"
#include "training/evaluate/evaluate.h"
#include "training/objectives/registry.h"
#include "training/trainer/json_log.h"
#include "training/trainer/trainer.h"

namespace caldera {
namespace {

using testing::answer_pairs;
using testing::error_of;
using testing::objective_config;

std::unique_ptr<Llama> adapted_model() { return testing::adapted_model(Device::cpu(), /*dropout=*/0.1); }

// The sum over pairs of (log p(chosen) - log p(rejected)) - the reference's, squared: has pairs, a reference
// and metrics.
class MarginSquared final : public Objective {
 public:
  std::string_view name() const override { return "margin_squared"; }
  std::int64_t sequences_per_example() const override { return 2; }
  bool needs_reference() const override { return true; }
  std::int64_t count(const Batch& batch) const override { return batch.batch_size / 2; }
  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override {
    const LazyTensor margin = margins(models.policy(), batch);
    const LazyTensor reference = models.reference([&](CausalLM& model) { return margins(model, batch); });
    return {.loss = sum(square(margin - reference)),
            .metrics = {{"margin", sum(margin)}, {"reference_margin", sum(reference)}}};
  }
  static LazyTensor margins(CausalLM& model, const Batch& batch) {
    const LazyTensor ids = model.make_ids(batch.inputs, batch.batch_size);
    const Shape shape{batch.batch_size, batch.seq_len};
    const LazyTensor targets = LazyTensor::from_vector(batch.targets, shape, model.device());
    const LazyTensor weights = LazyTensor::from_vector(batch.weights, shape, model.device());
    const LazyTensor log_p = log_softmax(model(ids));
    const LazyTensor picked = squeeze(take_along_axis(log_p, expand_dims(targets, -1), -1), -1);
    const LazyTensor rows = reshape(sum(picked * weights, {1}), Shape{batch.batch_size / 2, 2});
    return sum(rows * LazyTensor::from_vector<float>({1, -1}, Shape{2}, model.device()), {1});
  }
};

struct RunRecords {
  std::vector<StepRecord> steps;
  std::vector<ValidationRecord> validations;
};

class StepRecorder final : public TrainObserver {
 public:
  explicit StepRecorder(RunRecords& to) : to_(to) {}
  void on_step(const StepRecord& record) override { to_.steps.push_back(record); }
  void on_validation(const ValidationRecord& record) override { to_.validations.push_back(record); }

 private:
  RunRecords& to_;
};

TEST(AdapterSwitch, TheModelIsItsBaseForAScope) {
  const auto model = adapted_model();
  model->set_training(false);
  Llama base(objective_config(), Device::cpu(), 5);
  const std::vector<std::int32_t> ids{1, 2, 3, 4, 5};
  const auto logits = [&](CausalLM& m) { return m(m.make_ids(ids)).to_vector<float>(); };
  const auto with = logits(*model);
  const auto plain = logits(base);
  EXPECT_NE(with, plain);
  {
    const AdapterSwitchedOff off(*model);
    EXPECT_EQ(logits(*model), plain);
    {
      const AdapterSwitchedOff again(*model);
      EXPECT_EQ(logits(*model), plain);
    }
    EXPECT_EQ(logits(*model), plain);  // the inner scope did not switch it on
  }
  EXPECT_EQ(logits(*model), with);
  EXPECT_TRUE(has_adapter(*model));
  EXPECT_FALSE(has_adapter(base));
}

TEST(Objective, TheReferenceIsTheModelWithoutItsAdapterAndHasNoGradient) {
  const auto model = adapted_model();
  model->set_training(true);
  const TokenDataset data = answer_pairs(4);
  const std::vector<Batch> batches = batches_for_evaluation(data, 4);
  const ObjectiveModels models(*model);
  const MarginSquared objective;
  const Evaluation got = evaluate(models, objective, batches);
  ASSERT_EQ(got.metrics.size(), 2u);
  EXPECT_TRUE(model->is_training());  // put back

  Llama base(objective_config(), Device::cpu(), 5);
  base.set_training(false);
  const double expected = sum(MarginSquared::margins(base, batches[0])).item<double>() / 4;
  EXPECT_NEAR(got.metrics[1].value, expected, 1e-4);
  EXPECT_NE(got.metrics[0].value, got.metrics[1].value);

  // A second model as the reference gives the same as the adapter switched off.
  const Evaluation other = evaluate(ObjectiveModels(*model, &base), objective, batches);
  EXPECT_NEAR(other.loss, got.loss, 1e-4 * std::abs(got.loss));

  // With the policy's part stopped nothing is left that could have a gradient.
  const LazyTensor reference =
      models.reference([&](CausalLM& m) { return MarginSquared::margins(m, batches[0]); });
  const LazyTensor b = *model->trainable_parameters().at(1).tensor;
  EXPECT_EQ(sum(square(grad(sum(reference) + sum(b) * 0.0, b))).item<float>(), 0.0F);
}

TEST(Objective, MetricsAreMeansOverTheStepHoweverItIsDivided) {
  const TokenDataset data = answer_pairs(6);
  const auto run = [&](std::int64_t batch_size, std::int64_t accumulation) {
    const auto model = adapted_model();
    RunRecords steps;
    StepRecorder recorder(steps);
    TrainObserver* observers[] = {&recorder};
    TrainOptions options;
    options.iterations = 2;
    options.batch_size = batch_size;
    options.grad_accumulation = accumulation;
    options.optimizer.learning_rate = 1e-3;
    options.seed = 4;
    model->set_training(false);
    train(ObjectiveModels(*model), MarginSquared(), data, &data, options, observers);
    return steps;
  };
  const RunRecords whole = run(6, 1);
  const RunRecords parts = run(2, 3);
  ASSERT_EQ(whole.steps.size(), 2u);
  // The validation before the first step sees the same data, without dropout.
  ASSERT_EQ(whole.validations.size(), 2u);
  ASSERT_EQ(whole.validations[0].metrics.size(), 2u);
  EXPECT_EQ(whole.validations[0].metrics[1].name, "reference_margin");
  EXPECT_NEAR(whole.validations[0].metrics[1].value, parts.validations[0].metrics[1].value, 1e-5);
  // The reference knows neither dropout nor the steps: the mean over all pairs, in every step.
  for (const RunRecords* steps : {&whole, &parts})
    for (const StepRecord& step : steps->steps) {
      ASSERT_EQ(step.metrics.size(), 2u);
      EXPECT_NEAR(step.metrics[1].value, whole.validations[0].metrics[1].value, 1e-4);
      EXPECT_TRUE(std::isfinite(step.loss));
    }
  EXPECT_CONTAINS(to_json_line(whole.steps[0]), "\"reference_margin\":");
  EXPECT_CONTAINS(to_json_line(whole.validations[0]), "\"val_margin\":");
}

TEST(Objective, RefusesWhatItCannotTrainOn) {
  Llama plain(objective_config(), Device::cpu(), 5);
  const TokenDataset data = answer_pairs(3);
  const auto error = [&](const Objective& objective, const TokenDataset& set) {
    return error_of<ValueError>(
        [&] { train(ObjectiveModels(plain), objective, set, nullptr, {.iterations = 1}); });
  };
  EXPECT_CONTAINS(error(MarginSquared(), data), "margin_squared compares the model with a reference");
  EXPECT_CONTAINS(error(*make_objective(), data), "; the data hold pairs");
  const TokenDataset texts({.examples = {{"", "abc"}}}, ByteTokenizer(), {.seq_len = 8});
  const auto model = adapted_model();
  EXPECT_CONTAINS(error_of<ValueError>([&] {
                    train(ObjectiveModels(*model), MarginSquared(), texts, nullptr, {.iterations = 1});
                  }),
                  "trains on pairs");
}

TEST(Objective, TheRegistryMakesThemByName) {
  EXPECT_EQ(make_objective()->name(), "sft");
  EXPECT_CONTAINS(error_of<ValueError>([] { make_objective({.name = "nonsense"}); }),
                  "valid: sft, dpo, orpo");
  EXPECT_CONTAINS(error_of<ValueError>([] {
                    make_objective({.name = "sft", .more = {{"beta", 1}}});
                  }),
                  "no option 'beta' (valid: none)");
}

}  // namespace
}  // namespace caldera
