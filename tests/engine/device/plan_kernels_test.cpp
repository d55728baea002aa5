// Regions of hand-built plans against the reference: every scalar operation, every kind of operand.
#include <gtest/gtest.h>

#include <limits>

#include "engine/base/error.h"
#include "engine/check/reference/kernel_builder.h"
#include "engine/check/reference/scalar_limits.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

class PlanKernels : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  bool supports(DType type) const { return shared_backend(GetParam()).supports(type); }
};
INSTANTIATE_TEST_SUITE_P(Devices, PlanKernels, ::testing::ValuesIn(tested_devices()), device_test_name);

constexpr DType kTypes[] = {DType::boolean, DType::u8, DType::i32, DType::i64, DType::f32, DType::f64};
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_P(PlanKernels, EveryOperationOnEveryType) {
  for (int o = static_cast<int>(ScalarOp::neg); o <= static_cast<int>(ScalarOp::select); ++o) {
    const auto op = static_cast<ScalarOp>(o);
    if (op == ScalarOp::cast) continue;
    for (DType type : kTypes) {
      if (!supports(type) || !accepts(op, type)) continue;
      const DType result = value_type(op, type);
      if (!supports(result)) continue;
      for (std::int64_t n : {1, 7, 33, 1025}) {
        SCOPED_TRACE(std::string(info(op).name) + " of " + std::string(name(type)) + " x " +
                     std::to_string(n));
        PlanCase c(GetParam(), static_cast<std::uint32_t>(o));
        std::vector<Operand> operands;
        const auto kernel = one_op_kernel(op, type, result);
        for (DType input : kernel->inputs)
          operands.push_back(view(c.input(input, n, reference::checked_range(op)), {1}));
        operands.push_back(view(c.output(result, n), {1}));
        c.region(kernel, {n}, operands);
        c.check(reference::scalar_allowed(op, type, GetParam()).tolerance);
      }
    }
  }
}

TEST_P(PlanKernels, EveryCast) {
  for (DType from : kTypes) {
    for (DType to : kTypes) {
      if (!supports(from) || !supports(to)) continue;
      SCOPED_TRACE(std::string(name(from)) + " to " + std::string(name(to)));
      PlanCase c(GetParam());
      const int x = c.input(from, 1025, {-300, 300});
      const int y = c.output(to, 1025);
      // NaN and values outside the target's range: GPUs leave those to the driver, the CPU promises them.
      if (is_floating(from) && GetParam() == Device::cpu()) {
        const double special[] = {0.0, -0.0, kNan, kInf, -kInf, 1e30, -1e30, 0.5, -0.5, 2147483647.0, 255.5};
        for (std::size_t i = 0; i < std::size(special); ++i)
          c.set(x, static_cast<std::int64_t>(i), {special[i], 0});
      } else if (is_floating(from) && to == DType::u8) {
        for (std::int64_t i = 0; i < 1025; ++i) c.set(x, i, {static_cast<double>(i % 255) + 0.75, 0});
      }
      c.region(one_op_kernel(ScalarOp::cast, from, to), {1025}, {view(x, {1}), view(y, {1})});
      c.check();
    }
  }
}

TEST_P(PlanKernels, EveryCastToNarrowIntegersAndBack) {
  for (DType narrow : {DType::i8, DType::i16, DType::u32}) {
    for (DType other : kAllDTypes) {
      if (!supports(narrow) || !supports(other)) continue;
      SCOPED_TRACE(std::string(name(narrow)) + " and " + std::string(name(other)));
      reference::KernelBuilder to("narrowed"), back("widened");
      to.store(to.cast(to.load(other), narrow), narrow);
      back.store(back.cast(back.load(narrow), other), other);
      PlanCase c(GetParam());
      const int x = c.input(other, 1025, {-300, 300});
      const int y = c.input(narrow, 1025);
      const int held = c.output(narrow, 1025);
      const int wide = c.output(other, 1025);
      // Every device saturates: the register that numbers are converted to first is wider than the type.
      const double special[] = {0.0,   -0.0,   kNan,         kInf,         -kInf,  1e30, -1e30,
                                0.5,   -0.5,   127.5,        128,          -128.5, -129, 32767,
                                32768, -32769, 4294967295.0, 4294967296.0, -1};
      for (std::size_t i = 0; is_floating(other) && !is_half(other) && i < std::size(special); ++i)
        c.set(x, static_cast<std::int64_t>(i), {special[i], 0});
      const TypeFacts& limits = facts(narrow);
      const std::int64_t ends[] = {limits.lowest,      limits.lowest + 1, -1, 0, 1,
                                   limits.highest - 1, limits.highest};
      for (std::size_t i = 0; i < std::size(ends); ++i) {
        c.set(y, static_cast<std::int64_t>(i), {0, ends[i]});
        // One past either end wraps.
        if (other == DType::i32 || other == DType::i64)
          c.set(x, static_cast<std::int64_t>(i), {0, ends[i] + (i % 2 == 0 ? 1 : -1)});
      }
      c.region(to.finish(), {1025}, {view(x, {1}), view(held, {1})});
      c.region(back.finish(), {1025}, {view(y, {1}), view(wide, {1})});
      c.check();
    }
  }
}

