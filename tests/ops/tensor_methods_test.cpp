// The members of LazyTensor and its compound assignments, against C++ loops and closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "ops/ops.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class TensorMethods : public OpTest {
 protected:
  /// x[i][j] = (3 i + j) / 4 + 1 / 8, shape (2, 3).
  LazyTensor x() const { return LazyTensor::from_vector(values_, Shape{2, 3}); }
  std::vector<float> values_{0.125F, 0.375F, 0.625F, 0.875F, 1.125F, 1.375F};
};
INSTANTIATE_TEST_SUITE_P(Devices, TensorMethods, ::testing::ValuesIn(op_settings()), op_setting_name);

void expect_near(const LazyTensor& actual, const std::vector<double>& expected, double tolerance = 1e-6) {
  const std::vector<float> values = actual.astype(DType::f32).to_vector<float>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], tolerance) << "element " << i;
}

TEST_P(TensorMethods, ApplyFunctionsToEveryElement) {
  struct Case {
    const char* name;
    LazyTensor (*member)(const LazyTensor&);
    double (*expected)(double);
  };
  const Case cases[] = {
      {"exp", [](const LazyTensor& t) { return t.exp(); }, [](double v) { return std::exp(v); }},
      {"log", [](const LazyTensor& t) { return t.log(); }, [](double v) { return std::log(v); }},
      {"sqrt", [](const LazyTensor& t) { return t.sqrt(); }, [](double v) { return std::sqrt(v); }},
      {"rsqrt", [](const LazyTensor& t) { return t.rsqrt(); }, [](double v) { return 1 / std::sqrt(v); }},
      {"reciprocal", [](const LazyTensor& t) { return t.reciprocal(); }, [](double v) { return 1 / v; }},
      {"square", [](const LazyTensor& t) { return t.square(); }, [](double v) { return v * v; }},
      {"abs", [](const LazyTensor& t) { return (t - 1).abs(); }, [](double v) { return std::abs(v - 1); }},
      {"sin", [](const LazyTensor& t) { return t.sin(); }, [](double v) { return std::sin(v); }},
      {"cos", [](const LazyTensor& t) { return t.cos(); }, [](double v) { return std::cos(v); }},
      {"tanh", [](const LazyTensor& t) { return t.tanh(); }, [](double v) { return std::tanh(v); }},
      {"sigmoid", [](const LazyTensor& t) { return t.sigmoid(); },
       [](double v) { return 1 / (1 + std::exp(-v)); }},
      {"relu", [](const LazyTensor& t) { return (t - 1).relu(); },
       [](double v) { return std::max(v - 1, 0.0); }},
      {"pow", [](const LazyTensor& t) { return t.pow(1.5); }, [](double v) { return std::pow(v, 1.5); }},
      {"clamp", [](const LazyTensor& t) { return t.clamp(0.5, 1.0); },
       [](double v) { return std::clamp(v, 0.5, 1.0); }},
      {"clamp below", [](const LazyTensor& t) { return t.clamp(0.5); },
       [](double v) { return std::max(v, 0.5); }},
      {"clamp above", [](const LazyTensor& t) { return t.clamp(std::nullopt, 1); },
       [](double v) { return std::min(v, 1.0); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::vector<double> expected;
    for (const float v : values_) expected.push_back(c.expected(v));
    expect_near(c.member(x()), expected, 1e-5);
  }
}

TEST_P(TensorMethods, ReduceOverAllAxesOrSome) {
  const double all = std::accumulate(values_.begin(), values_.end(), 0.0);
  expect_near(x().sum(), {all});
  expect_near(x().sum(0), {1.0, 1.5, 2.0});
  expect_near(x().mean(-1), {0.375, 1.125});
  EXPECT_EQ(x().mean(-1, true).shape(), (Shape{2, 1}));
  expect_near(x().prod(0), {0.125 * 0.875, 0.375 * 1.125, 0.625 * 1.375});
  expect_near(x().max(1), {0.625, 1.375});
  expect_near(x().min(0), {0.125, 0.375, 0.625});
  // Of a, a + 1/4, a + 1/2: the squares of 1/4, 0, 1/4, over 3 or over 2.
  expect_near(x().var(1), {2.0 / 48, 2.0 / 48});
  expect_near(x().var(1, 1), {2.0 / 32, 2.0 / 32});
  expect_near(x().std(1), {std::sqrt(2.0 / 48), std::sqrt(2.0 / 48)});
  expect_near((x() > 1.2).any(1), {0, 1});
  expect_near((x() > 0.5).all(1), {0, 1});
  EXPECT_EQ(x().argmax().item<std::int32_t>(), 5);
  EXPECT_EQ(x().argmin(1).to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 0}));
  expect_near(x().cumsum(), {0.125, 0.5, 1.125, 0.875, 2.0, 3.375});
}

