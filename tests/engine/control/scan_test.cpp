// scan and for_loop against loops on the host, and their gradients against the loop written out.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/caldera.h"
#include "engine/device/control/binomial.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class ScanTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, ScanTest, ::testing::ValuesIn(op_settings()), op_setting_name);

LazyTensor values_of(const Shape& shape, std::uint64_t seed) {
  return upload(Host(shape, random_values(shape.numel(), 0.2, 0.9, true, seed)), DType::f32,
                default_device());
}

/// A recurrence that uses all there is: carries of two shapes, slices, a captured matrix, a number.
ScanTurn recurrence(const LazyTensor& w, std::span<const LazyTensor> carry,
                    std::span<const LazyTensor> slices) {
  const LazyTensor h = tanh(matmul(carry[0], w) + 0.5 * slices[0]);
  const LazyTensor total = carry[1] + sum(h * h);
  return {{h, total}, {h * 2, total}};
}

ScanTurn written_out(const LazyTensor& w, std::vector<LazyTensor> carry, const LazyTensor& x, bool reverse) {
  const std::int64_t turns = x.shape(0);
  std::vector<LazyTensor> first(static_cast<std::size_t>(turns)), second(first);
  for (std::int64_t t = 0; t < turns; ++t) {
    const std::int64_t at = reverse ? turns - 1 - t : t;
    const std::vector<LazyTensor> slices{reshape(slice(x, 0, at, at + 1), Shape{x.shape(1), x.shape(2)})};
    ScanTurn turn = recurrence(w, carry, slices);
    carry = turn.carry;
    first[static_cast<std::size_t>(at)] = turn.stacked[0];
    second[static_cast<std::size_t>(at)] = turn.stacked[1];
  }
  return {carry, {stack(first, 0), stack(second, 0)}};
}

void expect_near(const LazyTensor& a, const LazyTensor& b, double tolerance, const std::string& what) {
  EXPECT_TRUE(agrees(a, Host{b.shape(), download(b)}, {tolerance, tolerance})) << what;
}

TEST_P(ScanTest, IsTheLoopWrittenOut) {
  for (const bool reverse : {false, true}) {
    for (const std::int64_t turns : {1, 2, 5, 8}) {
      const LazyTensor w = values_of({3, 3}, 1), x = values_of({turns, 2, 3}, 2), h = values_of({2, 3}, 3);
      const std::vector<LazyTensor> init{h, zeros({})}, over{x};
      const ScanTurn got = scan([&](auto carry, auto slices) { return recurrence(w, carry, slices); }, init,
                                over, {.reverse = reverse});
      const ScanTurn want = written_out(w, init, x, reverse);
      const std::string what = std::to_string(turns) + (reverse ? " reversed" : "");
      for (std::size_t k = 0; k < 2; ++k) {
        expect_near(got.carry[k], want.carry[k], 1e-5, what);
        expect_near(got.stacked[k], want.stacked[k], 1e-5, what);
      }
    }
  }
}

TEST_P(ScanTest, GradientsAreThoseOfTheLoopWrittenOut) {
  for (const bool reverse : {false, true}) {
    for (const std::int64_t snapshots : {0, 1, 2, 3, 9}) {
      const LazyTensor w = values_of({3, 3}, 1), x = values_of({7, 2, 3}, 2), h = values_of({2, 3}, 3);
      const std::vector<LazyTensor> arguments{w, x, h};
      const auto loss = [](const ScanTurn& turn) {
        return sum(turn.carry[0]) + sin(turn.carry[1]) + sum(cos(turn.stacked[0])) + sum(turn.stacked[1]);
      };
      const auto with_scan = [&](std::span<const LazyTensor> a) {
        const std::vector<LazyTensor> init{a[2], zeros({})}, over{a[1]};
        return loss(scan([&](auto carry, auto slices) { return recurrence(a[0], carry, slices); }, init, over,
                         {.reverse = reverse, .snapshots = snapshots}));
      };
      const auto without = [&](std::span<const LazyTensor> a) {
        return loss(written_out(a[0], {a[2], zeros({})}, a[1], reverse));
      };
      const auto [got, grads] = value_and_grad(with_scan, arguments);
      const auto [want, expected] = value_and_grad(without, arguments);
      const std::string what = std::to_string(snapshots) + " snapshots" + (reverse ? " reversed" : "");
      expect_near(got, want, 1e-5, what);
      for (std::size_t i = 0; i < arguments.size(); ++i) expect_near(grads[i], expected[i], 2e-5, what);
    }
  }
}

