// Attention and its gradients, of hand-built plans, against the reference.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/support/devices.h"
#include "tests/support/messages.h"
#include "tests/support/plans/attention_case.h"

namespace caldera::testing {
namespace {

class PlanAttention : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }

  /// Weighted means of numbers below 1, from scores whose absolute error is a few ulp of the products.
  void check_forward(const AttentionSetting& s) const {
    SCOPED_TRACE(s.text());
    AttentionCase c(GetParam(), s);
    c.add_forward();
    const bool gpu = GetParam().kind == DeviceKind::vulkan;
    c.plan().check({gpu ? 3e-5 : 1e-5, gpu ? 2e-5 : 1e-5});
  }
  bool joins() const { return shared_backend(GetParam()).traits().joins_attention_gradients; }
  /// Sums of up to n or m terms, each with the error of a product over E. Of two steps, and of one where the
  /// device has it.
  void check_backward(AttentionSetting s, void (AttentionCase::*add)()) const {
    const bool gpu = GetParam().kind == DeviceKind::vulkan;
    for (const bool joined : {false, true}) {
      if (joined && !joins()) continue;
      s.joined = joined;
      SCOPED_TRACE(s.text());
      AttentionCase c(GetParam(), s);
      (c.*add)();
      c.plan().check({gpu ? 1e-4 : 3e-5, gpu ? 2e-4 : 5e-5});
    }
  }
  void check_gradients(const AttentionSetting& s) const { check_backward(s, &AttentionCase::add_gradients); }
  /// Gradients from the rows that the device's own forward step leaves.
  void check_all(const AttentionSetting& s) const { check_backward(s, &AttentionCase::add_all); }
  void check(const AttentionSetting& s) const {
    check_forward(s);
    check_gradients(s);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, PlanAttention, ::testing::ValuesIn(tested_devices()), device_test_name);

constexpr double kInfinite = std::numeric_limits<double>::infinity();

TEST_P(PlanAttention, EveryLength) {
  for (std::int64_t m : {1, 7, 33, 130})
    for (std::int64_t n : {1, 7, 33, 130}) check({.heads = 2, .m = m, .n = n, .d = 16, .e = 16});
}

TEST_P(PlanAttention, EveryHeadSize) {
  for (std::int64_t d : {4, 8, 16, 33, 64, 128, 256}) check({.m = 33, .n = 40, .d = d, .e = d});
  const std::int64_t uneven[][2] = {{4, 256}, {256, 4}, {33, 8}, {64, 33}, {1, 1}, {128, 64}};
  for (const auto& s : uneven) check({.m = 7, .n = 33, .d = s[0], .e = s[1]});
  // Of one number, where blocks are worth a library's product: rows and columns have one stride.
  const std::int64_t single[][2] = {{1, 1}, {1, 8}, {8, 1}};
  for (const auto& s : single) check({.m = 70, .n = 300, .d = s[0], .e = s[1]});
}

TEST_P(PlanAttention, OneStepForAllGradientsIsRefusedWhereThereIsNone) {
  AttentionCase c(GetParam(), {.m = 5, .n = 7, .d = 8, .e = 8, .joined = true});
  c.add_gradients();
  if (joins())
    c.plan().check({3e-5, 5e-5});
  else
    EXPECT_MENTIONS(message_of<DTypeError>([&] { c.plan().run_on_device(); }), "joins_attention_gradients");
}

TEST_P(PlanAttention, Masks) {
  for (ScoreKind score :
       {ScoreKind::boolean_mask, ScoreKind::full_mask, ScoreKind::bias, ScoreKind::capped}) {
    for (std::int64_t n : {1, 33, 130}) {
      check({.batch = 2, .heads = 2, .m = 33, .n = n, .d = 16, .e = 8, .score = score});
      check({.batch = 2, .heads = 2, .m = 70, .n = n, .d = 8, .e = 16, .score = score, .fill = -kInfinite});
    }
  }
}

TEST_P(PlanAttention, Causal) {
  for (double fill : {-1e30, -kInfinite, -1e4, -3.0, 0.5}) {
    for (std::int64_t m : {1, 33, 130}) {
      for (std::int64_t n : {33, 130, 300}) {
        const bool usual = fill == -1e30 || fill == -kInfinite;
        if (n < m || (!usual && (m != 33 || n != 130)) || (n == 300 && fill == -kInfinite)) continue;
        const AttentionSetting s{
            .heads = 2, .m = m, .n = n, .d = 16, .e = 16, .score = ScoreKind::causal, .fill = fill};
        check(s);
        AttentionSetting shifted = s;  // the last query sees all: the keys begin with a cache
        shifted.offset = n - m;
        check(shifted);
        shifted.offset = 2;
        shifted.offset_scalar = n - m - 2;
        check(shifted);
        AttentionSetting unhinted = s;
        unhinted.hint = false;
        check(unhinted);
        AttentionSetting biased = s;
        biased.score = ScoreKind::causal_bias;
        check(biased);
      }
    }
  }
}

/// Queries before the first key see nothing. A finite fill then weighs all keys alike, however large it is
/// beside the logarithm of their number; -inf leaves no weights, and then highest and total may be whatever
/// gives none to the gradients either.
TEST_P(PlanAttention, CausalRowsWithoutKeys) {
  for (double fill : {-1e9, -1e30, -kInfinite, -3.0}) {
    for (std::int64_t m : {33, 130, 200}) {
      for (std::int64_t n : {7, 33, 130}) {
        if (m <= n || (fill != -1e30 && (m != 130 || n != 33))) continue;
        AttentionSetting constant{
            .heads = 2, .m = m, .n = n, .d = 16, .e = 8, .score = ScoreKind::causal, .fill = fill};
        constant.offset = n - m;
        AttentionSetting shifted{.m = m, .n = n, .d = 8, .e = 16, .score = ScoreKind::causal, .fill = fill};
        shifted.offset = 3;
        shifted.offset_scalar = n - m - 3;
        AttentionSetting unhinted = constant;
        unhinted.hint = false;
        for (const AttentionSetting& s : {constant, shifted, unhinted}) {
          check_all(s);
          if (fill != -kInfinite) check(s);
        }
      }
    }
  }
}

/// Every row is masked whole, by a finite fill: P is 1 / n. So o is the mean of v, and with go = 1 every
/// element of dv is m / n. Nothing depends on q and k.
TEST_P(PlanAttention, RowsMaskedWholeWeighAllKeysAlike) {
  const std::int64_t m = 40;
  const std::int64_t e = 8;
  for (double fill : {-1e9, -1e30, -3.0}) {
    for (std::int64_t n : {3, 40, 200}) {
      for (bool hint : {true, false}) {
        SCOPED_TRACE(std::to_string(fill) + " " + std::to_string(n) + (hint ? " hint" : ""));
        AttentionCase c(GetParam(), {.m = m,
                                     .n = n,
                                     .d = 16,
                                     .e = e,
                                     .score = ScoreKind::causal,
                                     .fill = fill,
                                     .offset = -m,
                                     .hint = hint});
        for (std::int64_t i = 0; i < m * e; ++i) c.plan().set(c.go(), i, floating(1));
        for (std::int64_t i = 0; i < n * e; ++i)
          c.plan().set(c.values(), i, floating(i / e % 2 == 0 ? 2 : 6));
        c.add_all();
        const auto outputs = c.plan().run_on_device();
        const double evens = static_cast<double>((n + 1) / 2);
        const double mean = 6 - 4 * evens / static_cast<double>(n);
        for (std::int64_t i = 0; i < m * e; ++i)
          ASSERT_NEAR(read_number(outputs[0], DType::f32, i).f, mean, 1e-5) << "o, element " << i;
        for (std::int64_t i = 0; i < m * 16; ++i)
          ASSERT_EQ(read_number(outputs[1], DType::f32, i).f, 0) << "dq, element " << i;
        for (std::int64_t i = 0; i < n * 16; ++i)
          ASSERT_EQ(read_number(outputs[2], DType::f32, i).f, 0) << "dk, element " << i;
        const double share = static_cast<double>(m) / static_cast<double>(n);
        for (std::int64_t i = 0; i < n * e; ++i)
          ASSERT_NEAR(read_number(outputs[3], DType::f32, i).f, share, 1e-5 * share) << "dv, element " << i;
      }
    }
  }
}

TEST_P(PlanAttention, GroupedQueries) {
  for (bool inside : {false, true}) {
    for (ScoreKind score : {ScoreKind::scaled, ScoreKind::causal, ScoreKind::bias}) {
      check({.batch = 2,
             .heads = 2,
             .group = 3,
             .m = 33,
             .n = 33,
             .d = 16,
             .e = 16,
             .score = score,
             .heads_inside = inside});
      check({.heads = 1,
             .group = 4,
             .m = 1,
             .n = 130,
             .d = 64,
             .e = 64,
             .score = score,
             .offset = 129,
             .heads_inside = inside});
    }
  }
}

TEST_P(PlanAttention, HeadsInside) {
  for (std::int64_t time : {1, 7, 130}) {
    check({.batch = 2,
           .heads = 3,
           .m = time,
           .n = time,
           .d = 8,
           .e = 8,
           .score = ScoreKind::causal,
           .heads_inside = true});
    check({.batch = 2,
           .heads = 3,
           .m = time,
           .n = 40,
           .d = 33,
           .e = 4,
           .score = ScoreKind::boolean_mask,
           .heads_inside = true});
  }
}

/// Whole numbers, so that the scores are exact; exp of any of them by itself is infinite or 0.
TEST_P(PlanAttention, LargeScores) {
  for (std::int64_t n : {7, 130}) {
    for (ScoreKind score : {ScoreKind::scaled, ScoreKind::causal})
      check({.heads = 2,
             .m = 33,
             .n = n,
             .d = 16,
             .e = 8,
             .score = score,
             .fill = -kInfinite,
             .values = {-9, 9, true}});
  }
}

/// Scores that grow along the keys, and that fall: the running maximum moves at every key or at none.
TEST_P(PlanAttention, RisingAndFallingScores) {
  for (double sign : {1.0, -1.0}) {
    const std::int64_t n = 200;
    AttentionCase c(GetParam(), {.m = 5, .n = n, .d = 4, .e = 8, .values = {1, 3, true}});
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t d = 0; d < 4; ++d)
        c.plan().set(1, i * 4 + d, floating(sign * static_cast<double>(i)));
    c.add_forward();
    c.add_gradients();
    c.plan().check({2e-4, 2e-4});
  }
}

TEST_P(PlanAttention, Empty) {
  check_forward({.heads = 2, .m = 0, .n = 7, .d = 8, .e = 8});
  check({.batch = 0, .heads = 2, .m = 7, .n = 7, .d = 8, .e = 8});
  check_gradients({.heads = 2, .m = 0, .n = 7, .d = 8, .e = 8});  // dk and dv are 0
  check_gradients({.heads = 2, .m = 7, .n = 0, .d = 8, .e = 8});  // dq is 0
}

/// The memory of one head's scores is more than the whole step needs.
TEST_P(PlanAttention, LongSequences) {
  check({.m = 600, .n = 700, .d = 8, .e = 8, .score = ScoreKind::causal, .offset = 100});
  check({.m = 1, .n = 3000, .d = 8, .e = 8});
}

}  // namespace
}  // namespace caldera::testing
