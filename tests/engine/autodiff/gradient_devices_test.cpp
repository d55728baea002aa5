// Gradients in f32 on every device, against those in f64 on the CPU, which central differences have checked.
#include <gtest/gtest.h>

#include <functional>

#include "engine/caldera.h"
#include "ops/core/node_builder.h"
#include "ops/loss/cross_entropy.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

/// Tensors are on one device while the default is another: a rule must not create constants on the default
/// one.
class GradientDevices : public OpTest {
 protected:
  void SetUp() override {
    OpTest::SetUp();
    set_default_device(is_vulkan() ? Device::cpu() : Device::null());
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, GradientDevices, ::testing::ValuesIn(op_settings()), op_setting_name);

using Inputs = std::span<const LazyTensor>;

struct ProgramRow {
  const char* name;
  std::vector<Shape> shapes;
  std::function<LazyTensor(Inputs)> function;  // to a scalar
};

LazyTensor weighted(const LazyTensor& y) {  // a cotangent that is not all ones
  return sum(y *
             cos(astype(iota(Shape{y.numel()}, 0, DType::i32, y.device()), y.dtype())).reshape(y.shape()));
}

LazyTensor i32_on(const LazyTensor& like, const std::vector<std::int32_t>& values) {
  return LazyTensor::from_vector(values, Shape{static_cast<std::int64_t>(values.size())}, like.device());
}

const ProgramRow kProgramRows[] = {
    {"pow with a number", {{33, 7}}, [](Inputs x) { return weighted(pow(x[0], 2) + pow(x[0], 1.5)); }},
    {"pow of a number", {{33}}, [](Inputs x) { return weighted(pow(2.0, x[0])); }},
    {"pow", {{33}, {33}}, [](Inputs x) { return weighted(pow(x[0], x[1])); }},
    {"numbers in every binary operation",
     {{33}},
     [](Inputs x) {
       const LazyTensor& a = x[0];
       return weighted(maximum(a, 1.0) + minimum(2, a) + remainder(a, 3.0) + atan2(a, 2.0) + 1 / a - 2 * a +
                       where(a > 1, a, 0.5));
     }},
    {"unary chain",
     {{7, 33}},
     [](Inputs x) {
       const LazyTensor& a = x[0];
       return weighted(exp(sin(a)) + log(a) * sqrt(a) + tanh(a) / rsqrt(a) + erf(a) * sigmoid(a) +
                       abs(a - 1) + expm1(a) * log1p(a) + cos(a) + reciprocal(a));
     }},
    {"reductions",
     {{7, 33}},
     [](Inputs x) {
       return weighted(sum(x[0] * x[0], 0)) + weighted(max(x[0], 1)) * mean(x[0]) + min(x[0]);
     }},
    {"matmul", {{2, 7, 5}, {5, 33}}, [](Inputs x) { return weighted(tanh(matmul(x[0], x[1]))); }},
    {"matmul with broadcast batches",
     {{7, 5}, {3, 5, 4}},
     [](Inputs x) { return weighted(matmul(x[0], x[1])); }},
    {"take and scatter_add",
     {{7, 3}, {4, 3}},
     [](Inputs x) {
       const LazyTensor which = i32_on(x[0], {6, 0, 6, 2});
       const LazyTensor y = take(x[0], which);
       return weighted(scatter_add(x[0], which, x[1] * y)) + weighted(y * y);
     }},
    {"movement",
     {{7, 33}},
     [](Inputs x) {
       const LazyTensor a =
           pad(slice(transpose(x[0]), 0, std::nullopt, std::nullopt, -2), {1, 0}, {0, 2}, 0.5);
       return weighted(concatenate({a * a, a}, 1));
     }},
    {"softmax and norms",
     {{3, 33}, {33}},
     [](Inputs x) {
       return weighted(softmax(x[0] * 3)) + weighted(log_softmax(x[0], 0)) + weighted(logsumexp(x[0])) +
              weighted(rms_norm(x[0], 1e-5, x[1])) + weighted(layer_norm(x[0], 1e-5, x[1], x[1]));
     }},
    {"silu and lora_delta",
     {{2, 3, 5}, {5, 2}, {2, 7}},
     [](Inputs x) { return weighted(silu(lora_delta(x[0], x[1], x[2], 0.5))); }},
    {"cross-entropy",
     {{4, 33}},
     [](Inputs x) {
       return mean_cross_entropy(x[0] * 2, i32_on(x[0], {3, 32, -100, 0}),
                                 {.ignore_index = -100, .label_smoothing = 0.1});
     }},
    {"second derivative",
     {{33}},
     [](Inputs x) { return weighted(grad(weighted(sin(x[0]) * pow(x[0], 3)), x[0])); }},
};

TEST_P(GradientDevices, AgreeWithF64) {
  for (const ProgramRow& row : kProgramRows) {
    SCOPED_TRACE(row.name);
    std::vector<LazyTensor> here;
    std::vector<LazyTensor> reference;
    std::uint64_t seed = 11;
    for (const Shape& shape : row.shapes) {
      const Host host =
          stored(Host(shape, random_values(shape.numel(), 0.3, 1.7, false, seed++)), DType::f32);
      here.push_back(upload(host, DType::f32, device()));
      reference.push_back(upload(host, DType::f64, Device::cpu()));
    }
    const auto actual = grad(row.function(here), here);
    const auto expected = grad(row.function(reference), reference);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(actual[i].device(), device());
      // f32 sums of up to 231 terms of size 1 to 10: about 1e-5.
      EXPECT_TRUE(agrees(actual[i], Host(expected[i].shape(), download(expected[i])), {1e-4, 2e-4}))
          << "input " << i;
    }
  }
}

