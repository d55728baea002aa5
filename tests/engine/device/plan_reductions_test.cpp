// Reductions of hand-built plans against the reference.
#include <gtest/gtest.h>

#include <limits>

#include "engine/device/cpu_threads.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

class PlanReductions : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  bool supports(DType type) const { return shared_backend(GetParam()).supports(type); }
};
INSTANTIATE_TEST_SUITE_P(Devices, PlanReductions, ::testing::ValuesIn(tested_devices()), device_test_name);

constexpr DType kReducedTypes[] = {DType::u8,  DType::u32, DType::i8,  DType::i16,
                                   DType::i32, DType::i64, DType::f32, DType::f64};

/// f32 partial sums of positive numbers: the error of a blocked sum of n terms stays near log2(n) ulp; a
/// device that sums in sequence is allowed sqrt(n). Products: one rounding a factor.
Tolerance tolerance_of(Combine combine, DType type, std::int64_t n) {
  if (combine == Combine::maximum || combine == Combine::minimum) return {};
  const double ulp = type == DType::f64 ? 2.3e-16 : 1.2e-7;
  return combine == Combine::sum ? Tolerance{ulp * (8 + static_cast<double>(n) / 512), 0}
                                 : Tolerance{ulp * static_cast<double>(n), 0};
}

/// Products of thousands of factors stay finite; sums do not cancel.
Range range_of(Combine combine) {
  return combine == Combine::product ? Range{0.99, 1.01}
         : combine == Combine::sum   ? Range{0.5, 1.5}
                                     : Range{-4, 4};
}

TEST_P(PlanReductions, InnerOuterMiddleAndAll) {
  const std::int64_t shapes[][3] = {{1, 1, 1},     {7, 33, 5},   {2, 1025, 3},
                                    {33, 2, 1025}, {1025, 7, 2}, {3, 200, 40}};
  for (const CombineFacts& how : kCombines) {
    const Combine combine = how.combine;
    for (DType type : kReducedTypes) {
      if (!supports(type) || !accepts(combine, type)) continue;
      const auto kernel = reduce_kernel(combine, type);
      for (const auto& s : shapes) {
        const std::int64_t a = s[0];
        const std::int64_t b = s[1];
        const std::int64_t d = s[2];
        const std::int64_t n = a * b * d;
        SCOPED_TRACE(std::string(name(type)) + " " + std::string(how.name) + " of " + std::to_string(a) +
                     "x" + std::to_string(b) + "x" + std::to_string(d));
        PlanCase c(GetParam(), 9);
        const int x = c.input(type, n, range_of(combine));
        const int inner = c.output(type, a * b);
        const int outer = c.output(type, b * d);
        const int middle = c.output(type, 2 * a * d);
        const int all = c.output(type, 1);
        const int outer_two = c.output(type, d);
        c.region(kernel, {a, b, d}, {view(x, {b * d, d, 1}), view(inner, {b, 1, 0})}, 1);
        c.region(kernel, {b, d, a}, {view(x, {d, 1, b * d}), view(outer, {d, 1, 0})}, 1);
        c.region(kernel, {a, d, b}, {view(x, {b * d, 1, d}), view(middle, {2 * d, 2, 0})}, 1);
        c.region(kernel, {a, b, d}, {view(x, {b * d, d, 1}), view(all, {0, 0, 0})}, 3);
        c.region(kernel, {d, a, b}, {view(x, {1, b * d, d}), view(outer_two, {1, 0, 0})}, 2);
        c.check(tolerance_of(combine, type, n));
      }
    }
  }
}

TEST_P(PlanReductions, LongSums) {
  for (std::int64_t n : {std::int64_t{65536}, std::int64_t{65537}, std::int64_t{300001}}) {
    PlanCase c(GetParam());
    const int x = c.input(DType::f32, n, {0.5, 1.5});
    const int z = c.output(DType::f32, 1);
    c.region(reduce_kernel(Combine::sum, DType::f32), {n}, {view(x, {1}), view(z, {0})}, 1);
    c.check({2e-6, 0});
  }
  for (std::int64_t columns : {1, 8, 33, 1100}) {
    PlanCase c(GetParam());
    const std::int64_t rows = 200000 / columns;
    const int x = c.input(DType::f32, rows * columns, {0.5, 1.5});
    const int z = c.output(DType::f32, columns);
    c.region(reduce_kernel(Combine::sum, DType::f32), {columns, rows},
             {view(x, {1, columns}), view(z, {1, 0})}, 1);
    c.check({2e-6, 0});
  }
}

TEST_P(PlanReductions, EmptyReductionsGiveTheIdentity) {
  for (const CombineFacts& how : kCombines) {
    const Combine combine = how.combine;
    for (DType type : kReducedTypes) {
      if (!supports(type) || !accepts(combine, type)) continue;
      SCOPED_TRACE(std::string(name(type)) + " " + std::string(how.name));
      PlanCase c(GetParam());
      const int x = c.input(type, 4);
      const int z = c.output(type, 6);
      c.region(reduce_kernel(combine, type), {2, 3, 0}, {view(x, {0, 0, 1}), view(z, {3, 1, 0})}, 1);
      c.check();
    }
  }
}

