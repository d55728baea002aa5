// The first losses of networks beside PyTorch's, from the same weights and batches.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ops/core/cast.h"
#include "tests/support/test_data.h"
#include "tests/training/vision/formula_weights.h"
#include "training/optim/registry.h"
#include "training/vision/data/cifar.h"
#include "training/vision/data/image_data.h"
#include "training/vision/models/image_model.h"
#include "training/vision/train/train_images.h"

namespace caldera::vision {
namespace {

struct GoldenLosses {
  std::vector<double> losses;
  std::int64_t batch;
  double rate, factor;
};

GoldenLosses golden_losses(const std::string& name) {
  std::ifstream file("tests/golden/vision/" + name + ".json");
  const auto document = nlohmann::json::parse(file);
  return {document["losses"].get<std::vector<double>>(), document["batch"].get<std::int64_t>(),
          document["rate"].get<double>(), document["factor"].get<double>()};
}

void check_losses(const std::string& golden, const char* network, const ImageDatasetPtr& images,
                  const Transform& normal, DType type, double bound) {
  const GoldenLosses want = golden_losses(golden);
  const Image first = images->image(0);
  const auto model = make_image_model(network, {.classes = 10,
                                                .channels = first.channels,
                                                .height = first.height,
                                                .width = first.width,
                                                .small_images = false,
                                                .device = Device::cpu()});
  set_formula_weights(*model, type, want.factor);
  const auto optimizer =
      make_optimizer(model->trainable_parameters(),
                     {.name = "sgd", .learning_rate = want.rate, .more = {{"momentum", 0.9}}});
  DataLoader loader(images, {.batch_size = want.batch, .transform = normal, .device = Device::cpu()});
  for (const double loss : want.losses) {
    auto batch = loader.next();
    ASSERT_TRUE(batch);
    batch->images = astype(batch->images, type);
    ASSERT_NEAR(image_step(*model, *optimizer, *batch, {.learning_rate = want.rate}).item<double>(), loss,
                bound);
  }
}

TEST(GoldenLosses, OfLeNetArePyTorchs) {
  CALDERA_REQUIRE_DATA(path, "mnist");
  const ImageDatasetPtr images = open_image_data(path).train;
  const Transform normal = normalize({0.1307F}, {0.3081F});
  check_losses("lenet5_float32", "lenet5", images, normal, DType::f32, 1e-4);
  check_losses("lenet5_float64", "lenet5", images, normal, DType::f64, 1e-9);
}

TEST(GoldenLosses, OfResNetArePyTorchs) {
  CALDERA_REQUIRE_DATA(path, "cifar10/data_batch_1_first4000.bin");
  const ImageDatasetPtr images = open_cifar({path}, CifarKind::cifar10);
  const Transform normal = normalize({0.5F}, {0.25F});
  check_losses("resnet18_float32", "resnet18", images, normal, DType::f32, 1e-4);
  check_losses("resnet18_float64", "resnet18", images, normal, DType::f64, 1e-9);
}

}  // namespace
}  // namespace caldera::vision
