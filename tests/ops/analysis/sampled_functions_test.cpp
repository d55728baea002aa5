// Integrals, derivatives, covariances and distances of what they are known for; tensors composed of others.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class SampledFunctions : public OpTest {
 protected:
  LazyTensor tensor(const Shape& shape, const std::vector<double>& values, DType type = DType::f32) const {
    return upload(Host(shape, values), type, device());
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, SampledFunctions, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(SampledFunctions, OfStraightLinesAndParabolasAreExact) {
  // 2 x + 1 at uneven places: its integral from 0 is x^2 + x; x^2 has its derivative everywhere by order 2.
  const LazyTensor x = tensor({5}, {0, 1, 3, 4, 8});
  const LazyTensor line = 2 * x + 1;
  EXPECT_EQ(download(trapezoid(line, x)), (std::vector<double>{72}));
  EXPECT_EQ(download(cumulative_trapezoid(line, x)), (std::vector<double>{2, 12, 20, 72}));
  EXPECT_EQ(download(gradient(line, std::vector<LazyTensor>{x})[0]), (std::vector<double>(5, 2)));
  const std::vector<double> slopes = download(gradient(x * x, std::vector<LazyTensor>{x}, {}, 2)[0]);
  const std::vector<double> exact{0, 2, 6, 8, 16};
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(slopes[i], exact[i], 1e-5);
  const LazyTensor even = tensor({4}, {0, 1, 4, 9});
  EXPECT_EQ(download(gradient(even, 1.0, {}, 2)[0]), (std::vector<double>{0, 2, 4, 6}));
  EXPECT_EQ(download(gradient(even)[0]), (std::vector<double>{1, 2, 4, 5}));
  EXPECT_EQ(download(gradient(tensor({4}, {0, 1, 4, 9}, DType::i32), 2.0)[0]),
            (std::vector<double>{0.5, 1, 2, 2.5}));
  EXPECT_EQ(gradient(zeros(Shape{2, 3})).size(), 2U);
  EXPECT_TRUE(gradient(zeros(Shape{}, DType::f32)).empty());
  EXPECT_EQ(download(trapezoid(tensor({1}, {5}))), (std::vector<double>{0}));
}

TEST_P(SampledFunctions, CorrelationsAndDistances) {
  const LazyTensor x = tensor({3, 4}, {1, 2, 3, 4, 2, 4, 6, 8, 4, 3, 2, 1});
  EXPECT_EQ(download(corrcoef(x)), (std::vector<double>{1, 1, -1, 1, 1, -1, -1, -1, 1}));
  EXPECT_EQ(download(cov(tensor({3}, {1, 2, 3}))), (std::vector<double>{1}));
  // Where two vectors are the same the distance has no slope.
  const LazyTensor a = tensor({2, 2}, {0, 0, 3, 4}), b = tensor({1, 2}, {0, 0});
  EXPECT_EQ(download(cdist(a, b)), (std::vector<double>{0, 5}));
  const std::vector<double> slope = download(grad(sum(cdist(a, b)), a));
  EXPECT_EQ(slope[0], 0);
  EXPECT_NEAR(slope[2], 0.6, 1e-6);
  EXPECT_EQ(download(pdist(tensor({3, 1}, {1, 4, 9}))), (std::vector<double>{3, 8, 5}));
  EXPECT_EQ(download(cdist(zeros(Shape{2, 0}), zeros(Shape{3, 0}))), (std::vector<double>(6, 0)));
  EXPECT_EQ(download(normalize(tensor({1, 2}, {3, 4}))),
            (std::vector<double>{static_cast<float>(0.6), static_cast<float>(0.8)}));
  EXPECT_EQ(download(normalize(tensor({1, 2}, {0, 0}))), (std::vector<double>{0, 0}));
}

TEST_P(SampledFunctions, CompositionsAndCountedRepetition) {
  const LazyTensor x = tensor({3}, {0, 2, 3});
  EXPECT_EQ(download(vander(x)), (std::vector<double>{0, 0, 1, 4, 2, 1, 9, 3, 1}));
  // 0 to the power of 0 is 1, without a slope.
  EXPECT_EQ(download(grad(sum(vander(x)), x)), (std::vector<double>{1, 5, 7}));
  EXPECT_EQ(download(combinations(x, 2)), (std::vector<double>{0, 2, 0, 3, 2, 3}));
  EXPECT_EQ(combinations(x, 0).shape(), (Shape{0, 0}));
  EXPECT_EQ(download(rot90(tensor({2, 2}, {1, 2, 3, 4}))), (std::vector<double>{2, 4, 1, 3}));
  // The sum of the counts is read where no total is given; a total that is larger leaves places without one.
  const LazyTensor counts = tensor({3}, {2, 0, 1}, DType::i64);
  EXPECT_EQ(download(repeat(x, counts)), (std::vector<double>{0, 0, 3}));
  const std::vector<double> longer = download(repeat(x, counts, 0, 4));
  EXPECT_TRUE(std::isnan(longer[3]));
  EXPECT_EQ(download(repeat(x, counts, 0, 1)), (std::vector<double>{0}));
  EXPECT_EQ(download(repeat(x, tensor({3}, {-1, 1, 0}, DType::i32))), (std::vector<double>{2}));
  EXPECT_EQ(repeat(x, tensor({3}, {0, 0, 0}, DType::i32)).shape(), (Shape{0}));
}

}  // namespace
}  // namespace caldera::testing
