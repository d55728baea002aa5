// AdamW, Adam and SGD against steps of PyTorch's: tests/golden/optimizers/generate.py made them, with PyTorch
// 1.13.
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/runtime/runtime.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"
#include "training/optim/registry.h"

namespace caldera::testing {
namespace {

OptimizerOptions options_of(const nlohmann::json& from) {
  OptimizerOptions options{.name = from.at("name")};
  if (from.contains("weight_decay")) options.weight_decay = from["weight_decay"].get<double>();
  if (from.contains("more")) options.more = from["more"].get<std::map<std::string, double>>();
  return options;
}

class OptimizerGolden : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }

  /// Follows the steps of a file in `dtype`.
  void follows(const nlohmann::json& golden, DType dtype, double tolerance) {
    std::vector<LazyTensor> tensors;
    std::vector<Shape> shapes;
    for (const auto& extents : golden.at("shapes")) {
      Shape shape;
      for (const std::int64_t extent : extents) shape.push_back(extent);
      shapes.push_back(shape);
      tensors.push_back(make_tensor(golden.at("parameters").at(tensors.size()), shape, dtype, GetParam()));
    }
    const auto optimizer =
        make_optimizer({{"a", &tensors[0]}, {"b", &tensors[1]}}, options_of(golden.at("options")));
    for (const auto& step : golden.at("steps")) {
      std::vector<LazyTensor> gradients;
      for (std::size_t i = 0; i < shapes.size(); ++i)
        gradients.push_back(make_tensor(step.at("gradients").at(i), shapes[i], dtype, GetParam()));
      optimizer->update(gradients, step.at("learning_rate"));
      eval({}, *optimizer);
      for (std::size_t i = 0; i < shapes.size(); ++i)
        expect_close(tensors[i], step.at("parameters").at(i), tolerance);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, OptimizerGolden, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST_P(OptimizerGolden, StepsAreThoseOfPyTorch) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden/optimizers")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename().string());
    ++files;
    const auto golden = nlohmann::json::parse(std::ifstream(entry.path()));
    ASSERT_EQ(golden.at("steps").size(), 6U);
    follows(golden, DType::f32, 1e-6);
    if (GetParam() == Device::cpu()) follows(golden, DType::f64, 1e-13);
  }
  EXPECT_EQ(files, 7);
}

}  // namespace
}  // namespace caldera::testing