// ---- what comes from another device. Graphs are built and refused without being run, so the null device
// will do.

const Shape kHere{2, 3};
LazyTensor on_null(const Shape& shape) { return LazyTensor::zeros(shape, DType::f32, Device::null()); }
LazyTensor on_cpu(const Shape& shape) { return LazyTensor::zeros(shape, DType::f32, Device::cpu()); }

void expect_device_error(const std::function<void()>& body, const std::string& what) {
  const std::string text = message_of<DeviceError>(body);
  EXPECT_MENTIONS(text, what);
  EXPECT_MENTIONS(text, Device::cpu().to_string());
  EXPECT_MENTIONS(text, Device::null().to_string());
}

TEST(DevicesOfDerivatives, CotangentsAndTangentsLieWhereTheirTensorsDo) {
  const LazyTensor x = on_null(kHere), elsewhere = on_cpu(kHere);
  const LazyTensor outputs[] = {sum(x, 0), reshape(x, Shape{6}), x, x * 2.0};
  for (const LazyTensor& y : outputs) {
    const LazyTensor g = on_cpu(y.shape());
    expect_device_error([&] { vjp({&y, 1}, {&x, 1}, {&g, 1}); }, "vjp: cotangent 0");
    expect_device_error([&] { jvp({&y, 1}, {&x, 1}, {&elsewhere, 1}); }, "jvp: tangent 0");
  }
  const LazyTensor number = 1.0, scalar = on_null(Shape{}), y = scalar * 2.0;
  EXPECT_EQ(vjp({&y, 1}, {&scalar, 1}, {&number, 1})[0].device(), Device::null());
  EXPECT_EQ(vjp({&scalar, 1}, {&scalar, 1}, {&number, 1})[0].device(), Device::null());
  EXPECT_EQ(jvp({&scalar, 1}, {&scalar, 1}, {&number, 1})[0].device(), Device::null());
}

TEST(DevicesOfDerivatives, WhatACustomRuleGivesLiesWhereItsTensorDoes) {
  const auto gives = [](const LazyTensor& derivative) {
    const auto rule = [=](Inputs, Inputs, Inputs) { return std::vector<LazyTensor>{derivative}; };
    return custom_vjp(CustomVjp{.name = "strays",
                                .forward = [](Inputs a) { return std::vector<LazyTensor>{a[0] * 2.0}; },
                                .backward = rule,
                                .tangent = rule});
  };
  const LazyTensor x = on_null(kHere);
  const LazyTensor y = gives(on_cpu(kHere))({&x, 1})[0];
  expect_device_error([&] { grad(sum(y), x); }, "custom_vjp 'strays'");
  expect_device_error([&] { jvp({&y, 1}, {&x, 1}, {&x, 1}); }, "custom_vjp 'strays'");
  const LazyTensor scalar = on_null(Shape{});
  const LazyTensor z = gives(3.0)({&scalar, 1})[0];
  EXPECT_EQ(grad(z, scalar).device(), Device::null()) << "a bare number fits";
}

TEST(DevicesOfDerivatives, TheRuleOfAnOperationStaysOnItsDevice) {
  static const OpDef kStrays{.name = "strays", .kind = OpClass::identity, .vjp = [](VjpContext& c) {
                               c.grads[0] = on_cpu(c.inputs[0].shape());
                             }};
  const LazyTensor x = on_null(kHere);
  expect_device_error([&] { grad(sum(ops::make(kStrays, x.shape(), x.dtype(), {x})), x); }, "'strays'");
}

TEST(DevicesOfDerivatives, FollowATensorThatMoves) {
  const LazyTensor x = on_null(kHere);
  EXPECT_EQ(grad(sum(x.to(Device::cpu()) * 2.0), x).device(), Device::null());
}

TEST(DevicesOfDerivatives, VmapPutsBareNumbersBesideItsArguments) {
  const UnaryFunction constant = [](const LazyTensor&) { return LazyTensor(2.0); };
  const LazyTensor there = vmap(constant)(on_null(kHere));
  EXPECT_EQ(there.device(), Device::null());
  EXPECT_EQ(there.shape(), Shape{2});
  for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const LazyTensor x = LazyTensor::zeros(kHere, type, Device::cpu());
    EXPECT_EQ(vmap(constant)(x).dtype(), type);
    EXPECT_EQ((vmap(constant)(x) + x.reshape(Shape{3, 2})).dtype(), type);
  }
  const LazyTensor k = LazyTensor::zeros(kHere, DType::i64, Device::cpu());
  EXPECT_EQ(vmap(UnaryFunction([](const LazyTensor&) { return LazyTensor(7); }))(k).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{7, 7}));
}

}  // namespace
}  // namespace caldera::testing
