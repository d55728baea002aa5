// Networks beside torchvision's: names and shapes of parameters, and what they make of an image.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/caldera.h"
#include "lm/base/sha256.h"
#include "lm/formats/safetensors/safetensors.h"
#include "tests/support/messages.h"
#include "tests/support/temp_folder.h"
#include "tests/training/vision/formula_weights.h"
#include "training/vision/layers/batch_norm2d.h"
#include "training/vision/layers/layer_maker.h"
#include "training/vision/models/image_model.h"
#include "training/vision/models/image_weights.h"

namespace caldera::vision {
namespace {

constexpr std::int64_t kSize = 64;

std::string described_parameters(Module& model) {
  std::vector<std::string> lines;
  for (const Parameter& p : model.parameters()) {
    std::string line = p.name + " ";
    for (int i = 0; i < p.tensor->rank(); ++i) {
      if (i > 0) line += "x";
      line += std::to_string(p.tensor->shape(i));
    }
    lines.push_back(line + "\n");
  }
  std::ranges::sort(lines);
  Sha256 sum;
  for (const std::string& line : lines) sum.add(line);
  return sum.hex();
}

TEST(ImageModels, AreTorchvisions) {
  std::ifstream file("tests/golden/vision/models.json");
  std::vector<float> pixels;
  for (std::uint64_t i = 0; i < 3 * kSize * kSize; ++i)
    pixels.push_back(static_cast<float>(drawn_weight(1000, i)));
  const LazyTensor image = LazyTensor::from_vector(pixels, Shape{1, 3, kSize, kSize}, Device::cpu());
  const auto golden = nlohmann::json::parse(file);
  for (const auto& [name, want] : golden.items()) {
    SCOPED_TRACE(name);
    const auto model = make_image_model(
        name, {.classes = 10, .channels = 3, .height = kSize, .width = kSize, .device = Device::cpu()});
    EXPECT_EQ(described_parameters(*model), want["parameters"].get<std::string>());
    if (!want.contains("logits")) continue;
    set_formula_weights(*model, DType::f32, 3);
    model->set_training(false);
    const auto logits = want["logits"].get<std::vector<float>>();
    const std::vector<float> got = (*model)(image).to_vector<float>();
    ASSERT_EQ(got.size(), logits.size());
    float size = 0;
    for (const float logit : logits) size = std::max(size, std::abs(logit));
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], logits[i], 2e-4F * size);
  }
}

TEST(ImageModels, RefuseImagesThatAreTooSmallAndNamesThatAreNone) {
  EXPECT_MENTIONS(testing::message_of<ValueError>([] { make_image_model("resnet19"); }), "resnet50");
  EXPECT_MENTIONS(
      testing::message_of<ValueError>([] { make_image_model("alexnet", {.height = 32, .width = 32}); }),
      "63 x 63");
  EXPECT_MENTIONS(
      testing::message_of<ValueError>([] { make_image_model("vit_tiny", {.height = 100, .width = 100}); }),
      "patches");
}

TEST(ImageModels, WeightsAreReadAndWritten) {
  const ImageModelOptions options{
      .classes = 3, .channels = 1, .height = 28, .width = 28, .seed = 1, .device = Device::cpu()};
  const auto model = make_image_model("lenet5", options),
             other = make_image_model("lenet5", {.classes = 3,
                                                 .channels = 1,
                                                 .height = 28,
                                                 .width = 28,
                                                 .seed = 2,
                                                 .device = Device::cpu()});
  const testing::TempFolder folder;
  save_image_weights(*model, folder / "model.safetensors");
  load_image_weights(*other, folder / "model.safetensors");
  const LazyTensor x = random_normal(Shape{2, 1, 28, 28}, 1, DType::f32, Device::cpu());
  EXPECT_EQ((*model)(x).to_vector<float>(), (*other)(x).to_vector<float>());
  const auto wider = make_image_model(
      "lenet5", {.classes = 4, .channels = 1, .height = 28, .width = 28, .device = Device::cpu()});
  EXPECT_MENTIONS(
      testing::message_of<FileError>([&] { load_image_weights(*wider, folder / "model.safetensors"); }),
      "'fc3.weight' is (3, 84)");
}

TEST(BatchNorm2d, HasTheGradientOfItsOperations) {
  const LazyTensor x = random_normal(Shape{3, 4, 5, 2}, 1, DType::f64, Device::cpu()) * 2 + 0.5,
                   g = random_normal(Shape{3, 4, 5, 2}, 2, DType::f64, Device::cpu());
  BatchNorm2d layer(4, Device::cpu());
  std::vector<LazyTensor> state;
  for (const Parameter& p : layer.parameters()) {
    *p.tensor =
        (random_normal(Shape{4}, 10 + state.size(), DType::f64, Device::cpu()) * 0.3 + 1).eval().detach();
    state.push_back(*p.tensor);
  }
  const LazyTensor y = layer(x);
  const BatchNormResult want = batch_norm(x, state[2], state[3], state[0], state[1], {.training = true});
  const auto distance = [](const LazyTensor& a, const LazyTensor& b) {
    return max(abs(a - b)).item<double>();
  };
  EXPECT_LT(distance(y, want.output), 1e-13);
  EXPECT_LT(distance(*layer.parameters()[2].tensor, want.running_mean), 1e-14);
  EXPECT_LT(distance(*layer.parameters()[3].tensor, want.running_var), 1e-14);
  const std::vector<LazyTensor> inputs{x, state[0], state[1]};
  const auto own = grad(sum(y * g), inputs), by_chain = grad(sum(want.output * g), inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_LT(distance(own[i], by_chain[i]), 1e-12) << i;
  layer.set_training(false);
  EXPECT_THROW(BatchNorm2d(4, Device::cpu())(slice(x, 1, 0, 3)), ShapeError);
}

TEST(AdaptiveAverage, TakesOverlappingParts) {
  const LazyTensor x = arange(7, DType::f64, Device::cpu()).reshape(Shape{1, 1, 1, 7});
  // Three of seven: elements 0 to 2, 2 to 4, 4 to 6.
  EXPECT_EQ(adaptive_average(x, 1, 3).to_vector<double>().size(), 3U);
  EXPECT_NEAR(adaptive_average(x, 1, 3).to_vector<double>()[1], 3, 1e-6);
  EXPECT_NEAR(adaptive_average(x, 2, 7).to_vector<double>()[9], 2, 1e-6);
}

}  // namespace
}  // namespace caldera::vision
