// Pooling by large windows, which is computed along one axis after the other: values and gradients against
// loops over the elements of each window.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

struct PooledCase {
  Shape shape;
  Spatial kernel;
  PoolOptions options = {};
};

const std::vector<PooledCase>& pooled_cases() {
  static const std::vector<PooledCase> kCases{
      {{2, 3, 100}, {40}},
      {{1, 2, 131}, {33}, {.stride = {1}}},
      {{2, 1, 90}, {37}, {.stride = {5}, .padding = {18}}},
      {{1, 1, 200}, {34}, {.stride = {3}, .padding = {2}, .dilation = {5}}},
      {{2, 2, 21, 24}, {7, 8}},
      {{1, 2, 23, 19}, {7, 8}, {.stride = {2, 1}}},
      {{1, 2, 20, 18}, {6, 6}, {.padding = {3}}},
      {{1, 2, 20, 18}, {6, 6}, {.padding = {3}, .count_include_pad = false}},
      {{1, 1, 23, 26}, {7, 6}, {.stride = {5}, .padding = {1}, .ceil_mode = true}},
      {{1, 2, 12, 11, 10}, {4, 3, 5}, {.stride = {2, 3, 1}, .padding = {1}}},
      {{1, 1, 40, 40}, {33, 1}},
      {{1, 1, 9, 12}, {9, 12}},
      {{2, 2, 9, 14}, {4, 4}},
      {{1, 2, 5, 7, 11}, {2, 3, 5}},
  };
  return kCases;
}

/// What a window has at each place: an element of x, a margin's, or nothing that counts.
template <class Visit>
void visit_window(const PooledCase& c, const Shape& out, std::int64_t window, const Visit& visit) {
  const int n = c.shape.rank() - 2;
  const auto setting = [](const Spatial& all, int i) {
    return all.size() == 1 ? all[0] : all[static_cast<std::size_t>(i)];
  };
  std::vector<std::int64_t> at(static_cast<std::size_t>(n)), place(static_cast<std::size_t>(n), 0);
  for (int i = n; i-- > 0; window /= out[i + 2]) at[static_cast<std::size_t>(i)] = window % out[i + 2];
  const std::int64_t lead = window;  // example and channel
  for (;;) {
    std::int64_t from = lead;
    bool is_inside = true, is_counted = true;
    for (int i = 0; i < n; ++i) {
      const auto d = static_cast<std::size_t>(i);
      const Spatial& strides = c.options.stride.empty() ? c.kernel : c.options.stride;
      const std::int64_t padding = setting(c.options.padding, i);
      const std::int64_t x =
          at[d] * setting(strides, i) - padding + place[d] * setting(c.options.dilation, i);
      is_inside = is_inside && x >= 0 && x < c.shape[i + 2];
      is_counted = is_counted && x < c.shape[i + 2] + padding;
      from = from * c.shape[i + 2] + x;
    }
    visit(is_inside ? from : -1, is_counted);
    int axis = n;
    while (axis > 0 && ++place[static_cast<std::size_t>(axis - 1)] == setting(c.kernel, axis - 1))
      place[static_cast<std::size_t>(--axis)] = 0;
    if (axis == 0) return;
  }
}

class LargeWindows : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, LargeWindows, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(LargeWindows, ChooseTheFirstOfTheLargest) {
  for (std::size_t i = 0; i < pooled_cases().size(); ++i) {
    const PooledCase& c = pooled_cases()[i];
    Host host(c.shape, random_values(c.shape.numel(), 0, 3, true, i));
    for (double& v : host.values) v = std::round(v);  // many are equal
    for (std::size_t k = 5; k < host.values.size(); k += 97) host.values[k] = kNoNumber;
    // Windows of which elements are no better than margins.
    for (std::size_t k = 0; k < host.values.size() / 2; ++k)
      if (i % 3 == 2) host.values[k] = -std::numeric_limits<double>::infinity();
    const LazyTensor x = upload(host, DType::f32, device()), y = max_pool(x, c.kernel, c.options);
    Host factors(y.shape(), random_values(y.numel(), 1, 9, false, i + 50));
    for (double& v : factors.values) v = std::round(v);
    const LazyTensor weights = upload(factors, DType::f32, device());
    // Of NaN the sum would be NaN, but not its slopes.
    const std::vector<double> values = download(y), slopes = download(grad(sum(y * weights), x));
    std::vector<double> expected(host.values.size(), 0);
    for (std::int64_t w = 0; w < y.numel(); ++w) {
      std::int64_t best = -1;
      const auto of = [&](std::int64_t k) { return host.values[static_cast<std::size_t>(k)]; };
      visit_window(c, y.shape(), w, [&](std::int64_t from, bool) {
        if (from < 0 || (best >= 0 && std::isnan(of(best)))) return;
        if (best < 0 || of(from) > of(best) || std::isnan(of(from))) best = from;
      });
      ASSERT_GE(best, 0);
      const double found = values[static_cast<std::size_t>(w)];
      ASSERT_TRUE(found == of(best) || (std::isnan(found) && std::isnan(of(best)))) << i << " " << w;
      expected[static_cast<std::size_t>(best)] += factors.values[static_cast<std::size_t>(w)];
    }
    ASSERT_EQ(slopes, expected) << i;
  }
}

