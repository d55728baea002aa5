// Steps that share a dispatch, of hand-built plans, against the reference.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/plans/row_kernels.h"

namespace caldera::testing {
namespace {

class PlanJoined : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, PlanJoined, ::testing::ValuesIn(tested_devices()), device_test_name);

constexpr DType kJoinedType = DType::f32;

/// w - rate * (m = mix * m + g) with both stored.
std::shared_ptr<const Kernel> momentum_kernel() {
  KernelBuilder b("momentum");
  const auto rate = b.scalar(kJoinedType);
  const auto mix = b.scalar(kJoinedType);
  const auto w = b.load(kJoinedType);
  const auto g = b.load(kJoinedType);
  const auto m = b.op(ScalarOp::add, b.op(ScalarOp::mul, b.load(kJoinedType), mix), g);
  return b.store(b.op(ScalarOp::sub, w, b.op(ScalarOp::mul, m, rate))).store(m).finish();
}

TEST_P(PlanJoined, ElementWiseOfManySizes) {
  PlanCase c(GetParam());
  const auto kernel = momentum_kernel();
  const std::int64_t sizes[] = {1, 7, 33, 64, 1025, 5000, 3, 0, 70000, 128};
  for (std::int64_t size : sizes)
    for (int i = 0; i < 3; ++i) c.input(kJoinedType, size);
  for (int i = 0; i < 4; ++i) c.scalar(kJoinedType, floating(0.125 * (i + 1)));
  int number = 0;
  for (std::int64_t size : sizes) {
    const int first = 3 * number;  // inputs are numbered from 0
    const int w = c.output(kJoinedType, size);
    const int m = c.output(kJoinedType, size);
    Step& step =
        c.region(kernel, {size},
                 {view(first, {1}), view(first + 1, {1}), view(first + 2, {1}), view(w, {1}), view(m, {1})});
    step.scalars = {number % 4, (number + 1) % 4};  // arguments of its own
    if (number > 0) c.join();
    ++number;
  }
  EXPECT_EQ(c.plan().dispatch_count(), 1);
  c.check({1e-6, 1e-6});
}

/// As an optimiser has it: hundreds of matrices of two shapes.
TEST_P(PlanJoined, HundredsOfMatrices) {
  PlanCase c(GetParam());
  const auto kernel = momentum_kernel();
  constexpr int kMatrices = 450;
  const auto size = [](int i) -> std::int64_t { return i % 2 == 0 ? 8 * 48 : 8 * 80; };
  for (int i = 0; i < kMatrices; ++i)
    for (int k = 0; k < 3; ++k) c.input(kJoinedType, size(i));
  c.scalar(kJoinedType, floating(0.5));
  c.scalar(kJoinedType, floating(0.25));
  for (int i = 0; i < kMatrices; ++i) {
    const int w = c.output(kJoinedType, size(i));
    const int m = c.output(kJoinedType, size(i));
    const Shape dims{8, size(i) / 8};
    const Operand rows = view(-1, {size(i) / 8, 1});
    std::vector<Operand> operands(5, rows);
    for (int k = 0; k < 3; ++k) operands[static_cast<std::size_t>(k)].buffer = 3 * i + k;
    operands[3].buffer = w;
    operands[4].buffer = m;
    c.region(kernel, dims, operands);
    if (i > 0) c.join();
  }
  EXPECT_EQ(c.plan().dispatch_count(), 1);
  c.check({1e-6, 1e-6});
}

/// Ranks, orders of memory, offsets and coordinates of their own.
TEST_P(PlanJoined, ElementWiseOfManyLayouts) {
  KernelBuilder b("ramp_noise");
  const auto seed = b.scalar(DType::i64);
  const auto x = b.load(kJoinedType);
  const auto place = b.index();
  const auto noise = b.philox(ScalarOp::philox_uniform, kJoinedType, seed, b.index());
  const auto y = b.op(ScalarOp::add, b.op(ScalarOp::add, x, b.cast(place, kJoinedType)), noise);
  const auto kernel = b.store(y).store(b.op(ScalarOp::greater, x, noise)).finish();
  PlanCase c(GetParam());
  const int in = c.input(kJoinedType, 4000);
  const int seeds[] = {c.scalar(DType::i64, integer(5)), c.scalar(DType::i64, integer(-77))};
  struct Layout {
    Shape dims;
    Operand x, place, linear, y, mask;
  };
  const std::vector<Layout> layouts = {
      {{1000}, view(-1, {1}), view(-1, {1}), view(-1, {1}), view(-1, {1}), view(-1, {1})},
      {{33, 7},
       view(-1, {1, 33}, 5),
       view(-1, {0, 1}, -3),
       view(-1, {7, 1}, 9),
       view(-1, {7, 1}),
       view(-1, {1, 33})},
      {{}, view(-1, {}, 17), view(-1, {}, 4), view(-1, {}, 3), view(-1, {}, 1), view(-1, {})},
      {{5, 1, 9, 4},
       view(-1, {100, 0, 9, 2}, 1),
       view(-1, {1, 1, 1, -1}),
       view(-1, {36, 36, 4, 1}),
       view(-1, {1, 0, 5, 45}),
       view(-1, {36, 36, 4, 1})},
      {{64, 65}, view(-1, {0, 1}), view(-1, {1, 0}), view(-1, {65, 1}), view(-1, {65, 1}), view(-1, {65, 1})},
      {{20, 30},
       view(-1, {-30, -1}, 599),
       view(-1, {0, 0}, 2),
       view(-1, {30, 1}),
       view(-1, {60, 2}),
       view(-1, {30, 1})},
  };
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    Layout l = layouts[i];
    l.x.buffer = in;
    l.y.buffer = c.output(kJoinedType, 5000);
    l.mask.buffer = c.output(DType::boolean, 5000);
    c.region(kernel, l.dims, {l.x, l.place, l.linear, l.y, l.mask}).scalars = {seeds[i % 2]};
    if (i > 0) c.join();
  }
  c.check({1e-6, 1e-6});
}

