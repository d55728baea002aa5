// Convolutions of the CPU: each way of computing them beside the plain sum in double.
#include "ops/spatial/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/check/reference/reference_plan.h"
#include "engine/plan/verify.h"
#include "engine/runtime/evaluate.h"

namespace caldera {
namespace {

struct ConvCase {
  const char* what;
  std::int64_t images, channels, height, width, outputs, kernel, stride, padding, dilation, groups;
};

// Sizes at which Winograd's transforms, windows laid out by blocks, and channels by themselves are taken.
const std::vector<ConvCase> kConvCases{{"windows", 2, 3, 9, 11, 5, 3, 1, 1, 1, 1},
                                       {"windows in groups, strided", 3, 4, 8, 8, 6, 3, 2, 1, 1, 2},
                                       {"strides that leave rows out", 2, 5, 12, 10, 33, 5, 3, 2, 2, 1},
                                       {"one tap, strided", 2, 16, 6, 6, 40, 1, 2, 0, 1, 1},
                                       {"more channels than a block", 5, 70, 5, 5, 30, 3, 1, 1, 1, 1},
                                       {"lines of an image", 19, 6, 14, 14, 16, 5, 1, 0, 1, 1},
                                       {"lines with wide margins", 2, 3, 9, 7, 4, 3, 1, 2, 2, 1},
                                       {"channels by themselves", 2, 6, 7, 33, 6, 3, 1, 1, 1, 6},
                                       {"channels by themselves, strided", 2, 6, 9, 7, 6, 3, 2, 1, 1, 6},
                                       {"winograd, several images", 14, 32, 14, 15, 33, 3, 1, 0, 1, 1},
                                       {"winograd, rows of one image", 2, 33, 42, 50, 40, 3, 1, 2, 1, 1}};

struct Sums {
  std::vector<double> y, x, w;
};

/// The sum of ConvolutionNode, one product at a time: y of x and w, and the gradients of y * g.
Sums plain_sums(const ConvCase& c, const std::vector<double>& x, const std::vector<double>& w,
                const std::vector<double>& g, std::int64_t rows, std::int64_t columns) {
  Sums sums{std::vector<double>(g.size()), std::vector<double>(x.size()), std::vector<double>(w.size())};
  const std::int64_t in = c.channels / c.groups, out = c.outputs / c.groups;
  for (std::int64_t n = 0; n < c.images; ++n) {
    for (std::int64_t o = 0; o < c.outputs; ++o) {
      for (std::int64_t i = 0; i < rows * columns; ++i) {
        const auto at_y = static_cast<std::size_t>((n * c.outputs + o) * rows * columns + i);
        for (std::int64_t k = 0; k < in * c.kernel * c.kernel; ++k) {
          const std::int64_t channel = o / out * in + k / (c.kernel * c.kernel),
                             tap = k % (c.kernel * c.kernel);
          const std::int64_t row = i / columns * c.stride - c.padding + tap / c.kernel * c.dilation,
                             column = i % columns * c.stride - c.padding + tap % c.kernel * c.dilation;
          if (row < 0 || column < 0 || row >= c.height || column >= c.width) continue;
          const auto at_x =
              static_cast<std::size_t>(((n * c.channels + channel) * c.height + row) * c.width + column);
          const auto at_w = static_cast<std::size_t>(o * in * c.kernel * c.kernel + k);
          sums.y[at_y] += x[at_x] * w[at_w];
          sums.x[at_x] += g[at_y] * w[at_w];
          sums.w[at_w] += g[at_y] * x[at_x];
        }
      }
    }
  }
  return sums;
}

/// The largest error beside the largest element.
template <class T>
double relative_error(const LazyTensor& got, const std::vector<double>& want) {
  const std::vector<T> values = got.to_vector<T>();
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(values[i]) - want[i]));
    size = std::max(size, std::abs(want[i]));
  }
  return error / size;
}

template <class T>
void check_convolution(const ConvCase& c, double bound) {
  SCOPED_TRACE(c.what);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto drawn = [&](const Shape& shape, std::vector<double>& values) {
    std::vector<T> given;
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      given.push_back(static_cast<T>(normal(random)));
      values.push_back(static_cast<double>(given.back()));
    }
    return LazyTensor::from_vector(given, shape, Device::cpu());
  };
  const auto extent = [&](std::int64_t n) {
    return (n + 2 * c.padding - c.dilation * (c.kernel - 1) - 1) / c.stride + 1;
  };
  const std::int64_t rows = extent(c.height), columns = extent(c.width);
  std::vector<double> xs, ws, gs;
  const LazyTensor x = drawn(Shape{c.images, c.channels, c.height, c.width}, xs),
                   w = drawn(Shape{c.outputs, c.channels / c.groups, c.kernel, c.kernel}, ws),
                   g = drawn(Shape{c.images, c.outputs, rows, columns}, gs);
  const LazyTensor y = conv(
      x, w, {}, {.stride = {c.stride}, .padding = {c.padding}, .dilation = {c.dilation}, .groups = c.groups});
  ASSERT_EQ(y.shape(), g.shape());
  const std::vector<LazyTensor> grads = grad(sum(y * g), {x, w});
  const Sums want = plain_sums(c, xs, ws, gs, rows, columns);
  EXPECT_LT(relative_error<T>(y, want.y), bound);
  EXPECT_LT(relative_error<T>(grads[0], want.x), bound);
  EXPECT_LT(relative_error<T>(grads[1], want.w), bound);
}

