// The eager Trainer against a plain loop in double, and checkpoints from which a run goes on bit for bit.
#include <caldera/v1.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/eager/oracle.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/temp_folder.h"

namespace caldera::v1 {
namespace {

using testing::TempFolder;

/// Batches of one number each: loss = sum((w - target)^2).
Tensor loss_of(const Var& w, double target) {
  const Tensor difference = w.tensor() - target;
  return (difference * difference).sum();
}

TEST(EagerTrainer, StepsAreThoseOfThePlainFormula) {
  const Var w(Tensor({1.0F, -2.0F}, {2}));
  const TrainingConfig config{.num_epochs = 2,
                              .lr_scheduler = LRScheduler::warmup_cosine(2, 6, 0.1, 0.01),
                              .optimizer_config = {.weight_decay = 0.05},
                              .max_grad_norm = 1.5};
  Trainer trainer({w}, config);
  const std::vector<double> batches{0.5, 1.5, -1.0};
  const StepMetrics last = trainer.train(batches, [&](double target) { return loss_of(w, target); });

  // AdamW (Loshchilov and Hutter 2019) in double, with the norm of the gradient clipped.
  std::vector<double> x{1, -2}, m{0, 0}, v{0, 0};
  double loss = 0, norm = 0, rate = 0;
  for (int step = 0; step < 6; ++step) {
    const double target = batches[static_cast<std::size_t>(step % 3)];
    rate = config.lr_scheduler->get_lr(step);
    std::vector<double> g{2 * (x[0] - target), 2 * (x[1] - target)};
    loss = (g[0] * g[0] + g[1] * g[1]) / 4;
    norm = std::sqrt(g[0] * g[0] + g[1] * g[1]);
    const double scale = std::min(1.0, 1.5 / (norm + 1e-6));
    for (std::size_t i = 0; i < 2; ++i) {
      const double gradient = g[i] * scale;
      m[i] = 0.9 * m[i] + 0.1 * gradient;
      v[i] = 0.999 * v[i] + 0.001 * gradient * gradient;
      const double a = m[i] / (1 - std::pow(0.9, step + 1)), b = v[i] / (1 - std::pow(0.999, step + 1));
      x[i] -= rate * (a / (std::sqrt(b) + 1e-8) + 0.05 * x[i]);
    }
  }
  EXPECT_EQ(last.step, 6);
  EXPECT_EQ(trainer.global_step(), 6);
  EXPECT_NEAR(last.loss, loss, 1e-4);
  EXPECT_NEAR(last.grad_norm, norm, 1e-4);
  EXPECT_DOUBLE_EQ(last.learning_rate, rate);
  for (std::int64_t i = 0; i < 2; ++i) EXPECT_NEAR(w.tensor().at({i}), x[static_cast<std::size_t>(i)], 1e-4);
}

TEST(EagerTrainer, WhatIsNotFiniteChangesNothing) {
  const Var w(Tensor({1.0F}, {1}));
  AdamW optimizer;
  TrainingStep step({w}, optimizer);
  EXPECT_THROW(step.run([&] { return loss_of(w, std::numeric_limits<double>::infinity()); }), TrainingError);
  EXPECT_EQ(w.tensor().to_vector<float>(), std::vector<float>{1});
  EXPECT_EQ(step.run([&] { return loss_of(w, 0); }).step, 1);
  EXPECT_THROW(Trainer({w}, {.num_epochs = 0}), TrainingError);
  EXPECT_THROW(Trainer({w}, {.max_grad_norm = -1}), TrainingError);
  EXPECT_THROW(Trainer({}, {}), TrainingError);
  Trainer trainer({w}, {});
  EXPECT_THROW(trainer.train(std::vector<double>{}, [&](double) { return loss_of(w, 0); }), TrainingError);
}

TEST(EagerCheckpoint, ARunGoesOnBitForBit) {
  const TempFolder temp;
  const auto start = [] { return Var(oracle::random_tensor({3, 4}, 1, Device::cpu())); };
  const TrainingConfig config{.lr_scheduler = LRScheduler::cosine(20, 0.1, 0)};
  const Var whole = start();
  Trainer uninterrupted({whole}, config);
  for (int i = 0; i < 10; ++i) uninterrupted.step([&] { return loss_of(whole, i); });

  const Var first = start();
  Trainer before({first}, config);
  StepMetrics metrics;
  for (int i = 0; i < 4; ++i) metrics = before.step([&] { return loss_of(first, i); });
  const CheckpointMetadata written{.global_step = before.global_step(),
                                   .loss = metrics.loss,
                                   .learning_rate = metrics.learning_rate,
                                   .timestamp = CheckpointMetadata::now()};
  save_checkpoint(temp / "step4.safetensors", {{"w", first}}, written, &before.optimizer());

  const Var second(Tensor::zeros({3, 4}));
  Trainer after({second}, config);
  const CheckpointMetadata read =
      load_checkpoint(temp / "step4.safetensors", {{"w", second}}, &after.optimizer());
  EXPECT_EQ(read, written);
  after.set_global_step(read.global_step);
  for (int i = 4; i < 10; ++i) after.step([&] { return loss_of(second, i); });
  EXPECT_EQ(second.tensor().to_vector<float>(), whole.tensor().to_vector<float>());
}

TEST(EagerCheckpoint, WhatDoesNotFitChangesNothing) {
  const TempFolder temp;
  const Var w(Tensor({1.0F, 2.0F}, {2}));
  const auto path = temp / "file.safetensors";
  save_checkpoint(path, {{"w", w}}, {.global_step = 7, .loss = 0.1 + 0.2});
  EXPECT_EQ(load_checkpoint(path, {{"w", w}}).loss, 0.1 + 0.2);
  const auto kind = [&](const std::map<std::string, Var>& variables, const std::filesystem::path& from) {
    try {
      load_checkpoint(from, variables);
    } catch (const CheckpointError& error) {
      return error.kind();
    }
    return CheckpointError::Kind::SaveFailed;  // which loading does not throw
  };
  const Var other(Tensor({5.0F, 6.0F, 7.0F}, {3})), fine(Tensor({8.0F, 9.0F}, {2}));
  EXPECT_EQ(kind({{"w", other}}, path), CheckpointError::Kind::LoadFailed);               // another shape
  EXPECT_EQ(kind({{"w", fine}, {"v", other}}, path), CheckpointError::Kind::LoadFailed);  // one is missing
  EXPECT_EQ(kind({}, path), CheckpointError::Kind::LoadFailed);                           // one too many
  EXPECT_EQ(kind({{"w", fine}}, temp / "absent"), CheckpointError::Kind::LoadFailed);
  EXPECT_EQ(kind({{"w", fine}}, temp.put("torn", "not a checkpoint")), CheckpointError::Kind::InvalidFormat);
  EXPECT_EQ(fine.tensor().to_vector<float>(), (std::vector<float>{8, 9}));
  EXPECT_EQ(other.tensor().to_vector<float>(), (std::vector<float>{5, 6, 7}));
  EXPECT_THROW(save_checkpoint(temp / "no" / "such" / "folder", {{"w", w}}, {}), CheckpointError);
}

}  // namespace
}  // namespace caldera::v1
