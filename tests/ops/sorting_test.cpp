// Sorting against the standard library's stable algorithms: every type, lengths around the sizes of the
// network, ties, signed zeros, infinities and NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>

#include "engine/autodiff/autodiff.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class Sorting : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Sorting, ::testing::ValuesIn(op_settings()), op_setting_name);

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

bool is_less(double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); }

std::vector<double> stable_order(const std::vector<double>& x, bool descending) {
  std::vector<double> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](double i, double j) {
    const double a = x[static_cast<std::size_t>(i)], b = x[static_cast<std::size_t>(j)];
    return descending ? is_less(b, a) : is_less(a, b);
  });
  return order;
}

std::vector<double> chosen(const std::vector<double>& x, const std::vector<double>& at) {
  std::vector<double> out;
  out.reserve(at.size());
  for (const double i : at) out.push_back(x[static_cast<std::size_t>(i)]);
  return out;
}

/// Few different values, so that there are ties, and all special ones of floating types.
std::vector<double> with_ties(std::int64_t n, DType type, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> out;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto draw = static_cast<int>(random() % 40);
    double value = draw % 2 == 0 ? draw / 2 : -draw;
    if (is_unsigned(type)) value = draw * 6;
    if (type == DType::boolean) value = draw % 2;
    if (is_floating(type)) {
      constexpr double kSpecial[] = {kNaN, kInfinite, -kInfinite, 0.0, -0.0};
      if (draw < 5) value = kSpecial[draw];
    }
    out.push_back(value);
  }
  return out;
}

constexpr std::array kFewTypes{DType::i32, DType::f32};

TEST_P(Sorting, OrdersAsAStableSort) {
  for (const std::int64_t n : {1, 7, 33, 65, 200}) {
    const bool by_counting = n == 33, by_network = n == 200;
    const std::span<const DType> types =
        by_counting || by_network ? std::span<const DType>(kAllDTypes) : kFewTypes;
    std::vector<Pending> all;
    for (const DType type : supported(types)) {
      const std::vector<double> values = with_ties(n, type, static_cast<std::uint64_t>(n));
      const LazyTensor x = upload(Host(Shape{n}, values), type, device());
      for (const bool descending : {false, true}) {
        const std::string what = std::string(name(type)) + (descending ? " descending" : " ascending");
        const std::vector<double> order = stable_order(values, descending);
        all.push_back({what, argsort(x, 0, descending), Host(Shape{n}, order), {}});
        all.push_back({what, sort(x, 0, descending), Host(Shape{n}, chosen(values, order)), {}});
      }
    }
    SCOPED_TRACE(n);
    check_all(all);
  }
}

TEST_P(Sorting, ExtremeIntegersInBothDirections) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> values(70, kMost);
  values[3] = kLeast;
  values[8] = kMost - 1;
  values[69] = kLeast + 1;
  if (!supports(DType::i64)) GTEST_SKIP() << "no 64-bit integers on " << device().to_string();
  const LazyTensor x = LazyTensor::from_vector(values, Shape{70}, device());
  std::vector<std::int64_t> expected = values;
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(sort(x).to_vector<std::int64_t>(), expected);
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(sort(x, -1, true).to_vector<std::int64_t>(), expected);
  EXPECT_EQ(argsort(x).to_vector<std::int32_t>()[0], 3);
}

TEST_P(Sorting, LongRows) {
  for (const std::int64_t n : {1025, 5000}) {
    const std::vector<double> values = with_ties(2 * n, DType::f32, 5);
    const LazyTensor x = upload(Host(Shape{n, 2}, values), DType::f32, device());
    std::vector<double> expected(values.size());
    for (std::size_t column = 0; column < 2; ++column) {
      std::vector<double> one;
      for (std::size_t i = column; i < values.size(); i += 2) one.push_back(values[i]);
      const std::vector<double> order = stable_order(one, true);
      for (std::size_t i = 0; i < order.size(); ++i) expected[2 * i + column] = order[i];
    }
    EXPECT_TRUE(agrees(argsort(x, 0, true), Host(Shape{n, 2}, expected), {})) << n;
  }
}

