// value_and_grad: what may be done inside of the function, and that nothing of it stays behind.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "engine/graph/graph.h"
#include "engine/runtime/runtime.h"
#include "tests/support/messages.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Doubles = std::vector<double>;

TEST(ValueAndGrad, GivesValueAndGradients) {
  const LazyTensor arguments[] = {vector_of({1, 2}), vector_of({3, 4}), vector_of({9})};
  const auto [value, grads] = value_and_grad([](Inputs x) { return sum(x[0] * x[0] * x[1]); }, arguments);
  EXPECT_EQ(value.item<double>(), 1 * 3 + 4 * 4);
  EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{6, 16}));
  EXPECT_EQ(grads[1].to_vector<double>(), (Doubles{1, 4}));
  EXPECT_EQ(grads[2].to_vector<double>(), (Doubles{0})) << "an argument that is ignored gets zeros";
}

TEST(ValueAndGrad, AllowsEvaluationInside) {
  const LazyTensor arguments[] = {vector_of({1, 2})};
  for (const double scale : {1.0, -1.0}) {
    const auto [value, grads] = value_and_grad(
        [&](Inputs x) {
          const LazyTensor y = x[0] * x[0] * scale;
          y.eval();
          // Control flow that depends on data is why evaluation inside must work.
          const LazyTensor z = sum(y).item<double>() > 0 ? exp(y) : y * 3.0;
          return sum(z.eval()).eval();
        },
        arguments);
    const Doubles expected = scale > 0 ? Doubles{2 * std::exp(1.0), 4 * std::exp(4.0)} : Doubles{-6, -12};
    const Doubles actual = grads[0].to_vector<double>();
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12 * std::abs(expected[i]));
  }
}

TEST(ValueAndGrad, NestsForSecondDerivatives) {
  const LazyTensor arguments[] = {vector_of({1, 2})};
  const auto [value, grads] = value_and_grad(
      [](Inputs x) {
        const auto inner = value_and_grad(
            [](Inputs y) {
              const LazyTensor cube = y[0] * y[0] * y[0];
              return sum(cube.eval());
            },
            x);
        return sum(inner.second[0].eval());  // 3 x^2
      },
      arguments);
  EXPECT_EQ(value.item<double>(), 15);
  EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{6, 12}));
}

TEST(ValueAndGrad, KeepsNoHistory) {
  Backend& cpu = backend(Device::cpu());
  LazyTensor parameter = vector_of(Doubles(1025, 0.5));
  std::uint64_t live = 0;
  for (int step = 0; step < 6; ++step) {
    auto [value, grads] = value_and_grad(
        [](Inputs x) {
          const LazyTensor y = sin(x[0]);
          return sum((y * y).eval());
        },
        {&parameter, 1});
    parameter = parameter - grads[0] * 0.1;
    eval({parameter, value, grads[0]});
    EXPECT_EQ(Graph({parameter, value, grads[0]}).node_count(), 3U) << "step " << step;
    value = grads[0] = LazyTensor();
    if (step == 1) live = cpu.counters().live_bytes;
    if (step > 1) {
      EXPECT_EQ(cpu.counters().live_bytes, live) << "step " << step;
    }
  }
}

TEST(ValueAndGrad, LetsGoOfWhatTheFunctionPutAside) {
  const LazyTensor parameter = vector_of({1, 2});
  LazyTensor inside;
  LazyTensor afterwards;
  auto [value, grads] = value_and_grad(
      [&](Inputs x) {
        const LazyTensor h = sin(x[0] * x[0]);
        inside = sum(h * 3.0).eval();
        afterwards = sum(h * 5.0);
        return sum(h);
      },
      {&parameter, 1});
  eval({value, grads[0], afterwards});
  EXPECT_EQ(Graph({inside}).node_count(), 1U);
  EXPECT_EQ(Graph({afterwards}).node_count(), 1U);
}

TEST(ValueAndGrad, EndsItsTraceWhenTheFunctionThrows) {
  LazyTensor parameter = vector_of({1, 2});
  EXPECT_THROW(value_and_grad([](Inputs) -> LazyTensor { throw ValueError("no"); }, {&parameter, 1}),
               ValueError);
  EXPECT_THROW(value_and_grad([](Inputs x) { return x[0]; }, {&parameter, 1}), GradientError);
  auto [value, grads] = value_and_grad([](Inputs x) { return sum(x[0] * x[0]); }, {&parameter, 1});
  parameter = parameter - grads[0];
  eval({parameter});
  EXPECT_EQ(Graph({parameter}).node_count(), 1U);
}

TEST(ValueAndGrad, GivesIntegersAnEmptyGradient) {
  const LazyTensor x = vector_of({1, 2, 3});
  const LazyTensor which = LazyTensor::from_vector<std::int32_t>({2, 0, 2}, Shape{3}, Device::cpu());
  const LazyTensor mask = x > 1.5;
  const TensorFunction function = [](Inputs a) { return sum(where(a[2], take(a[1], a[0]), a[1]) * a[1]); };
  const LazyTensor arguments[] = {which, x, mask};
  const auto [value, grads] = value_and_grad(function, arguments);
  ASSERT_EQ(grads.size(), 3U);
  EXPECT_FALSE(grads[0].defined());
  EXPECT_FALSE(grads[2].defined());
  EXPECT_EQ(value.item<double>(), 1 * 1 + 1 * 2 + 3 * 3);
  EXPECT_EQ(grads[1].to_vector<double>(), (Doubles{2 + 2, 1, 6}));
  const LazyTensor tangents[] = {{}, vector_of({1, 10, 100}), {}};
  const std::vector<LazyTensor> products = hvp(function, arguments, tangents);
  EXPECT_FALSE(products[0].defined());
  EXPECT_EQ(products[1].to_vector<double>(), (Doubles{2 * 1 + 10, 1, 200}));
  const std::string text = message_of<GradientError>([&] { value_and_grad(function, {&which, 1}); });
  EXPECT_MENTIONS(text, "value_and_grad: no argument is floating");
  EXPECT_MENTIONS(text, "int32");
}

}  // namespace
}  // namespace caldera::testing