TEST_P(TensorMethods, RearrangeAxes) {
  const std::vector<double> turned{0.125, 0.875, 0.375, 1.125, 0.625, 1.375};
  for (const LazyTensor& y : {x().T(), x().transpose(), x().transpose(0, 1), x().permute({1, 0})}) {
    EXPECT_EQ(y.shape(), (Shape{3, 2}));
    expect_near(y, turned);
  }
  EXPECT_EQ(x().reshape({3, -1}).shape(), (Shape{3, 2}));
  EXPECT_EQ(x().flatten().shape(), (Shape{6}));
  EXPECT_EQ(x().unsqueeze(1).shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(x().unsqueeze(1).squeeze(1).shape(), (Shape{2, 3}));
  EXPECT_EQ(x().unsqueeze(0).squeeze().shape(), (Shape{2, 3}));
  expect_near(x().unsqueeze(0).broadcast_to({4, 2, 3}).sum(0), {0.5, 1.5, 2.5, 3.5, 4.5, 5.5});
  EXPECT_MENTIONS(message_of<ShapeError>([&] { x().unsqueeze(0).T(); }), "(1, 2, 3)");
}

TEST_P(TensorMethods, MultiplyNormaliseAndConvert) {
  const LazyTensor ones = LazyTensor::from_vector(std::vector<float>(6, 1), Shape{3, 2});
  expect_near(x().matmul(ones), {1.125, 1.125, 3.375, 3.375});
  double total = 0;
  for (int j = 0; j < 3; ++j) total += std::exp(0.25 * j);
  std::vector<double> weights, logarithms;
  for (int i = 0; i < 6; ++i) {
    weights.push_back(std::exp(0.25 * (i % 3)) / total);
    logarithms.push_back(std::log(weights.back()));
  }
  expect_near(x().softmax(), weights);
  expect_near(x().log_softmax(), logarithms);
  EXPECT_EQ(x().to(DType::i32).to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(x().astype(DType::f16).dtype(), DType::f16);
  EXPECT_EQ(x().to(device()).device(), device());
}

TEST_P(TensorMethods, CompoundAssignmentRebindsTheHandleAlone) {
  LazyTensor y = x();
  const LazyTensor before = y;
  const LazyTensor built = y * 2;
  y += 1;
  y -= x();  // 1
  y *= 3;    // 3
  y /= 2.0;  // 1.5
  expect_near(y, std::vector<double>(6, 1.5));
  expect_near(before, {0.125, 0.375, 0.625, 0.875, 1.125, 1.375});
  expect_near(built, {0.25, 0.75, 1.25, 1.75, 2.25, 2.75});
  // The result has the type and the shape of the sum.
  LazyTensor count = LazyTensor::from_vector(std::vector<std::int32_t>{1, 2}, Shape{2});
  count += 1;
  EXPECT_EQ(count.dtype(), DType::i32);
  count += LazyTensor::from_vector(std::vector<float>{0.5F}, Shape{1, 1});
  EXPECT_EQ(count.dtype(), DType::f32);
  EXPECT_EQ(count.shape(), (Shape{1, 2}));
  expect_near(count, {2.5, 3.5});
}

TEST_P(TensorMethods, FreeMakersAreTheStaticOnes) {
  expect_near(zeros({2}), {0, 0});
  expect_near(ones({2}), {1, 1});
  expect_near(full({2}, 2.5), {2.5, 2.5});
  EXPECT_EQ(zeros({3}, DType::i64).dtype(), DType::i64);
  EXPECT_EQ(full({}, 7, DType::i32, device()).item<std::int32_t>(), 7);
  EXPECT_EQ(empty({2, 3}).shape(), (Shape{2, 3}));
  EXPECT_EQ(ones({2}).device(), default_device());
}

}  // namespace
}  // namespace caldera::testing