TEST_P(LargeWindows, AreDifferentiatedForwardsAndByExample) {
  const Shape shape{3, 2, 1, 9, 8};
  Host host(shape, random_values(shape.numel(), 0, 3, true, 3)),
      direction(shape, random_values(shape.numel(), 0, 3, true, 4));
  for (double& v : host.values) v = static_cast<float>(v);
  for (double& v : direction.values) v = static_cast<float>(v);
  const LazyTensor x = upload(host, DType::f32, device()), t = upload(direction, DType::f32, device());
  const auto pooled = [](const LazyTensor& of) { return max_pool(of, {4, 4}); };
  const std::vector<double> values = download(vmap(pooled)(x)),
                            tangents = download(vmap(TensorFunction([&](std::span<const LazyTensor> given) {
                              return jvp(TensorFunction(
                                             [&](std::span<const LazyTensor> of) { return pooled(of[0]); }),
                                         given.first(1), given.last(1))
                                  .second;
                            }))(std::vector{x, t})),
                            slopes = download(vmap(
                                [&](const LazyTensor&of) { return grad(sum(square(pooled(of))), of); })(x));
  std::vector<double> expected(host.values.size(), 0);
  for (std::size_t w = 0; w < values.size(); ++w) {
    const std::size_t lead = w / 4, row = w / 2 % 2 * 4, column = w % 2 * 4;
    std::size_t best = (lead * 9 + row) * 8 + column;
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t at = (lead * 9 + row + i / 4) * 8 + column + i % 4;
      if (host.values[at] > host.values[best]) best = at;
    }
    EXPECT_EQ(values[w], host.values[best]) << w;
    EXPECT_EQ(tangents[w], direction.values[best]) << w;
    expected[best] = 2 * host.values[best];
  }
  EXPECT_EQ(slopes, expected);
}

TEST_P(LargeWindows, HaveTheirMeans) {
  for (std::size_t i = 0; i < pooled_cases().size(); ++i) {
    const PooledCase& c = pooled_cases()[i];
    if (c.options.dilation != Spatial{1}) continue;  // PyTorch's has none
    const Host host(c.shape, random_values(c.shape.numel(), 0, 3, true, i));
    const LazyTensor x = upload(host, DType::f32, device()), y = avg_pool(x, c.kernel, c.options);
    const std::vector<double> values = download(y), slopes = download(grad(sum(square(y)), x));
    std::vector<double> expected(host.values.size(), 0);
    for (std::int64_t w = 0; w < y.numel(); ++w) {
      double total = 0, counted = 0;
      std::vector<std::int64_t> elements;
      visit_window(c, y.shape(), w, [&](std::int64_t from, bool is_counted) {
        if (from >= 0) elements.push_back(from);
        if (from >= 0) total += host.values[static_cast<std::size_t>(from)];
        counted += from >= 0 || (is_counted && c.options.count_include_pad) ? 1 : 0;
      });
      ASSERT_NEAR(values[static_cast<std::size_t>(w)], total / counted, 2e-6) << i << " " << w;
      for (const std::int64_t from : elements)
        expected[static_cast<std::size_t>(from)] += 2 * total / (counted * counted);
    }
    for (std::size_t k = 0; k < expected.size(); ++k)
      ASSERT_NEAR(slopes[k], expected[k], 2e-6) << i << " " << k;
  }
}

}  // namespace
}  // namespace caldera::testing
