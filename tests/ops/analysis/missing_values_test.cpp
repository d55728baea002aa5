// Reductions that pass over NaN, order statistics and what is compared with a tolerance, where there is NaN,
// an infinity or a tie: values of NumPy's and PyTorch's documentation, and what follows from a definition.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

constexpr double kGone = std::numeric_limits<double>::quiet_NaN();
constexpr double kEndless = std::numeric_limits<double>::infinity();
using Doubles = std::vector<double>;

class MissingValues : public OpTest {
 protected:
  LazyTensor row(const Doubles& values, DType type = DType::f32) const {
    return upload(Host(Shape{static_cast<std::int64_t>(values.size())}, values), type, device());
  }
  static double single(const LazyTensor& x) {
    EXPECT_EQ(x.numel(), 1) << x.shape().to_string();
    return download(x).at(0);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, MissingValues, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(MissingValues, WhereNothingIsLeft) {
  const LazyTensor none = row({kGone, kGone});
  EXPECT_EQ(single(nansum(none)), 0);
  EXPECT_EQ(single(nanprod(none)), 1);
  for (const LazyTensor& x : {nanmean(none), nanvar(none), nanstd(none), nanmax(none), nanmin(none),
                              nanmedian(none), nanquantile(none, 0.25)})
    EXPECT_TRUE(std::isnan(single(x)));
  // One is left: its variance is 0, and of a sample of one there is none.
  const LazyTensor one = row({kGone, 3, kGone});
  EXPECT_EQ(single(nanmean(one)), 3);
  EXPECT_EQ(single(nanvar(one)), 0);
  EXPECT_TRUE(std::isnan(single(nanvar(one, {}, 1))));
  EXPECT_EQ(single(nanmedian(one)), 3);
  EXPECT_EQ(single(nanmax(row({kGone, -kEndless}))), -kEndless);
  EXPECT_EQ(single(nanmin(row({kGone, kEndless}))), kEndless);
  EXPECT_EQ(single(nanmean(row({}))) == 0, false);  // 0 / 0
  // NaN gets no gradient, and spoils none.
  const LazyTensor x = row({kGone, 1, 3});
  EXPECT_EQ(download(grad(nanmean(x), x)), (Doubles{0, 0.5, 0.5}));
  EXPECT_EQ(download(grad(nanmax(x, 0), x)), (Doubles{0, 0, 1}));
}

TEST_P(MissingValues, QuantilesOfSeveralKinds) {
  const LazyTensor x = row({3, 1, 4, 2});
  EXPECT_EQ(single(quantile(x, 0.5, -1, false, QuantileMode::lower)), 2);
  EXPECT_EQ(single(quantile(x, 0.5, -1, false, QuantileMode::higher)), 3);
  EXPECT_EQ(single(quantile(x, 0.4, -1, false, QuantileMode::midpoint)), 2.5);
  // Position 1.5 is halfway: the even position is that of 3.
  EXPECT_EQ(single(quantile(x, 0.5, -1, false, QuantileMode::nearest)), 3);
  EXPECT_EQ(download(quantile(x, std::vector<double>{0, 0.5, 1})), (Doubles{1, 2.5, 4}));
  EXPECT_EQ(quantile(reshape(x, Shape{2, 2}), std::vector<double>{0.5}, 0, true).shape(), (Shape{1, 1, 2}));
  EXPECT_EQ(download(nanquantile(row({kGone, 3, 1, kGone, 4, 2}), std::vector<double>{0, 0.5, 1})),
            (Doubles{1, 2.5, 4}));
  EXPECT_TRUE(std::isnan(single(quantile(row({1, kGone}), 0.0))));
  // Infinities that are equal have no difference.
  EXPECT_EQ(single(nanquantile(row({kEndless, kEndless, kGone}), 0.3)), kEndless);
}

TEST_P(MissingValues, TiesAndWhereTheyAre) {
  const auto expect = [](const IndexedResult& result, const Doubles& values, const Doubles& indices) {
    EXPECT_EQ(download(result.values), values);
    EXPECT_EQ(result.indices.dtype(), DType::i32);
    EXPECT_EQ(download(result.indices), indices);
  };
  const LazyTensor x = row({2, 1, 3, 1, 3, 2, 1});
  expect(max_with_indices(x), {3}, {2});
  expect(min_with_indices(x, 0, true), {1}, {1});
  expect(cummax_with_indices(x), {2, 2, 3, 3, 3, 3, 3}, {0, 0, 2, 2, 2, 2, 2});
  expect(cummin_with_indices(x), {2, 1, 1, 1, 1, 1, 1}, {0, 1, 1, 1, 1, 1, 1});
  expect(mode(x), {1}, {1});
  expect(mode(row({2, 2, 1, 1}, DType::i32)), {1}, {2});
  expect(kthvalue(x, 4), {2}, {0});
  expect(kthvalue(x, 5), {2}, {5});
  expect(median_with_indices(row({4, 1, 3, 2})), {2}, {3});
  EXPECT_EQ(download(cummax_with_indices(row({1, kGone, 2})).indices), (Doubles{0, 1, 1}));
  EXPECT_EQ(download(max_with_indices(row({1, kGone, 2})).indices), (Doubles{1}));
  EXPECT_EQ(download(median_with_indices(row({1, kGone, 2, kGone})).indices), (Doubles{1}));
  EXPECT_TRUE(std::isnan(single(median_with_indices(row({1, kGone, 2, kGone})).values)));
  expect(kthvalue(row({kGone, 1, 2}), 2), {2}, {2});
  EXPECT_EQ(single(kthvalue(row({kGone, 1, 2}), 3).indices), 0);
  const auto [least, most] = aminmax(row({1, kGone, 2}));
  EXPECT_TRUE(std::isnan(single(least)) && std::isnan(single(most)));
}

TEST_P(MissingValues, ClosenessAndMembership) {
  const LazyTensor a = row({kGone, kEndless, -kEndless, 1, 1, 0}),
                   b = row({kGone, kEndless, kEndless, 1.000005, 1.1, 1e-9});
  EXPECT_EQ(download(isclose(a, b)), (Doubles{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(download(isclose(a, b, 1e-5, 1e-8, true)), (Doubles{1, 1, 0, 1, 0, 1}));
  EXPECT_EQ(download(isclose(b, a, 0, 0)), (Doubles{0, 1, 0, 0, 0, 0}));
  // Neither overflow nor the wrapping of unsigned numbers makes numbers close.
  EXPECT_EQ(download(isclose(row({3e38, -3e38}), row({-3e38, 3e38}))), (Doubles{0, 0}));
  EXPECT_EQ(download(isclose(row({0, 200}, DType::u8), row({255, 201}, DType::u8), 0, 1)), (Doubles{0, 1}));
  for (const DType type : {DType::i8, DType::i16, DType::i32, DType::i64}) {
    const LazyTensor most = full({1}, iinfo(type).max, type, device()),
                     least = full({1}, iinfo(type).min, type, device());
    EXPECT_EQ(download(isclose(most, least, 0.5, 1)), (Doubles{0})) << name(type);
    EXPECT_EQ(download(isclose(most - 1, most, 0, 1)), (Doubles{1})) << name(type);
  }
  EXPECT_EQ(single(allclose(row({1, 2}), row({1, 2}))), 1);
  EXPECT_EQ(single(allclose(a, b)), 0);
  EXPECT_EQ(single(allclose(row({}), row({}))), 1);
  EXPECT_EQ(download(isin(row({kGone, 1, kEndless}), row({kGone, kEndless}))), (Doubles{0, 0, 1}));
  // Many values are searched in order, NaN the last of them.
  Doubles many;
  for (int i = 0; i < 70; ++i) many.push_back(3 * ((i * 37) % 70));
  many.push_back(kGone);
  EXPECT_EQ(download(isin(row({0, 1, 207, 210, kGone, -3}), row(many))), (Doubles{1, 0, 1, 0, 0, 0}));
  EXPECT_EQ(download(isin(row({300, 44}, DType::i32), row({44}, DType::u8))), (Doubles{0, 1}));
}

TEST_P(MissingValues, RoundsToDecimals) {
  EXPECT_EQ(download(round(row({0.5, 1.5, -2.25, 2.75}), 1)),
            (Doubles{0.5, 1.5, static_cast<float>(-2.2), static_cast<float>(2.8)}));
  EXPECT_EQ(download(round(row({15, 25, -35, 149}), -1)), (Doubles{20, 20, -40, 150}));
  EXPECT_EQ(download(round(row({3e38, kEndless}), 30)), (Doubles{static_cast<float>(3e38), kEndless}));
  EXPECT_TRUE(std::isnan(single(round(row({kGone}), 2))));
  EXPECT_EQ(download(round(row({15, 25, -35, 149, 7}, DType::i32), -1)), (Doubles{20, 20, -40, 150, 10}));
  EXPECT_EQ(download(round(row({127, -128}, DType::i8), 2)), (Doubles{127, -128}));
}

}  // namespace
}  // namespace caldera::testing