TEST_P(Sorting, ManyShortRows) {
  for (const std::int64_t n : {2, 3, 9, 40}) {
    const std::int64_t rows = 1 << 12;
    const std::vector<double> values = with_ties(rows * n, DType::f32, 6);
    std::vector<double> expected;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::vector<double> one(values.begin() + row * n, values.begin() + (row + 1) * n);
      const std::vector<double> order = stable_order(one, false);
      expected.insert(expected.end(), order.begin(), order.end());
    }
    const LazyTensor x = upload(Host(Shape{rows, n}, values), DType::f32, device());
    EXPECT_TRUE(agrees(argsort(x), Host(Shape{rows, n}, expected), {})) << n;
  }
}

TEST_P(Sorting, EmptyTensorsHaveAnEmptyOrder) {
  const LazyTensor none = LazyTensor::zeros(Shape{0}, DType::f32, device());
  EXPECT_TRUE(argsort(none).to_vector<std::int32_t>().empty());
  EXPECT_TRUE(sort(none).to_vector<float>().empty());
  EXPECT_EQ(argsort(LazyTensor::zeros(Shape{3, 0}), 0).shape(), (Shape{3, 0}));
  EXPECT_EQ(topk(LazyTensor::zeros(Shape{0, 3}), 2).indices.shape(), (Shape{0, 2}));
}

TEST_P(Sorting, TopKIsTheBeginningOfASort) {
  for (const std::int64_t n : {33, 100, 1025}) {
    const std::vector<double> values = with_ties(n, DType::f32, 9);
    const LazyTensor x = upload(Host(Shape{n}, values), DType::f32, device());
    std::vector<Pending> all;
    for (const std::int64_t k : {1, 8, 9, 33, 70, 1000}) {
      if (k > n) continue;
      for (const bool largest : {true, false}) {
        std::vector<double> order = stable_order(values, largest);
        order.resize(static_cast<std::size_t>(k));
        const TopK top = topk(x, k, -1, largest);
        const std::string what = std::to_string(k);
        all.push_back({what, top.indices, Host(Shape{k}, order), {}});
        all.push_back({what, top.values, Host(Shape{k}, chosen(values, order)), {}});
      }
    }
    SCOPED_TRACE(n);
    check_all(all);
  }
}

TEST_P(Sorting, TopKOfSeveralRowsInAnOddNumberOfRuns) {
  constexpr std::int64_t kRows = 3, kLength = 64 * 7 - 5, kWanted = 20;
  const std::vector<double> values = with_ties(kRows * kLength, DType::f32, 2);
  std::vector<double> expected;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::vector<double> one(values.begin() + row * kLength, values.begin() + (row + 1) * kLength);
    const std::vector<double> order = stable_order(one, true);
    expected.insert(expected.end(), order.begin(), order.begin() + kWanted);
  }
  const LazyTensor x = upload(Host(Shape{kRows, kLength}, values), DType::f32, device());
  EXPECT_TRUE(agrees(topk(x, kWanted).indices, Host(Shape{kRows, kWanted}, expected), {}));
}

TEST_P(Sorting, GradientsGoToWhereElementsCameFrom) {
  constexpr std::int64_t kLength = 300;
  const std::vector<double> values = with_ties(kLength, DType::i32, 3);
  const LazyTensor x = upload(Host(Shape{kLength}, values), DType::f32, device());
  std::vector<double> weights(values.size());
  std::iota(weights.begin(), weights.end(), 1);
  const LazyTensor w = upload(Host(Shape{kLength}, weights), DType::f32, device());
  std::vector<double> expected(values.size());
  const std::vector<double> order = stable_order(values, false);
  for (std::size_t i = 0; i < order.size(); ++i) expected[static_cast<std::size_t>(order[i])] = weights[i];
  EXPECT_TRUE(agrees(grad(sum(sort(x) * w), x), Host(Shape{kLength}, expected), {}));
}