TEST_P(PlanJoined, Reductions) {
  KernelBuilder b("sum_of_squares");
  const auto x = b.load(kJoinedType);
  const auto y = b.op(ScalarOp::mul, b.op(ScalarOp::mul, x, x), b.scalar(kJoinedType));
  const auto kernel = b.store(y).reduce(Combine::sum).finish();
  struct Form {
    Shape dims;
    int reduce_rank;
    Operand x, y;
  };
  const std::vector<Form> forms = {
      {{33, 100}, 1, view(-1, {100, 1}), view(-1, {1, 0})},  // rows
      {{100, 33}, 1, view(-1, {1, 100}), view(-1, {1, 0})},  // columns
      {{5000}, 1, view(-1, {1}), view(-1, {0})},             // everything
      {{7, 20, 30}, 2, view(-1, {600, 1, 20}), view(-1, {2, 0, 0}, 1)},
      {{4, 6, 5}, 1, view(-1, {30, 5, 1}), view(-1, {1, 4, 0})},
      {{3, 0}, 1, view(-1, {0, 1}), view(-1, {1, 0})},  // the identity
      {{0, 3}, 1, view(-1, {3, 1}), view(-1, {1, 0})},  // nothing
      {{700, 3}, 1, view(-1, {3, 1}), view(-1, {1, 0})},
  };
  PlanCase c(GetParam());
  const int in = c.input(kJoinedType, 5000);
  for (int i = 0; i < 3; ++i) c.scalar(kJoinedType, floating(0.5 * (i + 1)));
  for (std::size_t i = 0; i < forms.size(); ++i) {
    Form f = forms[i];
    f.x.buffer = in;
    f.y.buffer = c.output(kJoinedType, 700);
    c.region(kernel, f.dims, {f.x, f.y}, f.reduce_rank).scalars = {static_cast<std::int32_t>(i % 3)};
    if (i > 0) c.join();
  }
  EXPECT_EQ(c.plan().dispatch_count(), 1);
  c.check({3e-6, 0});
}

