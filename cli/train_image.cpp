// caldera train-image: trains a network on images, or evaluates one.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/arguments/command.h"
#include "cli/arguments/domains.h"
#include "cli/arguments/usage_error.h"
#include "cli/training/optimizer_flags.h"
#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "training/checkpoints/run_lock.h"
#include "training/checkpoints/train_state.h"
#include "training/vision/data/image_data.h"
#include "training/vision/models/image_model.h"
#include "training/vision/models/image_weights.h"
#include "training/vision/train/image_report.h"
#include "training/vision/train/image_trainer.h"

namespace caldera::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kWeightsFile = "model.safetensors";
using namespace vision;  // NOLINT(google-build-using-namespace): a command about nothing else

class TrainImageCommand : public Command {
 public:
  TrainImageCommand() : Command("train-image", "Train a network on images") {}

 protected:
  void add_options(Arguments& args) override {
    args.option("--model", model_, "The network").one_of(image_model_names()).required().type_name("NAME");
    args.option("--data", data_,
                "Folder with the files of MNIST, EMNIST or CIFAR, or a folder for each class")
        .required()
        .type_name("DIR");
    args.option("--out", out_, "Folder for the weights, metrics and page").type_name("DIR");
    args.option(
            "--save-every", save_every_,
            "Steps after which weights and the state of the run are saved to --out; after each epoch and at "
            "the end always")
        .check(integer_in(1))
        .type_name("N");
    args.flag("--resume", resume_, "Go on with the run in --out, to the last bit (on the CPU)");
    args.option("--weights", weights_, "Begin with these, with torchvision's names").type_name("FILE");
    args.flag("--evaluate", evaluate_, "Do not train: evaluate --weights");
    args.option("--epochs", epochs_, "Passes over the images")
        .check(integer_in(1, 1'000'000'000))
        .type_name("N")
        .show_default();
    args.option("--iterations", iterations_, "Steps, in place of --epochs")
        .check(integer_in(1))
        .type_name("N");
    args.option("--batch-size", batch_size_, "Images a step")
        .check(integer_in(1))
        .type_name("N")
        .show_default();
    args.option("--image-size", image_size_, "Resize images to this height and width (default: as they are)")
        .check(integer_in(1, 4096))
        .type_name("N");
    args.flag("--augment", augment_, "Crop and flip images at random");
    args.option("--mixup", mixup_, "Blend images in pairs, by shares of Beta(A, A); 0 is off")
        .check(non_negative_number())
        .type_name("A")
        .show_default();
    args.option("--label-smoothing", smoothing_, "Share of the probability spread over all classes")
        .check(number_in(0, 1))
        .type_name("S")
        .show_default();
    args.flag("--balance", balance_, "Draw all classes equally often");
    args.option("--workers", workers_, "Threads that make batches")
        .check(integer_in(0, 256))
        .type_name("N")
        .show_default();
    args.option("--seed", seed_, "Of weights, order and transforms")
        .check(seed_value())
        .type_name("N")
        .show_default();
    options_.optimizer = {.name = "sgd", .learning_rate = 0.05};
    options_.optimizer.more = {{"momentum", 0.9}};
    options_.max_grad_norm = 0;
    optimizer_.declare(args, options_);
    args.option("--log", log_, "A line of JSON for each step").type_name("FILE");
    args.option("--report", report_, "A page of the run").type_name("FILE");
  }

  void run() override {
    if (evaluate_ && weights_.empty()) throw UsageError("--evaluate needs --weights");
    if (out_.empty() && (resume_ || save_every_))
      throw UsageError("--resume and --save-every need --out, the run's folder");
    if (resume_ && (evaluate_ || !weights_.empty()))
      throw UsageError("--resume goes on with the weights of --out; leave --weights and --evaluate out");
    const Device device = open_device();
    const ImageData data = open_image_data(data_, seed_);
    std::optional<RunLock> lock;
    if (!out_.empty()) {
      fs::create_directories(out_);
      lock.emplace(out_);
    }
    const Image first = data.train->image(0);
    const std::int64_t least = std::max(least_image_size(model_), std::min(first.height, first.width));
    const bool resizes = image_size_ || data.form == "folders" || least > std::min(first.height, first.width);
    const std::int64_t height =
        resizes ? image_size_.value_or(data.form == "folders" ? 224 : least) : first.height;
    const std::int64_t width = resizes ? height : first.width;
    const std::unique_ptr<Layer> model = make_image_model(model_, {.classes = data.train->classes(),
                                                                   .channels = first.channels,
                                                                   .height = height,
                                                                   .width = width,
                                                                   .seed = seed_,
                                                                   .device = device});
    if (!weights_.empty()) load_image_weights(*model, weights_);
    note(fmt::format(
        "{}: {} parameters; {}, {} images to train on and {} to test, {} x {} x {}, {} classes; on {}",
        model_, model->trainable_parameter_count(), data.form, data.train->size(), data.test->size(),
        first.channels, height, width, data.train->classes(), device.to_string()));
    DataLoader test(data.test, {.batch_size = std::max<std::int64_t>(batch_size_, 64),
                                .workers = static_cast<int>(workers_),
                                .transform = transform(height, width, resizes, first.channels, false),
                                .device = device});
    ImageReport report{.title = fmt::format("{} on {}", model_, fs::path(data_).filename().string()),
                       .metrics = ImageMetrics(data.test->class_names())};
    ImageTrainResult trained;
    if (!evaluate_)
      trained = train(*model, data, height, width, resizes, first.channels, device, test, report);
    report.metrics = evaluate_images(*model, test);
    report.images_per_second = trained.images_per_second;
    finish(report, trained);
  }

 private:
  ImageTrainResult train(Layer& model, const ImageData& data, std::int64_t height, std::int64_t width,
                         bool resizes, std::int64_t channels, Device device, DataLoader& test,
                         ImageReport& report) {
    DataLoaderOptions loading{.batch_size = std::min(batch_size_, data.train->size()),
                              .shuffle = true,
                              .drop_last = true,
                              .workers = static_cast<int>(workers_),
                              .seed = seed_,
                              .transform = transform(height, width, resizes, channels, augment_),
                              .mixup = mixup_,
                              .device = device};
    if (balance_) loading.sampler = weighted(class_balance(*data.train), data.train->size(), seed_);
    if (loading.batch_size < batch_size_)
      note(fmt::format("batches of {}: there are no more images to train on", loading.batch_size));
    DataLoader loader(data.train, loading);
    options_.iterations = iterations_.value_or(epochs_ * loader.batches());
    optimizer_.apply(options_);
    optimizer_.apply_warmup(options_);
    const ImageTrainOptions options{.epochs = epochs_,
                                    .iterations = options_.iterations,
                                    .schedule = options_.schedule,
                                    .schedule_shape = options_.schedule_shape,
                                    .warmup = options_.warmup,
                                    .optimizer = options_.optimizer,
                                    .max_grad_norm = options_.max_grad_norm,
                                    .max_grad_value = options_.max_grad_value,
                                    .ema_decay = options_.ema_decay,
                                    .label_smoothing = smoothing_,
                                    .seed = seed_};
    ImageTrainer trainer(model, loader, options);
    const fs::path state = fs::path(out_) / kTrainStateFile;
    if (resume_) trainer.load(state);
    if (trainer.steps_done() >= trainer.total_steps())
      note(fmt::format("the run has done {} steps of {}; there is nothing to train", trainer.steps_done(),
                       trainer.total_steps()));
    const auto save = [&] {
      if (out_.empty()) return;
      trainer.save(state);
      trainer.exchange_averages();
      save_image_weights(model, fs::path(out_) / kWeightsFile);
      trainer.exchange_averages();
    };
    ImageLog log(log_, trainer.steps_done());
    const std::int64_t every = std::max<std::int64_t>(1, trainer.total_steps() / 20);
    const ImageTrainResult result = trainer.train([&](const ImageStepRecord& at) {
      log.add(at);
      report.steps.push_back(at);
      if (at.step % every == 0 || at.step == 1)
        note(fmt::format("step {} of {}: loss {:.4f}, {:.0f} images/s", at.step, at.total, at.loss,
                         at.images_per_second));
      if (at.step == at.total) return true;
      if (at.ends_epoch || (save_every_ && at.step % *save_every_ == 0)) save();
      if (at.ends_epoch) {
        trainer.exchange_averages();
        const ImageMetrics metrics = evaluate_images(model, test);
        trainer.exchange_averages();
        model.set_training(true);
        report.epochs.push_back({at.step, metrics.accuracy(), metrics.loss()});
        note(fmt::format("epoch {}: accuracy {:.4f}, loss {:.4f}", at.epoch + 1, metrics.accuracy(),
                         metrics.loss()));
      }
      return true;
    });
    save();
    trainer.exchange_averages();
    return result;
  }

  static Transform transform(std::int64_t height, std::int64_t width, bool resizes, std::int64_t channels,
                             bool augments) {
    std::vector<Transform> steps;
    if (augments && resizes)
      steps.push_back(random_resized_crop(height, width));
    else if (resizes)
      steps.push_back(resize(height, width));
    else if (augments)
      steps.push_back(random_crop(height, width, std::max<std::int64_t>(1, height / 8)));
    if (augments && channels == 3) steps.push_back(random_flip());
    // ImageNet's, as torchvision's networks expect; of digits MNIST's.
    steps.push_back(channels == 3 ? normalize({0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F})
                                  : normalize({0.1307F}, {0.3081F}));
    return all_of(std::move(steps));
  }

  void finish(const ImageReport& report, const ImageTrainResult& trained) const {
    const ImageMetrics& metrics = report.metrics;
    if (!out_.empty()) {
      const fs::path folder(out_);
      write_text_file(folder / "metrics.json", to_json(metrics).dump(1) + "\n");
      write_text_file(folder / "report.html", to_html(report));
    }
    if (!report_.empty()) write_text_file(report_, to_html(report));
    if (json())
      return print_json({{"accuracy", metrics.accuracy()},
                         {"top5", metrics.top(5)},
                         {"loss", metrics.loss()},
                         {"images_per_second", trained.images_per_second}});
    fmt::print("accuracy {:.4f}, top 5 {:.4f}, loss {:.4f} over {} images\n", metrics.accuracy(),
               metrics.top(5), metrics.loss(), metrics.images());
    if (!evaluate_)
      fmt::print("{:.0f} images/s; {:.2f} % of the time was spent waiting for batches\n",
                 trained.images_per_second, 100 * trained.waited_share);
  }

  std::string model_, data_, out_, weights_, log_, report_;
  std::int64_t epochs_ = 5, batch_size_ = 64, workers_ = 1;
  std::optional<std::int64_t> iterations_, image_size_, save_every_;
  bool resume_ = false, evaluate_ = false, augment_ = false, balance_ = false;
  double mixup_ = 0, smoothing_ = 0;
  std::uint64_t seed_ = 0;
  TrainOptions options_;
  OptimizerFlags optimizer_;
};

}  // namespace

CommandPtr make_train_image_command() { return std::make_unique<TrainImageCommand>(); }

}  // namespace caldera::cli