TEST_P(Sorting, GradientsOfManyRows) {
  // More elements than some drivers let one invocation walk (65,535).
  constexpr std::int64_t kRows = 9000, kLength = 8;
  const LazyTensor x = random_normal({kRows, kLength}, 4, DType::f32, device());
  const LazyTensor w = random_normal({kRows, kLength}, 5, DType::f32, device());
  const std::vector<double> values = download(x), weights = download(w);
  std::vector<double> of_sort(values.size()), of_median(values.size());
  for (std::size_t row = 0; row < kRows; ++row) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * kLength);
    const std::vector<double> order = stable_order(std::vector<double>(first, first + kLength), false);
    for (std::size_t i = 0; i < kLength; ++i) {
      const std::size_t at = row * kLength + static_cast<std::size_t>(order[i]);
      of_sort[at] = weights[row * kLength + i];
      if (i == kLength / 2 - 1 || i == kLength / 2) of_median[at] = 0.5;
    }
  }
  const Shape shape{kRows, kLength};
  EXPECT_TRUE(agrees(grad(sum(sort(x) * w), x), Host(shape, of_sort), {}));
  EXPECT_TRUE(agrees(grad(sum(median(x)), x), Host(shape, of_median), {}));
}

TEST_P(Sorting, SearchesLikeTheStandardLibrary) {
  for (const std::int64_t n : {1, 7, 64, 65, 1000}) {
    std::vector<double> sorted = with_ties(n, DType::f32, 4);
    std::sort(sorted.begin(), sorted.end(), is_less);
    const std::vector<double> values = with_ties(100, DType::f32, 8);
    const LazyTensor s = upload(Host(Shape{n}, sorted), DType::f32, device());
    const LazyTensor v = upload(Host(Shape{4, 25}, values), DType::f32, device());
    std::vector<double> left, right;
    for (const double value : values) {
      const auto at = [&](auto found) { return static_cast<double>(found - sorted.begin()); };
      left.push_back(at(std::lower_bound(sorted.begin(), sorted.end(), value, is_less)));
      right.push_back(at(std::upper_bound(sorted.begin(), sorted.end(), value, is_less)));
    }
    EXPECT_TRUE(agrees(searchsorted(s, v), Host(Shape{4, 25}, left), {})) << n;
    EXPECT_TRUE(agrees(searchsorted(s, v, true), Host(Shape{4, 25}, right), {})) << n;
  }
}

TEST_P(Sorting, SearchesEachRowInItsSequence) {
  const auto row = [](std::int64_t start) {
    std::vector<double> out(80);
    std::iota(out.begin(), out.end(), start);
    return out;
  };
  std::vector<double> rows = row(0);
  const std::vector<double> second = row(1000);
  rows.insert(rows.end(), second.begin(), second.end());
  const LazyTensor s = upload(Host(Shape{2, 80}, rows), DType::i32, device());
  const LazyTensor v =
      upload(Host(Shape{2, 3}, std::vector<double>{5, -1, 2000, 1005, 1000, 3}), DType::i32, device());
  EXPECT_TRUE(agrees(searchsorted(s, v), Host(Shape{2, 3}, std::vector<double>{5, 0, 80, 5, 0, 0}), {}));
}

TEST_P(Sorting, QuantilesOfSpecialValues) {
  const auto median_of = [&](const std::vector<double>& values) {
    const Shape shape{static_cast<std::int64_t>(values.size())};
    return median(upload(Host(shape, values), DType::f32, device())).item();
  };
  EXPECT_TRUE(std::isnan(median_of({1, kNaN, 2})));
  EXPECT_EQ(median_of({kInfinite, kInfinite, 1, kInfinite}), kInfinite);
  EXPECT_EQ(median_of({-kInfinite, 5, kInfinite}), 5);
  EXPECT_EQ(median_of({4, 1, 3, 2}), 2.5);
}

}  // namespace
}  // namespace caldera::testing