TEST_P(PlanKernels, IntegerDivisionNeverTraps) {
  for (DType type : {DType::i32, DType::i64}) {
    if (!supports(type)) continue;
    const std::int64_t lowest = type == DType::i32 ? std::numeric_limits<std::int32_t>::min()
                                                   : std::numeric_limits<std::int64_t>::min();
    const std::int64_t values[][2] = {{7, 0}, {-7, 0}, {lowest, -1}, {lowest, 0}, {-7, 2}, {7, -2}, {0, 5}};
    for (ScalarOp op : {ScalarOp::floor_div, ScalarOp::remainder}) {
      PlanCase c(GetParam());
      const int x = c.input(type, 7);
      const int y = c.input(type, 7);
      const int z = c.output(type, 7);
      for (int i = 0; i < 7; ++i) {
        c.set(x, i, {0, values[i][0]});
        c.set(y, i, {0, values[i][1]});
      }
      c.region(one_op_kernel(op, type, type), {7}, {view(x, {1}), view(y, {1}), view(z, {1})});
      c.check();
    }
  }
}

TEST_P(PlanKernels, NanPropagatesThroughMaximumAndMinimum) {
  for (ScalarOp op : {ScalarOp::maximum, ScalarOp::minimum}) {
    PlanCase c(GetParam());
    const int x = c.input(DType::f32, 40);
    const int y = c.input(DType::f32, 40);
    const int z = c.output(DType::f32, 40);
    for (int i = 0; i < 40; i += 3) c.set(x, i, {kNan, 0});
    for (int i = 0; i < 40; i += 5) c.set(y, i, {kNan, 0});
    c.region(one_op_kernel(op, DType::f32, DType::f32), {40}, {view(x, {1}), view(y, {1}), view(z, {1})});
    c.check();
  }
}

TEST_P(PlanKernels, EmptySpacesStoreNothing) {
  PlanCase c(GetParam());
  const int x = c.input(DType::f32, 8);
  const int z = c.output(DType::f32, 8);
  c.region(one_op_kernel(ScalarOp::neg, DType::f32, DType::f32), {2, 0, 4},
           {view(x, {4, 4, 1}), view(z, {4, 4, 1})});
  c.check();
}

TEST_P(PlanKernels, TransposedSlicedReversedAndBroadcastOperands) {
  const auto add = one_op_kernel(ScalarOp::add, DType::f32, DType::f32);
  for (std::int64_t rows : {1, 7, 33, 1025}) {
    for (std::int64_t columns : {1, 3, 33, 1025}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
      PlanCase c(GetParam(), 5);
      const int x = c.input(DType::f32, rows * columns + 10);
      const int y = c.input(DType::f32, 2 * rows * columns + 10);
      const int z = c.output(DType::f32, 6 * rows * columns + 12);
      const std::int64_t n = rows * columns;
      c.region(add, {rows, columns}, {view(x, {1, rows}, 3), view(y, {columns, 1}), view(z, {columns, 1})});
      c.region(add, {rows, columns},
               {view(x, {columns, -1}, columns - 1), view(y, {2 * columns, 2}, 5), view(z, {columns, 1}, n)});
      c.region(add, {rows, columns}, {view(x, {0, 1}), view(y, {1, 0}), view(z, {columns, 1}, 2 * n)});
      c.region(add, {rows, columns},
               {view(x, {0, 0}, 2), view(y, {-columns, 1}, (rows - 1) * columns),
                view(z, {1, rows}, 3 * n)});  // transposed output
      c.region(add, {rows, columns},
               {view(x, {columns, 1}), view(y, {0, 0}), view(z, {2 * columns, 2}, 4 * n)});
      c.check();
    }
  }
}

