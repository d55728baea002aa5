// Runs of training on images that stop and go on; what they clip and average; what they refuse.
#include "training/vision/train/image_trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "tests/support/messages.h"
#include "tests/support/temp_folder.h"
#include "training/optim/registry.h"
#include "training/rl/spaces/random.h"
#include "training/vision/data/transforms.h"
#include "training/vision/models/image_model.h"
#include "training/vision/train/image_report.h"
#include "training/vision/train/image_step.h"

namespace caldera::vision {
namespace {

using testing::message_of;

/// 40 images of noise, 10 of each class.
ImageDatasetPtr noise_images() {
  rl::Random random(1);
  std::vector<std::uint8_t> pixels(40 * 16 * 16);
  std::vector<std::int64_t> labels(40);
  for (std::uint8_t& x : pixels) x = static_cast<std::uint8_t>(random.below(256));
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int64_t>(i % 4);
  return std::make_shared<MemoryImages>(1, 16, 16, std::move(pixels), std::move(labels), numbered_classes(4));
}

/// A network, its loader and a run of ten steps, five an epoch.
struct NoiseRun {
  std::unique_ptr<Layer> model = make_image_model(
      "lenet5", {.classes = 4, .channels = 1, .height = 16, .width = 16, .seed = 1, .device = Device::cpu()});
  DataLoader loader;
  ImageTrainer trainer;
  explicit NoiseRun(ImageTrainOptions options = {}, std::int64_t batch = 8)
      : loader(noise_images(), {.batch_size = batch,
                                .shuffle = true,
                                .seed = 3,
                                .transform = random_crop(16, 16, 2),
                                .mixup = 0.3,
                                .device = Device::cpu()}),
        trainer(*model, loader, with_defaults(std::move(options))) {}
  static ImageTrainOptions with_defaults(ImageTrainOptions options) {
    options.epochs = 2;
    options.optimizer.name = "adamw";
    options.optimizer.learning_rate = 0.01;
    return options;
  }
  std::vector<float> numbers() const {
    std::vector<float> all;
    for (const Parameter& p : model->parameters())
      for (const float x : p.tensor->to_vector<float>()) all.push_back(x);
    return all;
  }
};

TEST(ImageTrainer, GoesOnToTheLastBit) {
  const testing::TempFolder folder;
  NoiseRun whole({.ema_decay = 0.9}), first({.ema_decay = 0.9}), second({.ema_decay = 0.9});
  std::vector<double> losses, parts;
  whole.trainer.train([&](const ImageStepRecord& at) { return losses.push_back(at.loss), true; });
  ASSERT_EQ(losses.size(), 10U);
  first.trainer.train([&](const ImageStepRecord& at) { return parts.push_back(at.loss), at.step < 7; });
  first.trainer.save(folder / "state");
  second.trainer.load(folder / "state");
  EXPECT_EQ(second.trainer.steps_done(), 7);
  second.trainer.train([&](const ImageStepRecord& at) { return parts.push_back(at.loss), true; });
  EXPECT_EQ(losses, parts);
  EXPECT_EQ(whole.numbers(), second.numbers());
  whole.trainer.exchange_averages();
  second.trainer.exchange_averages();
  EXPECT_EQ(whole.numbers(), second.numbers());
}

TEST(ImageTrainer, KeepsTheMovingAverage) {
  NoiseRun run({.ema_decay = 0.75});
  std::vector<double> want;
  for (const float x : run.numbers()) want.push_back(x);
  run.trainer.train([&](const ImageStepRecord&) {
    const std::vector<float> now = run.numbers();
    for (std::size_t i = 0; i < want.size(); ++i)
      want[i] = 0.75 * want[i] + 0.25 * static_cast<double>(now[i]);
    return true;
  });
  const std::vector<float> last = run.numbers();
  run.trainer.exchange_averages();
  const std::vector<float> got = run.numbers();
  EXPECT_NE(got, last);
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << i;
}

// Plain gradient descent moves each number by at most the rate times the bound.
TEST(ImageTrainer, ClipsEachElement) {
  NoiseRun run;
  const std::vector<float> before = run.numbers();
  const auto descent =
      make_optimizer(run.model->trainable_parameters(), {.name = "sgd", .learning_rate = 1.0});
  run.loader.begin(0);
  image_step(*run.model, *descent, *run.loader.next(), {.learning_rate = 1, .max_grad_value = 1e-3});
  const std::vector<float> after = run.numbers();
  float most = 0;
  for (std::size_t i = 0; i < after.size(); ++i) most = std::max(most, std::abs(after[i] - before[i]));
  EXPECT_NEAR(most, 1e-3, 1e-6);
}

TEST(ImageTrainer, RefusesStatesOfOtherRuns) {
  const testing::TempFolder folder;
  NoiseRun run;
  run.trainer.save(folder / "state");
  const auto message = [&](ImageTrainOptions options, std::int64_t batch) {
    NoiseRun other(std::move(options), batch);
    return message_of<FileError>([&] { other.trainer.load(folder / "state"); });
  };
  EXPECT_MENTIONS(message({}, 10), "it trained with batches of 8 from 40 images");
  EXPECT_MENTIONS(message({.ema_decay = 0.5}, 8), "it kept no moving average");
  EXPECT_MENTIONS(message({.seed = 7}, 8), "its seed was 0, and this run's is 7");
  const auto wider = make_image_model(
      "lenet5", {.classes = 5, .channels = 1, .height = 16, .width = 16, .device = Device::cpu()});
  ImageTrainer other(*wider, run.loader, NoiseRun::with_defaults({}));
  EXPECT_MENTIONS(message_of<FileError>([&] { other.load(folder / "state"); }), "'fc3.weight' is (4, 84)");
  folder.put("text", "no state");
  EXPECT_THROW(run.trainer.load(folder / "text"), FileError);
}

// A log of a run that was killed is longer than its state.
TEST(ImageTrainer, LogsGoOnFromWhereTheRunDoes) {
  const testing::TempFolder folder;
  folder.put("log", "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"st");
  ImageLog(folder / "log", 2).add({.step = 3, .total = 4, .loss = 0.5});
  EXPECT_EQ(read_text_file(folder / "log"),
            "{\"step\":1}\n{\"step\":2}\n{\"step\":3,\"epoch\":0,\"loss\":0.5,\"learning_rate\":0.0,"
            "\"images_per_second\":0.0}\n");
}

TEST(ImageTrainer, TheTimeToMakeABatchIsWaitedForWithoutWorkers) {
  DataLoader loader(noise_images(), {.batch_size = 40, .workers = 0, .device = Device::cpu()});
  loader.begin(0);
  static_cast<void>(loader.next());
  EXPECT_GT(loader.waited_seconds(), 0);
}

}  // namespace
}  // namespace caldera::vision