TEST_P(ScanTest, DerivativesOfDerivatives) {
  if (!supports(DType::f64)) GTEST_SKIP() << "no f64";
  for (const std::int64_t snapshots : {0, 2}) {
    const auto f = [&](const LazyTensor& x) {
      return for_loop(
          4,
          [&](const LazyTensor& i, const LazyTensor& y) { return sin(y) * x + astype(i, DType::f64) * 0.1; },
          x * 2, {.snapshots = snapshots});
    };
    const auto g = [](const LazyTensor& x) {
      LazyTensor y = x * 2;
      for (int i = 0; i < 4; ++i) y = sin(y) * x + 0.1 * i;
      return y;
    };
    const LazyTensor x = LazyTensor::from_vector<double>({0.7}, {}, device());
    const auto first = [](const UnaryFunction& function) {
      return UnaryFunction([function](const LazyTensor& at) {
        return value_and_grad([&](std::span<const LazyTensor> a) { return function(a[0]); },
                              std::span(&at, 1))
            .second[0];
      });
    };
    const auto forward = [](const UnaryFunction& function) {
      return UnaryFunction([function](const LazyTensor& at) {
        return jvp([&](std::span<const LazyTensor> a) { return std::vector{function(a[0])}; },
                   std::vector{at}, std::vector{ones_like(at)})
            .second[0];
      });
    };
    const std::string what = std::to_string(snapshots) + " snapshots";
    expect_near(f(x), g(x), 1e-14, what);
    expect_near(first(f)(x), first(g)(x), 1e-13, what + ", reverse");
    expect_near(forward(f)(x), first(g)(x), 1e-13, what + ", forward");
    expect_near(first(first(f))(x), first(first(g))(x), 1e-12, what + ", reverse over reverse");
    expect_near(forward(first(f))(x), first(first(g))(x), 1e-12, what + ", forward over reverse");
    expect_near(first(forward(f))(x), first(first(g))(x), 1e-12, what + ", reverse over forward");
  }
}

TEST_P(ScanTest, OneNodeHoweverManyTurns) {
  std::vector<std::size_t> steps, nodes;
  for (const std::int64_t turns : {10, 1000}) {
    const LazyTensor x = values_of({turns, 5}, 4);
    const std::vector<LazyTensor> init{zeros({5})}, over{x};
    const ScanTurn turn = scan(
        [](auto carry, auto slices) {
          return ScanTurn{{carry[0] * 0.5 + slices[0]}, {carry[0]}};
        },
        init, over);
    const auto plan = plan_for({turn.carry[0], turn.stacked[0]});
    steps.push_back(plan->steps.size());
    nodes.push_back(static_cast<std::size_t>(plan->node_count));
    eval({turn.carry[0], turn.stacked[0]});
  }
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_EQ(nodes[0], nodes[1]);
}

TEST(Binomial, AdvancesAreThoseOfTheFormula) {
  EXPECT_EQ(binomial_advances(100, 10), 222);
  EXPECT_EQ(binomial_advances(1000, 10), 3636);
  EXPECT_EQ(binomial_advances(1000, 20), 2747);
  EXPECT_EQ(binomial_advances(1000, 32), 2405);
}

/// The fewest advances, by trying every first leap.
std::int64_t fewest(std::int64_t turns, std::int64_t snapshots,
                    std::vector<std::vector<std::int64_t>>& known) {
  if (turns == 1) return 0;
  if (snapshots == 1) return turns * (turns - 1) / 2;
  std::int64_t& best = known[static_cast<std::size_t>(turns)][static_cast<std::size_t>(snapshots)];
  if (best >= 0) return best;
  std::int64_t least = turns * turns;
  for (std::int64_t leap = 1; leap < turns; ++leap) {
    least =
        std::min(least, leap + fewest(turns - leap, snapshots - 1, known) + fewest(leap, snapshots, known));
  }
  return known[static_cast<std::size_t>(turns)][static_cast<std::size_t>(snapshots)] = least;
}

std::int64_t with_leaps(std::int64_t turns, std::int64_t snapshots) {
  if (turns == 1) return 0;
  if (snapshots == 1) return turns * (turns - 1) / 2;
  const std::int64_t leap = binomial_leap(turns, snapshots);
  return leap + with_leaps(turns - leap, snapshots - 1) + with_leaps(leap, snapshots);
}

TEST(Binomial, LeapsAreTheBest) {
  std::vector<std::vector<std::int64_t>> known(61, std::vector<std::int64_t>(9, -1));
  for (std::int64_t turns = 1; turns <= 60; ++turns) {
    for (std::int64_t snapshots = 1; snapshots <= 8; ++snapshots) {
      EXPECT_EQ(with_leaps(turns, snapshots), fewest(turns, snapshots, known)) << turns << " " << snapshots;
      EXPECT_EQ(binomial_advances(turns, snapshots), fewest(turns, snapshots, known))
          << turns << " " << snapshots;
    }
  }
}