TEST_P(PlanKernels, PermutedFourDimensionalCopies) {
  const auto copy = one_op_kernel(ScalarOp::cast, DType::f32, DType::f32);
  for (std::int64_t d : {1, 2, 5, 33}) {
    PlanCase c(GetParam(), 3);
    const std::int64_t n = 3 * 7 * 4 * d;
    const int x = c.input(DType::f32, n);
    const int z = c.output(DType::f32, 2 * n);
    // (3, 7, 4, d) read as (3, 4, 7, d), and as (d, 4, 7, 3).
    c.region(copy, {3, 4, 7, d}, {view(x, {28 * d, d, 4 * d, 1}), view(z, {28 * d, 7 * d, d, 1})});
    c.region(copy, {d, 4, 7, 3}, {view(x, {1, d, 4 * d, 28 * d}), view(z, {84, 21, 3, 1}, n)});
    c.check();
  }
}

/// Extents of whole blocks, where a device may walk the space in another order; with a broadcast beside.
TEST_P(PlanKernels, BlockedTransposes) {
  const auto add = one_op_kernel(ScalarOp::add, DType::f32, DType::f32);
  PlanCase c(GetParam());
  const std::int64_t p = 96;
  const std::int64_t q = 64;
  const int x = c.input(DType::f32, 3 * p * q);
  const int y = c.input(DType::f32, q);
  const int z = c.output(DType::f32, 3 * p * q);
  const int t = c.output(DType::f32, 3 * p * q);
  c.region(add, {3, p, q}, {view(x, {p * q, 1, p}), view(y, {0, 0, 1}), view(z, {p * q, q, 1})});
  c.region(add, {3, p, q}, {view(x, {p * q, q, 1}), view(y, {0, 0, 1}), view(t, {1, 3, 3 * p})});
  c.check();
}

TEST_P(PlanKernels, NarrowTypesStrided) {
  for (DType type : {DType::boolean, DType::u8, DType::i64, DType::f64}) {
    if (!supports(type)) continue;
    PlanCase c(GetParam());
    const int x = c.input(type, 33 * 65);
    const int z = c.output(type, 33 * 65);
    c.region(one_op_kernel(ScalarOp::cast, type, type), {65, 33}, {view(x, {1, 65}), view(z, {33, 1})});
    c.check();
  }
}

/// index, several outputs, one value stored twice, a load stored as it is, scalars, a chain that needs more
/// than two buffers.
TEST_P(PlanKernels, SeveralOutputsScalarsAndIndices) {
  auto k = std::make_shared<Kernel>();
  k->name = "mixed";
  k->inputs = {DType::f32, DType::f32};
  k->index_count = 1;
  k->scalars = {DType::f32, DType::i32};
  k->code = {
      {ScalarOp::load, DType::f32, 0, 0, 0},      // v0
      {ScalarOp::load, DType::f32, 1, 0, 0},      // v1
      {ScalarOp::index, DType::i32, 0, 0, 0},     // v2
      {ScalarOp::scalar, DType::f32, 0, 0, 0},    // v3
      {ScalarOp::scalar, DType::i32, 1, 0, 0},    // v4
      {ScalarOp::mul, DType::f32, 0, 3, 0},       // v5
      {ScalarOp::add, DType::f32, 5, 1, 0},       // v6, output 0
      {ScalarOp::less, DType::boolean, 2, 4, 0},  // v7
      {ScalarOp::neg, DType::f32, 6, 0, 0},       // v8
      {ScalarOp::select, DType::f32, 7, 8, 0},    // v9, output 1 and 3
      {ScalarOp::cast, DType::f32, 2, 0, 0},      // v10
      {ScalarOp::mul, DType::f32, 10, 9, 0},      // v11, output 2
  };
  k->outputs = {{6, DType::f32}, {9, DType::f32}, {11, DType::f32},   {9, DType::f32},
                {0, DType::f32}, {2, DType::i32}, {7, DType::boolean}};
  k->finish();
  for (std::int64_t rows : {1, 5, 129}) {
    PlanCase c(GetParam());
    const std::int64_t columns = 37;
    const std::int64_t n = rows * columns;
    const int x = c.input(DType::f32, n);
    const int y = c.input(DType::f32, columns);
    std::vector<Operand> operands{view(x, {columns, 1}), view(y, {0, 1}), view(-1, {3, 2}, -11)};
    for (const auto& output : k->outputs) operands.push_back(view(c.output(output.type, n), {columns, 1}));
    c.scalar(DType::f32, {1.5, 0});
    c.scalar(DType::i32, {0, 40});
    c.region(k, {rows, columns}, operands);
    // One multiplication and one addition that a compiler may contract.
    c.check(GetParam() == Device::cpu() ? Tolerance{} : Tolerance{1e-6, 1e-6});
  }
}