// Sums of up to 2 x 2100 products; Winograd's transforms multiply by up to 8 twice and divide again.
TEST(CpuConvolution, IsThePlainSumInFloat) {
  for (const ConvCase& c : kConvCases) check_convolution<float>(c, 1e-5);
}
TEST(CpuConvolution, IsThePlainSumInDouble) {
  for (const ConvCase& c : kConvCases) check_convolution<double>(c, 1e-13);
}

TEST(CpuConvolution, TransposedIsTheGradientOfItsInput) {
  const LazyTensor x = random_normal(Shape{2, 4, 5, 6}, 1, DType::f64, Device::cpu()),
                   w = random_normal(Shape{4, 3, 3, 3}, 2, DType::f64, Device::cpu());
  const ConvOptions options{.stride = {2}, .padding = {1}, .output_padding = {1}};
  const LazyTensor up = conv_transpose(x, w, {}, options);
  ASSERT_EQ(up.shape(), (Shape{2, 3, 10, 12}));
  const LazyTensor image = random_normal(up.shape(), 3, DType::f64, Device::cpu());
  // <conv(image, w), x> is <image, conv_transpose(x, w)>.
  const double left = sum(conv(image, w, {}, {.stride = {2}, .padding = {1}}) * x).item<double>();
  EXPECT_NEAR(left, sum(image * up).item<double>(), 1e-11 * std::abs(left) + 1e-11);
}

TEST(CpuConvolution, IsOneStep) {
  const LazyTensor x = random_normal(Shape{2, 3, 8, 8}, 1, DType::f32, Device::cpu()).eval(),
                   w = random_normal(Shape{4, 3, 3, 3}, 2, DType::f32, Device::cpu()).eval();
  const auto plan = plan_for({conv(x, w, {}, {.padding = {1}})});
  ASSERT_EQ(plan->steps.size(), 1U);
  EXPECT_TRUE(plan->steps[0].is<ConvolutionStep>());
}

TEST(CpuConvolution, IsWhatTheInterpreterOfPlansMakes) {
  const LazyTensor x = random_normal(Shape{2, 4, 6, 5}, 1, DType::f64, Device::cpu()).eval(),
                   w = random_normal(Shape{6, 2, 3, 3}, 2, DType::f64, Device::cpu()).eval();
  const LazyTensor y = conv(x, w, {}, {.stride = {2}, .padding = {1}, .groups = 2});
  const auto plan = plan_for({y});
  reference::PlanMemory memory;
  for (const PlanBuffer& buffer : plan->buffers)
    memory.buffers.emplace_back(static_cast<std::size_t>(buffer.bytes));
  x.copy_to_host(memory.buffers[0].data());
  w.copy_to_host(memory.buffers[1].data());
  memory.scalars = plan->constants;
  reference::run_reference(*plan, memory);
  std::vector<double> want(static_cast<std::size_t>(y.numel()));
  std::memcpy(want.data(), memory.buffers[2].data(), want.size() * sizeof(double));
  EXPECT_LT(relative_error<double>(y, want), 1e-14);
}

TEST(CpuConvolution, TheVerifierKnowsItsForm) {
  const LazyTensor x = random_normal(Shape{2, 3, 8, 8}, 1, DType::f32, Device::cpu()).eval(),
                   w = random_normal(Shape{4, 3, 3, 3}, 2, DType::f32, Device::cpu()).eval();
  const auto sound = plan_for({conv(x, w)});
  EXPECT_NO_THROW(verify_plan(*sound));
  const auto rejected = [&](auto damage) {
    Plan plan = *sound;
    damage(plan.steps[0]);
    EXPECT_THROW(verify_plan(plan), PlanError);
  };
  rejected([](Step& step) { step.dtype = DType::f16; });
  rejected([](Step& step) { step.scalars = {0}; });
  rejected([](Step& step) { step.operands.pop_back(); });
  rejected([](Step& step) { step.operands[0].strides[3] = 2; });
  rejected([](Step& step) { step.operands[2].strides[1] += 1; });
  rejected([](Step& step) { step.dims[1] += 1; });
  rejected([](Step& step) { step.as<ConvolutionStep>().what.groups = 2; });
  rejected([](Step& step) { step.as<ConvolutionStep>().what.stride[0] = 0; });
  rejected([](Step& step) { step.as<ConvolutionStep>().what.padding[1] = -1; });
  rejected([](Step& step) { step.as<ConvolutionStep>().a[0] = 3; });
  rejected([](Step& step) { step.as<ConvolutionStep>().b[1] = 2; });
}

}  // namespace
}  // namespace caldera
