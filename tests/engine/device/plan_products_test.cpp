// Contractions, gathers and scatter-adds of hand-built plans against the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

class PlanProducts : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  bool supports(DType type) const { return shared_backend(GetParam()).supports(type); }
};
INSTANTIATE_TEST_SUITE_P(Devices, PlanProducts, ::testing::ValuesIn(tested_devices()), device_test_name);

/// Sums of k products of numbers below 4: an f32 rounding of the largest partial sum, whose standard
/// deviation is about 5 sqrt(k), at every term.
Tolerance tolerance_of(DType type, std::int64_t k) {
  const double ulp = type == DType::f64 ? 1.2e-16 : 6e-8;
  return {4 * ulp, 16 * ulp * static_cast<double>(k + 1)};
}

constexpr DType kProductTypes[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8};

TEST_P(PlanProducts, EveryTranspose) {
  const std::int64_t sizes[][3] = {{1, 1, 1},   {7, 5, 3},    {33, 1, 65},  {1, 33, 65},  {1, 1, 1025},
                                   {33, 65, 1}, {65, 33, 70}, {8, 1025, 7}, {64, 64, 64}, {130, 40, 50}};
  for (DType type : kProductTypes) {
    if (!supports(type)) continue;
    for (const auto& s : sizes) {
      const std::int64_t m = s[0];
      const std::int64_t n = s[1];
      const std::int64_t k = s[2];
      for (int mode = 0; mode < 8; ++mode) {
        SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                     std::to_string(k) + " mode " + std::to_string(mode));
        PlanCase c(GetParam(), 3);
        const int a = c.input(type, m * k);
        const int b = c.input(type, k * n);
        const int z = c.output(type, m * n);
        c.contract(type, {m, n, k},
                   {(mode & 1) != 0 ? view(a, {1, 0, m}) : view(a, {k, 0, 1}),
                    (mode & 2) != 0 ? view(b, {0, k, 1}) : view(b, {0, 1, n}),
                    (mode & 4) != 0 ? view(z, {1, m, 0}) : view(z, {n, 1, 0})});
        c.check(tolerance_of(type, k));
      }
    }
  }
}

TEST_P(PlanProducts, StridedReversedAndBroadcastMatrices) {
  for (std::int64_t size : {5, 40}) {
    PlanCase c(GetParam());
    const int a = c.input(DType::f32, 4 * size * size);
    const int b = c.input(DType::f32, 4 * size * size);
    const int z = c.output(DType::f32, 6 * size * size);
    const std::int64_t area = size * size;
    // Rows of wider matrices; every other element; backwards; one row for all m; one column for all n.
    c.contract(DType::f32, {size, size, size},
               {view(a, {2 * size, 0, 1}, 3), view(b, {0, 1, 2 * size}, 2), view(z, {size, 1, 0})});
    c.contract(DType::f32, {size, size, size},
               {view(a, {2 * size, 0, 2}), view(b, {0, 2, 2 * size}), view(z, {2 * size, 2, 0}, area)});
    c.contract(DType::f32, {size, size, size},
               {view(a, {-size, 0, 1}, area - size), view(b, {0, -1, size}, size - 1),
                view(z, {size, 1, 0}, 3 * area)});
    c.contract(DType::f32, {size, size, size},
               {view(a, {0, 0, 1}), view(b, {0, 0, 1}), view(z, {1, size, 0}, 4 * area)});
    c.contract(DType::f32, {1, size, size},
               {view(a, {7, 0, 3}), view(b, {0, size, 1}), view(z, {5, 2, 0}, 5 * area)});
    c.check(tolerance_of(DType::f32, size));
  }
}

TEST_P(PlanProducts, BatchesSharedAndMerged) {
  for (std::int64_t t : {1, 6, 40}) {
    SCOPED_TRACE(t);
    const std::int64_t d = 24;
    const std::int64_t e = 30;
    PlanCase c(GetParam());
    const int x = c.input(DType::f32, 2 * 3 * t * d);
    const int w = c.input(DType::f32, 2 * 3 * d * e);
    const int z = c.output(DType::f32, 4 * 2 * 3 * t * e);
    const std::int64_t out = 6 * t * e;
    // (2, 3, t, d) @ (d, e): one product. Then a weight a first batch, a weight a second, a weight each.
    c.contract(DType::f32, {2, 3, t, e, d},
               {view(x, {3 * t * d, t * d, d, 0, 1}), view(w, {0, 0, 0, 1, e}),
                view(z, {3 * t * e, t * e, e, 1, 0})});
    c.contract(DType::f32, {2, 3, t, e, d},
               {view(x, {3 * t * d, t * d, d, 0, 1}), view(w, {d * e, 0, 0, 1, e}),
                view(z, {3 * t * e, t * e, e, 1, 0}, out)});
    c.contract(DType::f32, {2, 3, t, e, d},
               {view(x, {0, t * d, d, 0, 1}), view(w, {0, d * e, 0, 1, e}),
                view(z, {3 * t * e, t * e, e, 1, 0}, 2 * out)});
    // Heads as attention lays them out: the batch is between the rows and the columns.
    c.contract(DType::f32, {2, 3, t, e, d},
               {view(x, {3 * t * d, d, 3 * d, 0, 1}), view(w, {3 * d * e, d * e, 0, d, 1}),
                view(z, {3 * t * e, e, 3 * e, 1, 0}, 3 * out)});
    c.check(tolerance_of(DType::f32, d));
  }
}