/// The planner gives an output the memory of an input that dies in the step: Adam's moments, say. The output
/// that is computed first must not destroy the input that is read last.
TEST_P(PlanKernels, OutputsMayTakeTheMemoryOfInputs) {
  auto k = std::make_shared<Kernel>();
  k->name = "swap";
  k->inputs = {DType::f32, DType::f32};
  k->code = {{ScalarOp::load, DType::f32, 0, 0, 0},
             {ScalarOp::load, DType::f32, 1, 0, 0},
             {ScalarOp::add, DType::f32, 0, 1, 0},
             {ScalarOp::sub, DType::f32, 0, 1, 0}};
  k->outputs = {{2, DType::f32}, {3, DType::f32}};
  k->finish();
  const auto copy = one_op_kernel(ScalarOp::cast, DType::f32, DType::f32);
  for (std::int64_t n : {5, 1025, 70000}) {
    PlanCase c(GetParam());
    const int x = c.input(DType::f32, n);
    const int y = c.input(DType::f32, n);
    const int p = c.output(DType::f32, n);
    const int q = c.output(DType::f32, n);
    const int a = c.arena(DType::f32, n);
    const int b = c.arena(DType::f32, n);
    c.region(copy, {n}, {view(x, {1}), view(a, {1})});
    c.region(copy, {n}, {view(y, {1}), view(b, {1})});
    c.region(k, {n}, {view(a, {1}), view(b, {1}), view(a, {1}), view(b, {1})});
    c.region(copy, {n}, {view(a, {1}), view(p, {1})});
    c.region(copy, {n}, {view(b, {1}), view(q, {1})});
    c.check();
  }
}

TEST_P(PlanKernels, PhiloxMatchesTheKnownAnswersAndTheReference) {
  // Random123, kat_vectors, philox4x32 10: counter 0 0 0 0, key 0 0.
  const std::uint32_t known[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_EQ(reference_philox_word(0, i), known[i]);

  for (ScalarOp op : {ScalarOp::philox_uniform, ScalarOp::philox_normal}) {
    for (DType type : {DType::f32, DType::f64}) {
      if (!supports(type)) continue;
      auto k = std::make_shared<Kernel>();
      k->name = "random";
      k->index_count = 1;
      k->scalars = {DType::i64};
      k->code = {{ScalarOp::scalar, DType::i64, 0, 0, 0},
                 {ScalarOp::index, DType::i32, 0, 0, 0},
                 {op, type, 0, 1, 0}};
      k->outputs = {{2, type}};
      k->finish();
      for (std::int64_t seed : {std::int64_t{0}, std::int64_t{0x123456789abcdef}, std::int64_t{-5}}) {
        PlanCase c(GetParam());
        const int z = c.output(type, 5000);
        c.scalar(DType::i64, {0, seed});
        c.region(k, {5000}, {view(-1, {1}), view(z, {1})});
        c.region(k, {33}, {view(-1, {7}, 1000000007), view(z, {1}, 100)});
        const bool exact = op == ScalarOp::philox_uniform;
        // Normal on GPUs: log, sin and cos of f32.
        c.check(exact                         ? Tolerance{}
                : GetParam() == Device::cpu() ? Tolerance{2e-7, 0}
                                              : Tolerance{1e-4, 1e-4});
      }
    }
  }
}

TEST(CpuKernels, FirstUniformElementsAreTheKnownWords) {
  auto k = std::make_shared<Kernel>();
  k->name = "uniform";
  k->index_count = 1;
  k->scalars = {DType::i64};
  k->code = {{ScalarOp::scalar, DType::i64, 0, 0, 0},
             {ScalarOp::index, DType::i32, 0, 0, 0},
             {ScalarOp::philox_uniform, DType::f64, 0, 1, 0}};
  k->outputs = {{2, DType::f64}};
  k->finish();
  PlanCase c(Device::cpu());
  const int z = c.output(DType::f64, 4);
  c.scalar(DType::i64, {0, 0});
  c.region(k, {4}, {view(-1, {1}), view(z, {1})});
  const auto out = c.run_on_device();
  const double words[] = {0x6627e8d5p0, 0xe169c58dp0, 0xbc57ac4cp0, 0x9b00dbd8p0};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(read_number(out[0], DType::f64, i).f, words[i] * 0x1p-32);
}

}  // namespace
}  // namespace caldera::testing
