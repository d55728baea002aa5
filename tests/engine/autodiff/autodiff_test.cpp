// What differentiation promises beyond the rules of single operations: of several outputs and inputs, what it
// refuses, and what it says of a rule that is missing or wrong.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "engine/graph/graph.h"
#include "engine/runtime/runtime.h"
#include "ops/core/node_builder.h"
#include "tests/support/messages.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {
namespace {

using Doubles = std::vector<double>;

TEST(Vjp, SeveralOutputs) {
  const LazyTensor x = vector_of({1, 2, 3});
  const LazyTensor w = vector_of({5, 7, 11});
  const LazyTensor outputs[] = {x * x, sum(x * w), x};
  const LazyTensor cotangents[] = {vector_of({1, 10, 100}), cpu_tensor({2}, Shape{}),
                                   vector_of({0.5, 0.25, 0})};
  const LazyTensor inputs[] = {x, w};
  const auto grads = vjp(outputs, inputs, cotangents);
  EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{2 + 10 + 0.5, 40 + 14 + 0.25, 600 + 22}));
  EXPECT_EQ(grads[1].to_vector<double>(), (Doubles{2, 4, 6}));
}

TEST(Vjp, OneOutputTwiceAndOneInputTwice) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor y = x * x;
  const LazyTensor outputs[] = {y, y};
  const LazyTensor cotangents[] = {vector_of({1, 1}), vector_of({10, 100})};
  const LazyTensor inputs[] = {x, x};
  for (const LazyTensor& g : vjp(outputs, inputs, cotangents))
    EXPECT_EQ(g.to_vector<double>(), (Doubles{22, 404}));
}

TEST(Vjp, AnInputBehindAnotherInput) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor y = x * 3.0;
  const auto grads = grad(sum(y * y), {x, y});
  EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{18, 36}));
  EXPECT_EQ(grads[1].to_vector<double>(), (Doubles{6, 12}));
}

TEST(Vjp, UnusedInputsGetZerosButGradRefusesThem) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor unused = cpu_tensor({1, 2, 3, 4, 5, 6}, Shape{2, 3});
  const LazyTensor loss = sum(x * x);
  const LazyTensor one = ones_like(loss);
  const LazyTensor inputs[] = {x, unused};
  const auto grads = vjp({&loss, 1}, inputs, {&one, 1});
  EXPECT_EQ(grads[1].shape(), unused.shape());
  EXPECT_EQ(grads[1].to_vector<double>(), Doubles(6, 0));
  const std::string text = message_of<GradientError>([&] { grad(loss, inputs); });
  EXPECT_MENTIONS(text, "input 1");
  EXPECT_MENTIONS(text, "(2, 3)");
}

TEST(Vjp, RefusesWhatHasNoGradient) {
  const LazyTensor x = vector_of({1, 2});
  for (const DType type :
       {DType::boolean, DType::u8, DType::u32, DType::i8, DType::i16, DType::i32, DType::i64}) {
    const LazyTensor k = astype(x, type);
    EXPECT_MENTIONS(message_of<GradientError>([&] { grad(sum(k * x), k); }), std::string(name(type)));
  }
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(x * x, x); }), "(2,)");  // not a scalar
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(sum(astype(x, DType::i32)), x); }), "int32");
  const LazyTensor y = x * x;
  const LazyTensor narrow = cpu_tensor({1}, Shape{1});
  EXPECT_THROW(vjp({&y, 1}, {&x, 1}, {&narrow, 1}), ShapeError);
  EXPECT_THROW(vjp({&y, 1}, {&x, 1}, {}), ShapeError);
}

TEST(Vjp, GradientsHaveTheDtypeOfTheirInputs) {
  const LazyTensor narrow = LazyTensor::from_vector<float>({1, 2}, Shape{2}, Device::cpu());
  const LazyTensor wide = vector_of({3, 4});
  const auto grads = grad(sum(narrow * wide), {narrow, wide});
  EXPECT_EQ(grads[0].dtype(), DType::f32);
  EXPECT_EQ(grads[1].dtype(), DType::f64);
  EXPECT_EQ(grads[0].to_vector<float>(), (std::vector<float>{3, 4}));
}

TEST(Vjp, SourcesAreConstants) {
  const LazyTensor x = vector_of({1, 2, 3});
  const LazyTensor noise = random_normal(Shape{3}, 7, DType::f64, Device::cpu()) +
                           random_uniform(Shape{3}, 7, DType::f64, Device::cpu());
  const LazyTensor steps = arange(3, DType::f64, Device::cpu());
  const LazyTensor factor = zeros_like(x) + ones_like(x) * full_like(x, 4) + steps + noise;
  const Doubles slope = grad(sum(factor * x), x).to_vector<double>();
  EXPECT_EQ(slope, factor.to_vector<double>());
}

const OpDef kWithoutRule{.name = "frobnicate", .kind = OpClass::identity};
LazyTensor frobnicate(const LazyTensor& x) { return ops::make(kWithoutRule, x.shape(), x.dtype(), {x}); }

TEST(MissingRule, IsAnErrorThatNamesTheOperation) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor c = vector_of({3, 4});
  EXPECT_EQ(frobnicate(x).to_vector<double>(), (Doubles{1, 2})) << "without a gradient it works";
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(sum(frobnicate(x * x)), x); }), "frobnicate");
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(sum(frobnicate(x) + x), x); }), "frobnicate");
  EXPECT_EQ(grad(sum(frobnicate(c) * x), x).to_vector<double>(), (Doubles{3, 4})) << "off the way";
  EXPECT_EQ(grad(sum(frobnicate(stop_gradient(x)) * x), x).to_vector<double>(), (Doubles{1, 2}));
}

TEST(MissingRule, ARuleThatForgetsAnInputOrItsShapeIsAnError) {
  static const OpDef kForgetful{
      .name = "forgetful", .kind = OpClass::elementwise, .scalar = ScalarOp::add, .vjp = [](VjpContext& c) {
        c.grads[0] = c.cotangent;
      }};
  static const OpDef kMisshapen{.name = "misshapen", .kind = OpClass::identity, .vjp = [](VjpContext& c) {
                                  c.grads[0] = sum(c.cotangent);
                                }};
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor c = vector_of({3, 4});
  const auto forgetful = [](const LazyTensor& a, const LazyTensor& b) {
    return ops::make(kForgetful, a.shape(), a.dtype(), {a, b});
  };
  EXPECT_EQ(grad(sum(forgetful(x, c)), x).to_vector<double>(), (Doubles{1, 1}));
  const std::string text = message_of<GradientError>([&] { grad(sum(forgetful(c, x)), x); });
  EXPECT_MENTIONS(text, "forgetful");
  EXPECT_MENTIONS(text, "input 1");
  EXPECT_THROW(grad(sum(ops::make(kMisshapen, x.shape(), x.dtype(), {x})), x), ShapeError);
}

}  // namespace
}  // namespace caldera::testing
