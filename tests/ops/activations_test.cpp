// Gradients of activations where their values are next to a constant: exp(x) far below 0 is nothing beside
// -1.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class Activations : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Activations, ::testing::ValuesIn(op_settings()), op_setting_name);

struct ExponentialUnit {
  const char* name;
  LazyTensor (*call)(const LazyTensor&);
  double factor, scale;  // the slope is factor * exp(scale * x)
};

TEST_P(Activations, ExponentialUnitsHaveSlopesFarBelowZero) {
  static const ExponentialUnit kUnits[] = {
      {"expm1", expm1, 1, 1},
      {"elu", [](const LazyTensor& x) { return elu(x); }, 1, 1},
      {"elu of 0.5", [](const LazyTensor& x) { return elu(x, 0.5); }, 0.5, 1},
      {"celu of 2", [](const LazyTensor& x) { return celu(x, 2); }, 1, 0.5},
      {"selu", selu, 1.6732632423543772 * 1.0507009873554805, 1},
  };
  const std::vector<float> places{-1, -8, -16, -18, -30, -60};
  for (const ExponentialUnit& unit : kUnits) {
    const LazyTensor x = LazyTensor::from_vector(places, Shape{6}, device());
    const std::vector<float> slopes = grad(sum(unit.call(x)), x).to_vector<float>();
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double expected = unit.factor * std::exp(unit.scale * static_cast<double>(places[i]));
      EXPECT_NEAR(slopes[i] / expected, 1, 2e-5) << unit.name << " at " << places[i];
    }
  }
}

}  // namespace
}  // namespace caldera::testing
