// Where largest elements are, of small and of large windows; what adaptive windows do not see; gradients of
// grid_sample at the centres of elements.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/caldera.h"

namespace caldera::testing {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// All different: the places of a permutation.
std::vector<double> distinct_numbers(std::int64_t count) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(static_cast<double>(i * 7919 % count) - 100);
  return out;
}

struct IndexedCase {
  Shape shape;
  Spatial kernel;
  PoolOptions options = {};
};

TEST(IndexedPooling, PointsAtTheElementsThatMaxPoolGives) {
  for (const IndexedCase& c : {IndexedCase{{2, 3, 101}, {40}},
                               {{1, 2, 90}, {37}, {.stride = {5}, .padding = {18}}},
                               {{2, 2, 23, 19}, {7, 8}, {.stride = {2, 1}}},
                               {{1, 2, 20, 18}, {6, 6}, {.padding = {3}}},
                               {{1, 1, 23, 26}, {7, 6}, {.stride = {5}, .padding = {1}, .ceil_mode = true}},
                               {{1, 2, 23, 26}, {3, 2}, {.stride = {2}, .padding = {1}, .ceil_mode = true}},
                               {{1, 2, 12, 11, 10}, {4, 3, 5}, {.stride = {2, 3, 1}, .padding = {1}}}}) {
    SCOPED_TRACE(c.shape.to_string());
    const std::vector<double> x = distinct_numbers(c.shape.numel());
    const LazyTensor given = LazyTensor::from_vector(x, c.shape);
    const IndexedMaxResult found = max_pool_with_indices(given, c.kernel, c.options);
    const std::vector<double> expected = max_pool(given, c.kernel, c.options).to_vector<double>(),
                              values = found.values.to_vector<double>();
    const std::vector<std::int32_t> indices = found.indices.to_vector<std::int32_t>();
    ASSERT_EQ(values, expected);
    ASSERT_EQ(indices.size(), values.size());
    const std::int64_t channels = c.shape[0] * c.shape[1], elements = c.shape.numel() / channels,
                       windows = found.values.numel() / channels;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t channel = static_cast<std::int64_t>(i) / windows;
      ASSERT_GE(indices[i], 0);
      ASSERT_LT(indices[i], elements);
      ASSERT_EQ(x[static_cast<std::size_t>(channel * elements + indices[i])], values[i]) << i;
    }
  }
}

TEST(AdaptivePooling, SeesNothingOfOtherWindows) {
  // Windows of 7 elements in 3: 0-2, 2-4, 4-6.
  const LazyTensor x = LazyTensor::from_vector<double>({kNothing, 1, 2, 3, 4, 5, 6}, {1, 1, 7});
  const std::vector<double> means = adaptive_avg_pool(x, {3}).to_vector<double>();
  EXPECT_TRUE(std::isnan(means[0]));
  EXPECT_DOUBLE_EQ(means[1], 3);
  EXPECT_DOUBLE_EQ(means[2], 5);
  const std::vector<double> largest = adaptive_max_pool(x, {3}).to_vector<double>();
  EXPECT_TRUE(std::isnan(largest[0]));
  EXPECT_EQ(largest[1], 4);
  EXPECT_EQ(largest[2], 6);
}

TEST(AdaptivePooling, GradientsOfTiesGoToTheElementThatIndicesName) {
  const LazyTensor x = LazyTensor::from_vector<double>({0, 5, 5, 0, 5, 0, 0, 5}, {1, 1, 2, 2, 2});
  for (const Spatial& size : {Spatial{1, 1, 1}, Spatial{2, 1, 1}, Spatial{1, 2, 1}, Spatial{3, 1, 1}}) {
    const IndexedMaxResult found = adaptive_max_pool_with_indices(x, size);
    std::vector<double> expected(8, 0);
    for (const std::int32_t at : found.indices.to_vector<std::int32_t>())
      ++expected[static_cast<std::size_t>(at)];
    EXPECT_EQ(grad(sum(adaptive_max_pool(x, size)), {x})[0].to_vector<double>(), expected);
    EXPECT_EQ(grad(sum(found.values), {x})[0].to_vector<double>(), expected);
  }
}

TEST(MaxUnpool, PutsBackWhatMaxPoolTook) {
  const LazyTensor x = LazyTensor::from_vector<double>({3, 1, 0, 7, 2, 5, 4, 6}, {1, 1, 2, 4});
  const IndexedMaxResult found = max_pool_with_indices(x, {2});
  EXPECT_EQ(max_unpool(found.values, found.indices, {2}).to_vector<double>(),
            (std::vector<double>{0, 0, 0, 7, 0, 5, 0, 0}));
}

TEST(GridSample, HasTheSlopeToTheNextElementAtCentres) {
  // PyTorch's rule: at an element the two that count are it and the next one.
  const LazyTensor x = LazyTensor::from_vector<double>({1, 4, 9}, {1, 1, 1, 3});
  const LazyTensor grid = LazyTensor::from_vector<double>({0, 0}, {1, 1, 1, 2});
  const LazyTensor slope = grad(sum(grid_sample(x, grid, {.align_corners = true})), {grid})[0];
  EXPECT_EQ(slope.to_vector<double>()[0], 9 - 4);  // half of 3 - 1 elements for a step of 1
}

}  // namespace
}  // namespace caldera::testing