TEST_P(ScanTest, SnapshotsCostAsManyTurnsAsTheFormulaSays) {
  // A turn forward is one dispatch, and so is a turn back: the difference between two runs counts turns.
  const auto dispatches = [&](std::int64_t snapshots) {
    const LazyTensor x = values_of({33}, 5);
    const auto [value, grads] = value_and_grad(
        [&](std::span<const LazyTensor> a) {
          const std::vector<LazyTensor> init{a[0]};
          return sum(scan([](auto carry, auto) { return ScanTurn{{sin(carry[0])}}; }, init, {},
                          {.turns = 100, .snapshots = snapshots})
                         .carry[0]);
        },
        std::vector{x});
    const auto before = device_counters(device()).dispatches;
    eval({grads[0]});
    return static_cast<std::int64_t>(device_counters(device()).dispatches - before);
  };
  const std::int64_t ten = dispatches(10), all = dispatches(100);
  EXPECT_EQ(ten - all, 222 - 99);
}

TEST_P(ScanTest, OfPartsOfStoredDataWhosePlaceIsAnArgument) {
  // One plan for all rows: what they are, and how often a loop runs, is read where the row is.
  const LazyTensor rows = upload(Host({3, 2}, {1, 2, 3, 4, 5, 6}), DType::f32, device());
  const LazyTensor counts = LazyTensor::from_vector<std::int32_t>({4, 0, 2}, {3}, device());
  const double turns[] = {4, 0, 2};
  for (std::int64_t i = 0; i < 3; ++i) {
    const LazyTensor row = reshape(slice(rows, 0, i, i + 1), Shape{2});
    const LazyTensor count = reshape(slice(counts, 0, i, i + 1), Shape{});
    const double first = 2 * static_cast<double>(i) + 1;
    const LazyTensor swept =
        scan([](auto carry, auto slices) { return ScanTurn{{carry[0] * 10 + slices[0]}}; },
             std::vector{zeros({}, DType::f32, device())}, std::vector{row})
            .carry[0];
    EXPECT_EQ(swept.item<float>(), 10 * first + first + 1) << i;
    const LazyTensor added = while_loop([&](auto x) { return x[0] < count; },
                                        [&](auto x) {
                                          return std::vector{x[0] + 1, x[1] + row};
                                        },
                                        std::vector{zeros({}, DType::i32, device()), row})[1];
    EXPECT_EQ(added.to_vector<float>()[1], (turns[i] + 1) * (first + 1)) << i;
    const std::vector<VectorFunction> branches{[](auto a) { return std::vector{a[0] * 0}; },
                                               [](auto a) { return std::vector{a[0]}; },
                                               [](auto a) { return std::vector{a[0] * 2}; }};
    EXPECT_EQ(switch_case(count, branches, std::vector{row})[0].template to_vector<float>()[0],
              std::min(turns[i], 2.0) * first)
        << i;
  }
}

TEST_P(ScanTest, RefusesWhatIsNoLoop) {
  const LazyTensor x = values_of({4, 3}, 6);
  const auto body = [](auto carry, auto) { return ScanTurn{{carry[0]}}; };
  const std::vector<LazyTensor> init{zeros({3})}, over{x}, uneven{x, values_of({5}, 7)}, number{zeros({})};
  EXPECT_THROW((void)scan(body, init, {}), ValueError);
  EXPECT_THROW((void)scan(body, {}, over), ValueError);
  EXPECT_THROW((void)scan(body, init, uneven), ShapeError);
  EXPECT_THROW((void)scan(body, init, number), ShapeError);
  EXPECT_THROW((void)scan({}, init, over), ValueError);
  EXPECT_THROW((void)scan([](auto, auto slices) { return ScanTurn{{sum(slices[0])}}; }, init, over),
               ShapeError);
  EXPECT_THROW(
      (void)scan([](auto carry, auto) { return ScanTurn{{astype(carry[0], DType::i32)}}; }, init, over),
      DTypeError);
  EXPECT_THROW((void)scan([](auto, auto) { return ScanTurn{}; }, init, over), ValueError);
  EXPECT_MENTIONS(
      message_of<ValueError>([&] {
        (void)scan([](auto carry, auto) { return ScanTurn{{carry[0] * carry[0].template item<float>()}}; },
                   std::vector{zeros({})}, over);
      }),
      "body of a loop or branch");
}

TEST_P(ScanTest, NoTurns) {
  const std::vector<LazyTensor> init{values_of({3}, 8)}, over{zeros({0, 3})};
  const ScanTurn turn = scan(
      [](auto carry, auto slices) {
        return ScanTurn{{carry[0] + slices[0]}, {carry[0]}};
      },
      init, over);
  expect_near(turn.carry[0], init[0], 0, "carry");
  EXPECT_EQ(turn.stacked[0].shape(), (Shape{0, 3}));
}

}  // namespace
}  // namespace caldera::testing
