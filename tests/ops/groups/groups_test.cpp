// What the catalogue of operations cannot say of grouped elements: results whose sizes are read from the
// data, counts of integers, types, and what is drawn.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/caldera.h"

namespace caldera::testing {
namespace {

using Ints = std::vector<std::int32_t>;

LazyTensor ints(const Ints& values) {
  return LazyTensor::from_vector(values, Shape{static_cast<std::int64_t>(values.size())});
}

TEST(Unique, IsAsLargeAsThereAreValues) {
  const UniqueResult found = unique(ints({3, 1, 3, 2, 1, 3}));
  EXPECT_EQ(found.values.to_vector<std::int32_t>(), (Ints{1, 2, 3}));
  EXPECT_EQ(found.inverse.to_vector<std::int32_t>(), (Ints{2, 0, 2, 1, 0, 2}));
  EXPECT_EQ(found.counts.to_vector<std::int32_t>(), (Ints{2, 1, 3}));
  EXPECT_EQ(found.size.item<std::int32_t>(), 3);
  const UniqueResult runs = unique_consecutive(ints({3, 3, 1, 1, 1, 3}));
  EXPECT_EQ(runs.values.to_vector<std::int32_t>(), (Ints{3, 1, 3}));
  EXPECT_EQ(runs.inverse.to_vector<std::int32_t>(), (Ints{0, 0, 1, 1, 1, 2}));
  EXPECT_EQ(runs.counts.to_vector<std::int32_t>(), (Ints{2, 3, 1}));
  EXPECT_EQ(unique(zeros(Shape{0})).values.shape(), Shape{0});
}

TEST(Unique, OfManyIntegersOfAShortRangeCountsThem) {
  for (const DType type : {DType::i64, DType::i32, DType::i16, DType::u8}) {
    SCOPED_TRACE(name(type));
    const std::int64_t n = 6000, low = type == DType::u8 ? 3 : -40;
    std::vector<std::int64_t> given;
    std::map<std::int64_t, std::int32_t> expected;
    for (std::int64_t i = 0; i < n; ++i) given.push_back(low + i * i % 97);  // squares: not all of 97
    for (const std::int64_t value : given) ++expected[value];
    const UniqueResult found = unique(astype(LazyTensor::from_vector(given, Shape{60, 100}), type));
    EXPECT_EQ(found.values.dtype(), type);
    EXPECT_EQ(found.size.item<std::int64_t>(), static_cast<std::int64_t>(expected.size()));
    const std::vector<std::int64_t> values = astype(found.values, DType::i64).to_vector<std::int64_t>();
    const Ints counts = found.counts.to_vector<std::int32_t>(),
               inverse = found.inverse.to_vector<std::int32_t>();
    ASSERT_EQ(values.size(), expected.size());
    std::size_t at = 0;
    for (const auto& [value, count] : expected) {
      EXPECT_EQ(values[at], value);
      EXPECT_EQ(counts[at++], count);
    }
    EXPECT_EQ(found.inverse.shape(), (Shape{60, 100}));
    for (std::size_t i = 0; i < given.size(); ++i)
      ASSERT_EQ(values[static_cast<std::size_t>(inverse[i])], given[i]);
  }
}

TEST(Unique, RefusesByTheNameThatWasCalled) {
  const LazyTensor x = LazyTensor::from_vector<std::int32_t>({1, 2, 2, 1, 2, 2}, {3, 2});
  const auto refusal = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      const std::string text = error.what();
      return text.substr(0, text.find(':'));
    }
    return "none";
  };
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const bool consecutive : {false, true}) {
    const auto along = [&](const LazyTensor& of, int axis, std::int64_t size, FillValue fill) {
      return consecutive ? unique_consecutive_along(of, axis, size, fill)
                         : unique_along(of, axis, size, fill);
    };
    const auto all = [&](std::int64_t size, FillValue fill) {
      return consecutive ? unique_consecutive(x, size, fill) : unique(x, size, fill);
    };
    const std::string name = consecutive ? "unique_consecutive" : "unique", name_along = name + "_along";
    EXPECT_EQ(refusal([&] { along(x, 2, 3, 0); }), name_along);
    EXPECT_EQ(refusal([&] { along(sum(x), 0, 3, 0); }), name_along);
    EXPECT_EQ(refusal([&] { along(x, 0, -1, 0); }), name_along);
    EXPECT_EQ(refusal([&] { along(x, 0, most, 0); }), name_along);
    EXPECT_EQ(refusal([&] { along(x, 0, 4, 1e19); }), name_along);
    EXPECT_EQ(refusal([&] { along(zeros(Shape{3, 0}), 0, 3, 0); }), name_along);
    EXPECT_EQ(refusal([&] { all(-1, 0); }), name);
    EXPECT_EQ(refusal([&] { all(most, 0); }), name);
    EXPECT_EQ(refusal([&] { all(4, 1e19); }), name);
  }
}

