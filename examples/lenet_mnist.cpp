// LeNet-5 learns digits. Arguments: a folder with MNIST's files, steps (default 300). Without a folder it
// draws strokes of its own: a class is the direction of a bar.
#include <caldera/vision.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

namespace vision = caldera::vision;

/// Images of bars in eight directions, through places near the middle.
static vision::ImageDatasetPtr bars(std::int64_t count, std::uint64_t seed) {
  caldera::rl::Random random(seed);
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(i % 8);
    const double angle = std::numbers::pi * static_cast<double>(i % 8) / 8, x0 = random.uniform(10, 18),
                 y0 = random.uniform(10, 18);
    for (int y = 0; y < 28; ++y) {
      for (int x = 0; x < 28; ++x) {
        const double off = std::abs((x - x0) * std::sin(angle) - (y - y0) * std::cos(angle));
        const double light = 255 * std::exp(-off * off / 2) * random.uniform(0.6, 1);
        pixels.push_back(static_cast<std::uint8_t>(light));
      }
    }
  }
  return std::make_shared<vision::MemoryImages>(1, 28, 28, std::move(pixels), std::move(labels),
                                                vision::numbered_classes(8));
}

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 2 ? std::atoll(argv[2]) : 300;
  const vision::ImageData data =
      argc > 1 ? vision::open_image_data(argv[1]) : vision::ImageData{bars(4000, 1), bars(800, 2), "bars"};
  const auto device = caldera::Device::cpu();
  const auto model = vision::make_image_model("lenet5", {.classes = data.train->classes(),
                                                         .channels = 1,
                                                         .height = 28,
                                                         .width = 28,
                                                         .seed = 1,
                                                         .device = device});
  const vision::Transform normal = vision::normalize({0.1307F}, {0.3081F});
  vision::DataLoader loader(data.train,
                            {.batch_size = 64, .shuffle = true, .transform = normal, .device = device});
  vision::DataLoader test(data.test, {.batch_size = 200, .transform = normal, .device = device});

  vision::ImageTrainOptions options{.iterations = steps};
  options.optimizer = {.name = "sgd", .learning_rate = 0.01, .more = {{"momentum", 0.9}}};
  const auto result = vision::train_images(*model, loader, options, [](const vision::ImageStepRecord& at) {
    if (at.step % 50 == 0) std::printf("step %4ld: loss %.4f\n", static_cast<long>(at.step), at.loss);
    return true;
  });

  const vision::ImageMetrics metrics = vision::evaluate_images(*model, test);
  std::printf("%s: accuracy %.4f over %ld images, %.0f images/s while it learned\n", data.form.c_str(),
              metrics.accuracy(), static_cast<long>(metrics.images()), result.images_per_second);
  const bool good = metrics.accuracy() > 0.9;
  std::printf("%s\n", good ? "as expected" : "WRONG");
  return good ? 0 : 1;
}