TEST_P(PlanReductions, NothingToKeepStoresNothing) {
  PlanCase c(GetParam());
  const int x = c.input(DType::f32, 4);
  const int z = c.output(DType::f32, 3);
  c.region(reduce_kernel(Combine::sum, DType::f32), {0, 4}, {view(x, {4, 1}), view(z, {1, 0})}, 1);
  c.check();
}

TEST_P(PlanReductions, NanReachesTheResult) {
  for (const CombineFacts& how : kCombines) {
    const Combine combine = how.combine;
    if (!accepts(combine, DType::f32)) continue;
    for (bool columns : {false, true}) {
      PlanCase c(GetParam());
      const int x = c.input(DType::f32, 40 * 70);
      const int z = c.output(DType::f32, 40);
      for (std::int64_t i = 0; i < 40; i += 3)
        c.set(x, columns ? i + 40 * (i % 70) : i * 70 + (7 * i) % 70,
              {std::numeric_limits<double>::quiet_NaN(), 0});
      const Operand in = columns ? view(x, {1, 40}) : view(x, {70, 1});
      c.region(reduce_kernel(combine, DType::f32), {40, 70}, {in, view(z, {1, 0})}, 1);
      if (combine == Combine::maximum || combine == Combine::minimum)
        c.check();
      else
        c.check({1e-4, 1e-3});
    }
  }
}

/// sum(exp(x - m) * w): operands broadcast along and across the reduced dim.
TEST_P(PlanReductions, ExpressionsAreEvaluatedBeforeTheyAreCombined) {
  auto k = std::make_shared<Kernel>();
  k->name = "sum(exp)";
  k->inputs = {DType::f32, DType::f32, DType::f32};
  k->code = {{ScalarOp::load, DType::f32, 0, 0, 0}, {ScalarOp::load, DType::f32, 1, 0, 0},
             {ScalarOp::load, DType::f32, 2, 0, 0}, {ScalarOp::sub, DType::f32, 0, 1, 0},
             {ScalarOp::exp, DType::f32, 3, 0, 0},  {ScalarOp::mul, DType::f32, 4, 2, 0}};
  k->outputs = {{5, DType::f32}};
  k->reduce = Combine::sum;
  k->finish();
  for (std::int64_t rows : {1, 7, 130}) {
    for (std::int64_t columns : {1, 33, 1025}) {
      PlanCase c(GetParam());
      const int x = c.input(DType::f32, rows * columns);
      const int m = c.input(DType::f32, rows);
      const int w = c.input(DType::f32, columns, {0.5, 1.5});
      const int z = c.output(DType::f32, rows);
      const int t = c.output(DType::f32, columns);
      c.region(k, {rows, columns}, {view(x, {columns, 1}), view(m, {1, 0}), view(w, {0, 1}), view(z, {1, 0})},
               1);
      c.region(k, {columns, rows}, {view(x, {1, columns}), view(m, {0, 1}), view(w, {1, 0}), view(t, {1, 0})},
               1);
      c.check({GetParam() == Device::cpu() ? 2e-6 : 2e-5, 0});
    }
  }
}

TEST_P(PlanReductions, BooleanAnyAndAll) {
  if (!supports(DType::boolean)) GTEST_SKIP() << "no kernels on booleans";
  for (Combine combine : {Combine::maximum, Combine::minimum}) {
    PlanCase c(GetParam());
    const int x = c.input(DType::boolean, 33 * 3);
    const int z = c.output(DType::boolean, 33);
    c.region(reduce_kernel(combine, DType::boolean), {33, 3}, {view(x, {3, 1}), view(z, {1, 0})}, 1);
    c.check();
  }
}

TEST(CpuReductions, AreBitIdenticalForAnyNumberOfThreads) {
  const int before = cpu_threads();
  PlanCase c(Device::cpu());
  const std::int64_t n = 1 << 20;
  const int x = c.input(DType::f32, n);
  const int all = c.output(DType::f32, 1);
  const int rows = c.output(DType::f32, 4);
  const int columns = c.output(DType::f32, 16);
  const auto sum = reduce_kernel(Combine::sum, DType::f32);
  c.region(sum, {n}, {view(x, {1}), view(all, {0})}, 1);
  c.region(sum, {4, n / 4}, {view(x, {n / 4, 1}), view(rows, {1, 0})}, 1);
  c.region(sum, {16, n / 16}, {view(x, {1, 16}), view(columns, {1, 0})}, 1);
  set_cpu_threads(1);
  const auto one = c.run_on_device();
  for (int threads : {2, 3, 4}) {
    set_cpu_threads(threads);
    EXPECT_EQ(c.run_on_device(), one) << threads << " threads";
  }
  set_cpu_threads(before);
}

}  // namespace
}  // namespace caldera::testing