TEST_P(PlanProducts, ManySmallMatrices) {
  PlanCase c(GetParam());
  const int a = c.input(DType::f32, 200 * 33 * 32);
  const int b = c.input(DType::f32, 200 * 32 * 33);
  const int z = c.output(DType::f32, 200 * 33 * 33);
  c.contract(DType::f32, {200, 33, 33, 32},
             {view(a, {33 * 32, 32, 0, 1}), view(b, {33 * 32, 0, 32, 1}), view(z, {33 * 33, 33, 1, 0})});
  c.check(tolerance_of(DType::f32, 32));
}

TEST_P(PlanProducts, EmptyProducts) {
  PlanCase c(GetParam());
  const int a = c.input(DType::f32, 12);
  const int b = c.input(DType::f32, 12);
  const int z = c.output(DType::f32, 24);
  c.contract(DType::f32, {3, 4, 0}, {view(a, {0, 0, 1}), view(b, {0, 1, 4}), view(z, {4, 1, 0})});
  c.contract(DType::f32, {0, 4, 3}, {view(a, {3, 0, 1}), view(b, {0, 1, 4}), view(z, {4, 1, 0})});
  c.contract(DType::f32, {2, 3, 0}, {view(a, {0, 0, 1}), view(b, {0, 1, 4}), view(z, {1, 2, 0}, 12)});
  c.check();
}

/// One index operand of `count` elements with some outside of the axis.
int indices(PlanCase& c, DType type, std::int64_t count, std::int64_t extent) {
  const int index = c.input(type, count);
  std::uniform_int_distribution<std::int64_t> pick(-2, extent + 1);
  for (std::int64_t i = 0; i < count; ++i) c.set(index, i, {0, pick(c.random())});
  return index;
}

TEST_P(PlanProducts, Gather) {
  for (DType type : {DType::f32, DType::f64, DType::i32, DType::u8, DType::i64}) {
    if (!supports(type)) continue;
    for (std::int64_t inner : {1, 7, 33, 1025}) {
      for (std::int64_t outer : {1, 5}) {
        SCOPED_TRACE(std::string(name(type)) + " inner " + std::to_string(inner) + " outer " +
                     std::to_string(outer));
        const std::int64_t extent = 11;
        const std::int64_t count = 17;
        PlanCase c(GetParam());
        const int x = c.input(type, outer * extent * inner);
        const int index = indices(c, DType::i32, count, extent);
        const int z = c.output(type, outer * count * inner);
        const int transposed = c.output(type, outer * count * inner);
        c.indexed(
            GatherStep{.axis = {extent, inner}}, type, {outer, count, inner},
            {view(x, {extent * inner, 0, 1}), view(index, {0, 1, 0}), view(z, {count * inner, inner, 1})});
        // x with the axis innermost, indices backwards, output with inner before indices.
        c.indexed(GatherStep{.axis = {extent, 1}}, type, {outer, count, inner},
                  {view(x, {extent * inner, 0, extent}), view(index, {0, -1, 0}, count - 1),
                   view(transposed, {count * inner, 1, count})});
        c.check();
      }
    }
  }
}

TEST_P(PlanProducts, ScatterAdd) {
  for (DType type : {DType::f32, DType::f64, DType::i32}) {
    if (!supports(type)) continue;
    for (std::int64_t inner : {1, 7, 33, 1025}) {
      for (std::int64_t outer : {1, 5}) {
        SCOPED_TRACE(std::string(name(type)) + " inner " + std::to_string(inner) + " outer " +
                     std::to_string(outer));
        const std::int64_t extent = 6;
        const std::int64_t count = 40;
        PlanCase c(GetParam());
        const int u = c.input(type, outer * count * inner);
        const int index = indices(c, DType::i32, count, extent);
        const int z = c.output_with_data(type, outer * extent * inner);
        const int strided_out = c.output_with_data(type, 2 * outer * extent * inner);
        c.indexed(
            ScatterStep{.axis = {extent, inner}}, type, {outer, count, inner},
            {view(u, {count * inner, inner, 1}), view(index, {0, 1, 0}), view(z, {extent * inner, 0, 1})});
        c.indexed(ScatterStep{.axis = {extent, 2}}, type, {outer, count, inner},
                  {view(u, {count * inner, 1, count}), view(index, {0, 1, 0}),
                   view(strided_out, {2 * extent * inner, 0, 2 * extent})});
        c.check();  // added in order of i, each sum rounded: exactly as the reference does
      }
    }
  }
}

}  // namespace
}  // namespace caldera::testing