TEST(ScatterReduce, ProductsComeInTheOrderOfTheirIndices) {
  // Each of f32 rounded: 3e38 * 10 * 0.1 is infinite, 3e38 * 0.1 * 10 is not.
  const LazyTensor base = LazyTensor::from_vector<float>({3e38F, 3e38F}, {2});
  const LazyTensor at = ints({0, 0, 1, 1}), by = LazyTensor::from_vector<float>({10, 0.1F, 0.1F, 10}, {4});
  const std::vector<float> found = scatter_reduce(base, at, by, 0, ScatterReduce::prod).to_vector<float>();
  EXPECT_TRUE(std::isinf(found[0]));
  EXPECT_NEAR(found[1] / 3e38F, 1, 1e-6);
}

TEST(Repeat, ByCountsThatAreZeroAndTotalsThatAreNotTheirSum) {
  const LazyTensor x = LazyTensor::from_vector<float>({1, 2, 3, 4, 5}, {5}), counts = ints({0, 2, 0, 3, 0});
  EXPECT_EQ(repeat(x, counts).to_vector<float>(), (std::vector<float>{2, 2, 4, 4, 4}));
  EXPECT_EQ(repeat(x, counts, 0, 3).to_vector<float>(), (std::vector<float>{2, 2, 4}));
  const std::vector<float> more = repeat(x, counts, 0, 7).to_vector<float>();
  EXPECT_EQ(std::vector<float>(more.begin(), more.begin() + 5), (std::vector<float>{2, 2, 4, 4, 4}));
  EXPECT_TRUE(std::isnan(more[5]) && std::isnan(more[6]));
  EXPECT_EQ(repeat(x, ints({0}), 0).shape(), Shape{0});
}

TEST(Unique, CountsTheLastOfThoseThatFitRight) {
  const UniqueResult found = unique(ints({5, 1, 1, 1, 5, 9}), 1, 0);
  EXPECT_EQ(found.values.to_vector<std::int32_t>(), (Ints{1}));
  EXPECT_EQ(found.counts.to_vector<std::int32_t>(), (Ints{3}));
  EXPECT_EQ(found.size.item<std::int32_t>(), 3);
}

TEST(Unique, HasEachNotANumberForItself) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const UniqueResult found = unique(LazyTensor::from_vector<double>({none, 1, none, 1}, {4}));
  EXPECT_EQ(found.counts.to_vector<std::int32_t>(), (Ints{2, 1, 1}));  // as torch.unique of PyTorch 1.13
}

TEST(Bincount, CountsUpToTheLargest) {
  EXPECT_EQ(bincount(ints({1, 4, 1})).to_vector<std::int32_t>(), (Ints{0, 2, 0, 0, 1}));
  EXPECT_EQ(bincount(ints({1}), {.minlength = 4}).to_vector<std::int32_t>(), (Ints{0, 1, 0, 0}));
  EXPECT_EQ(bincount(ints({})).shape(), Shape{0});
  EXPECT_THROW(bincount(ints({1, -2})), ValueError);
  EXPECT_EQ(bincount(ints({1, -2, 9}), {.length = 2}).to_vector<std::int32_t>(), (Ints{0, 1}));
}

TEST(Histc, LeavesOutWhatIsNoNumber) {
  const double none = std::numeric_limits<double>::quiet_NaN(), far = std::numeric_limits<double>::infinity();
  const LazyTensor x = LazyTensor::from_vector<double>({none, 0, 0.5, 1, far, -far, 0.25}, {7});
  EXPECT_EQ(histc(x, 2, 0, 1).to_vector<double>(), (std::vector<double>{2, 2}));
}

TEST(MaskedScatter, ReadsNothingWhereThereIsTooLittle) {
  const LazyTensor mask = ints({1, 0, 1, 1}) > 0;
  const std::vector<double> y =
      masked_scatter(zeros({4}, DType::f64), mask, LazyTensor::from_vector<double>({7, 8}, {2}))
          .to_vector<double>();
  EXPECT_EQ(y[0], 7);
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 8);
  EXPECT_TRUE(std::isnan(y[3]));
}

