// The checker of gradients, held to gradients that are wrong, and to the list of operations.
#include <gtest/gtest.h>

#include <string>

#include "engine/runtime/settings.h"
#include "ops/core/node_builder.h"
#include "tests/support/transforms/transform_cases.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;

/// Every plan of this test program is proved before it runs.
class VerifyPlans : public ::testing::Environment {
 public:
  void SetUp() override { settings().verify = true; }
};
[[maybe_unused]] const auto* const kVerifyPlans = ::testing::AddGlobalTestEnvironment(new VerifyPlans);

LazyTensor some_function(Inputs x) { return tanh(x[0] * x[1]) + x[0]; }
const std::vector<Argument> kArguments{{Shape{2, 3}}, {Shape{3}}};

/// The right gradients, spoilt.
Pull spoilt(const std::function<LazyTensor(const LazyTensor&)>& spoil, std::size_t which) {
  return [=](const LazyTensor& output, Inputs inputs, const LazyTensor& cotangent) {
    std::vector<LazyTensor> grads = pull_by_vjp(output, inputs, cotangent);
    grads[which] = spoil(grads[which]);
    return grads;
  };
}

TEST(GradcheckChecker, AcceptsRightGradients) {
  EXPECT_TRUE(gradients_agree(some_function, kArguments));
  EXPECT_TRUE(gradients_agree(some_function, kArguments, {}, spoilt([](auto& g) { return g * 1.0; }, 0)));
}

TEST(GradcheckChecker, CatchesWrongGradients) {
  for (const std::size_t which : {0, 1}) {
    const auto caught = [&](const char* what, const std::function<LazyTensor(const LazyTensor&)>& spoil) {
      const auto verdict = gradients_agree(some_function, kArguments, {}, spoilt(spoil, which));
      EXPECT_FALSE(verdict) << what << " of argument " << which;
      EXPECT_NE(std::string(verdict.message()).find("argument " + std::to_string(which)), std::string::npos)
          << verdict.message();
    };
    caught("a factor near 1", [](auto& g) { return g * 1.0001; });
    caught("the sign", [](auto& g) { return -g; });
    caught("nothing", [](auto& g) { return zeros_like(g); });
    caught("an offset", [](auto& g) { return g + 1e-4; });
    caught("NaN", [](auto& g) { return g * std::nan(""); });
    caught("the order of elements", [](auto& g) { return slice(g, -1, std::nullopt, std::nullopt, -1); });
    caught("the dtype", [](auto& g) { return astype(g, DType::f32); });
    caught("the shape", [](auto& g) { return expand_dims(g, 0); });
    caught("one element", [](auto& g) {
      const LazyTensor last = iota(g.shape(), -1, DType::i32, g.device()) == 2;
      return where(last, g * 1.001, g);
    });
  }
}

TEST(GradcheckChecker, CatchesAWrongSecondDerivative) {
  // The gradient of x^2 as a rule would give it that cuts off its own dependence on x.
  const TensorFunction square_of = [](Inputs x) { return x[0] * x[0]; };
  const Pull cut = [](const LazyTensor&, Inputs inputs, const LazyTensor& cotangent) {
    return std::vector<LazyTensor>{cotangent * stop_gradient(inputs[0]) * 2.0};
  };
  EXPECT_TRUE(gradients_agree(square_of, {{Shape{3}}}, {}, cut)) << "at first order it is right";
  const TensorFunction slope = [](Inputs x) { return stop_gradient(x[0]) * 2.0 + x[0] * 0.0; };
  EXPECT_FALSE(gradients_agree(slope, {{Shape{3}}}));
}

TEST(GradcheckChecker, CatchesAWrongTangent) {
  // The gradient of -x is right, the tangent of the wrong sign.
  static const OpDef kWrong{.name = "negative",
                            .kind = OpClass::elementwise,
                            .scalar = ScalarOp::neg,
                            .vjp = [](VjpContext& c) { c.grads[0] = -c.cotangent; },
                            .jvp = [](JvpContext& c) { c.tangent = c.tangents[0]; }};
  const TensorFunction wrong = [](Inputs x) { return ops::make(kWrong, x[0].shape(), x[0].dtype(), {x[0]}); };
  EXPECT_TRUE(gradients_agree(wrong, {{Shape{3}}}));
  EXPECT_FALSE(tangents_agree(wrong, {{Shape{3}}}));
  EXPECT_TRUE(tangents_agree(some_function, kArguments));
}

TEST(GradcheckChecker, CatchesAWrongMapping) {
  // What a mapped function is given has no value; that of a loop has.
  const auto differs = [](const std::function<LazyTensor(const LazyTensor&)>& spoil) {
    return !mapped_agrees([&](Inputs x) { return x[0].is_evaluated() ? x[0] * x[1] : spoil(x[0] * x[1]); },
                          kArguments);
  };
  EXPECT_FALSE(differs([](auto& y) { return y; }));
  EXPECT_TRUE(differs([](auto& y) { return y * 1.0001; }));
  EXPECT_TRUE(differs([](auto& y) { return slice(y, 0, std::nullopt, std::nullopt, -1); }));
  EXPECT_TRUE(differs([](auto& y) { return expand_dims(y, 0); }));
}

}  // namespace
}  // namespace caldera::testing