TEST_P(PlanJoined, Rows) {
  struct Form {
    Shape dims;
    int reduce_rank;
    Operand x, weight, y, scale;
  };
  const std::vector<Form> forms = {
      {{33, 64}, 1, view(-1, {64, 1}), view(-1, {0, 1}), view(-1, {64, 1}), view(-1, {1, 0})},
      {{7, 1025}, 1, view(-1, {1, 7}), view(-1, {0, 1}), view(-1, {1025, 1}), view(-1, {2, 0})},
      {{1, 5000}, 1, view(-1, {0, 1}), view(-1, {0, 0}), view(-1, {0, 1}), view(-1, {0, 0})},
      {{3, 5, 6, 7},
       2,
       view(-1, {210, 6, 1, 30}),
       view(-1, {0, 0, 7, 1}),
       view(-1, {210, 42, 7, 1}),
       view(-1, {1, 3, 0, 0})},
      {{700, 7}, 1, view(-1, {7, 1}, 3), view(-1, {0, -1}, 6), view(-1, {7, 1}), view(-1, {1, 0})},
      {{90}, 1, view(-1, {2}), view(-1, {1}), view(-1, {1}), view(-1, {0})},
  };
  PlanCase c(GetParam());
  const int in = c.input(kJoinedType, 8000);
  const int weights = c.input(kJoinedType, 1025);
  for (int i = 0; i < 4; ++i) c.scalar(kJoinedType, floating(i % 2 == 0 ? 0.01 * (i + 1) : 1e-6));
  for (std::size_t i = 0; i < forms.size(); ++i) {
    Form f = forms[i];
    f.x.buffer = in;
    f.weight.buffer = weights;
    f.y.buffer = c.output(kJoinedType, 8000);
    f.scale.buffer = c.output(kJoinedType, 700);
    c.region(rms_norm_kernel(kJoinedType), f.dims, {f.x, f.weight, f.y, f.scale}, f.reduce_rank).scalars = {
        static_cast<std::int32_t>(2 * (i % 2)), static_cast<std::int32_t>(1 + 2 * (i % 2))};
    if (i > 0) c.join();
  }
  EXPECT_EQ(c.plan().dispatch_count(), 1);
  c.check(row_tolerance(GetParam(), 5000));
}

/// Two dispatches of joined steps; the second works on what the first leaves, in place.
TEST_P(PlanJoined, OneAfterAnother) {
  PlanCase c(GetParam());
  const auto kernel = momentum_kernel();
  const int in = c.input(kJoinedType, 3000);
  int outputs[6];
  for (int& output : outputs) output = c.output(kJoinedType, 1000);
  int middle[6];
  for (int& buffer : middle) buffer = c.arena(kJoinedType, 1000);
  c.scalar(kJoinedType, floating(0.5));
  c.scalar(kJoinedType, floating(-0.25));
  for (int i = 0; i < 3; ++i) {
    c.region(kernel, {1000 - 300 * i},
             {view(in, {1}, 1000), view(in, {2}), view(in, {-1}, 2999), view(middle[2 * i], {1}),
              view(middle[2 * i + 1], {1})});
    if (i > 0) c.join();
  }
  for (int i = 0; i < 3; ++i) {
    // Over its own operand; the other buffer is an output.
    c.region(kernel, {1000 - 300 * i},
             {view(middle[2 * i], {1}), view(middle[2 * i + 1], {1}), view(in, {1}), view(middle[2 * i], {1}),
              view(outputs[2 * i + 1], {1})});
    if (i > 0) c.join();
  }
  for (int i = 0; i < 3; ++i) {
    c.region(one_op_kernel(ScalarOp::neg, kJoinedType, kJoinedType), {1000 - 300 * i},
             {view(middle[2 * i], {1}), view(outputs[2 * i], {1})});
    if (i > 0) c.join();
  }
  EXPECT_EQ(c.plan().dispatch_count(), 3);
  c.check({1e-6, 1e-6});
}

}  // namespace
}  // namespace caldera::testing