TEST(AlphaDropout, KeepsMeanAndVariance) {
  // Of 2^16 normal numbers: deviations of the mean 1/256, of the variance about 1.4 / 256, of the share of
  // those dropped sqrt(p (1 - p)) / 256 = 0.0017. Five to six of them are let pass.
  const LazyTensor x = random_normal({1 << 16}, 3, DType::f64), y = alpha_dropout(selu(x), 0.25, 5);
  const double mean_before = mean(selu(x)).item<double>(), mean_after = mean(y).item<double>();
  EXPECT_NEAR(mean_after, mean_before, 0.02);
  EXPECT_NEAR(var(y).item<double>(), var(selu(x)).item<double>(), 0.03);
  // A dropped element is one value: b - alpha' a, by the formula of the paper.
  const double p = 0.25, alpha = 1.7580993408473766, a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  const double dropped = -alpha * a + alpha * a * p;
  EXPECT_NEAR(sum(astype(abs(y - dropped) < 1e-12, DType::i32)).item<double>() / (1 << 16), p, 0.01);
}

TEST(Rrelu, DrawsSlopesBetweenItsBounds) {
  const LazyTensor x = full({1 << 14}, -1, DType::f64), y = rrelu(x, 0.25, 0.75, 9);
  EXPECT_GE(min(-y).item<double>(), 0.25);
  EXPECT_LT(max(-y).item<double>(), 0.75);
  EXPECT_NEAR(mean(-y).item<double>(), 0.5, 0.006);  // the deviation is 0.5 / sqrt(12) / 128 = 0.0011
  EXPECT_EQ(max(rrelu(-x, 0.25, 0.75, 9)).item<double>(), 1);
}

TEST(Repeat, CountsBeyondThirtyTwoBitsAreNotWrapped) {
  const LazyTensor x = LazyTensor::from_vector<float>({1, 2, 3}, {3});
  const auto counts = [](const std::vector<std::int64_t>& values) {
    return LazyTensor::from_vector(values, Shape{3});
  };
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const std::vector<std::int64_t>& large :
       {std::vector<std::int64_t>{kMost, kMost, 4}, {(std::int64_t{1} << 32) + 1, 1, 1}, {1, kMost + 1, 1}})
    EXPECT_THROW(repeat(x, counts(large)), ValueError);
  EXPECT_THROW(repeat(x, astype(counts({1, 4294967295, 1}), DType::u32)), ValueError);
  EXPECT_THROW(repeat(x, counts({1, 1, 1}), 0, -1), ValueError);
  // A total cuts them.
  EXPECT_EQ(repeat(x, counts({1, std::int64_t{1} << 40, 1}), 0, 4).to_vector<float>(),
            (std::vector<float>{1, 2, 2, 2}));
  EXPECT_EQ(repeat(x, counts({-(std::int64_t{1} << 40), 2, 1}), 0, 3).to_vector<float>(),
            (std::vector<float>{2, 2, 3}));
  EXPECT_EQ(repeat(x, astype(counts({3000000000, 1, 1}), DType::u32), 0, 2).to_vector<float>(),
            (std::vector<float>{1, 1}));
}

TEST(Histogram, CountsElementsInTheBinsOfItsEdges) {
  // Edges themselves and the numbers next to them, each in one bin by comparison.
  for (const std::int64_t bins : {3, 7, 49, 100}) {
    for (const auto& range : {std::pair(0.0, 1.0), std::pair(-1.0, 2.0), std::pair(0.1, 0.3)}) {
      SCOPED_TRACE(bins);
      const std::vector<float> edges =
          histogram(zeros({1}), bins, {.range = range}).bin_edges.to_vector<float>();
      std::vector<float> x;
      for (const float edge : edges) {
        x.push_back(edge);
        x.push_back(std::nextafter(edge, 9.0F));
        x.push_back(std::nextafter(edge, -9.0F));
      }
      std::vector<float> expected(static_cast<std::size_t>(bins), 0);
      for (const float value : x) {
        if (value < edges.front() || value > edges.back()) continue;
        std::size_t bin = 0;
        while (bin + 1 < expected.size() && value >= edges[bin + 1]) ++bin;
        ++expected[bin];
      }
      const LazyTensor given = LazyTensor::from_vector(x, Shape{static_cast<std::int64_t>(x.size())});
      EXPECT_EQ(histogram(given, bins, {.range = range}).hist.to_vector<float>(), expected);
    }
  }
}

TEST(Histogram, OfARangeOfOnePointIsAroundIt) {
  const LazyTensor x = LazyTensor::from_vector<double>({0, 2.75, 3.25, 9}, {4});
  const HistogramResult found = histogram(x, 2, {.range = std::pair(3.0, 3.0)});
  EXPECT_EQ(found.hist.to_vector<double>(), (std::vector<double>{1, 1}));
  EXPECT_EQ(found.bin_edges.to_vector<double>(), (std::vector<double>{2.5, 3, 3.5}));
  EXPECT_EQ(histc(x, 2, 3, 3).to_vector<double>(), (std::vector<double>{3, 1}));  // of all, as in PyTorch
  const double far = std::numeric_limits<double>::infinity();
  EXPECT_THROW(histc(x, 2, far, far), ValueError);
}

}  // namespace
}  // namespace caldera::testing
