// Row kernels of hand-built plans against the reference: operands in every order of memory.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/plans/row_kernels.h"

namespace caldera::testing {
namespace {

class PlanRowLayouts : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  Tolerance tolerance(std::int64_t length) const { return row_tolerance(GetParam(), length); }
};
INSTANTIATE_TEST_SUITE_P(Devices, PlanRowLayouts, ::testing::ValuesIn(tested_devices()), device_test_name);

constexpr DType kRowType = DType::f32;
constexpr std::int64_t kRowLengths[] = {1, 7, 64, 130, 1025};

TEST_P(PlanRowLayouts, StridedOffsetReversedAndTransposed) {
  const auto kernel = softmax_kernel(kRowType);
  for (std::int64_t n : kRowLengths) {
    for (std::int64_t rows : {1, 33, 70}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(n));
      const std::int64_t count = rows * n;
      PlanCase c(GetParam());
      const int x = c.input(kRowType, 2 * count + 3);
      std::vector<Operand> sources = {view(x, {n, 1}, 3),           // offset
                                      view(x, {2 * n, 1}, 1),       // slices of wider rows
                                      view(x, {2 * n, 2}, 1),       // every other element
                                      view(x, {n, -1}, n - 1),      // backwards
                                      view(x, {-n, 1}, count - n),  // rows from the last
                                      view(x, {1, rows}),           // columns
                                      view(x, {-2, 2 * rows}, 2 * rows - 2)};
      for (const Operand& source : sources) {
        const int dense = c.output(kRowType, count);
        const int columns = c.output(kRowType, count);
        const int sparse = c.output(kRowType, 3 * count);
        const int reversed = c.output(kRowType, count);
        c.region(kernel, {rows, n}, {source, view(dense, {n, 1})}, 1);
        c.region(kernel, {rows, n}, {source, view(columns, {1, rows})}, 1);
        c.region(kernel, {rows, n}, {source, view(sparse, {3 * n, 2}, 1)}, 1);
        c.region(kernel, {rows, n}, {source, view(reversed, {n, -1}, n - 1)}, 1);
      }
      // Buffers come in the order of their roles: inputs, outputs.
      c.check(tolerance(n));
    }
  }
}

TEST_P(PlanRowLayouts, BroadcastOperands) {
  // x[i,j] * one_a_column[j] + one_a_row[i], the same for a row operand, one element for all.
  KernelBuilder b("norm");
  const auto x = b.load(kRowType);
  const auto column = b.load(kRowType);
  const auto row = b.load(kRowType);
  const auto same_row = b.load_row(kRowType);
  const auto everywhere = b.load(kRowType);
  const auto row_everywhere = b.load_row(kRowType);
  const auto y = b.op(ScalarOp::add, b.op(ScalarOp::mul, x, column), row);
  const auto sum = b.op(ScalarOp::row_sum, b.op(ScalarOp::abs, y));
  const auto scaled = b.op(ScalarOp::mul, b.op(ScalarOp::div, y, sum), b.op(ScalarOp::abs, same_row));
  const auto shifted = b.op(ScalarOp::mul, scaled, b.op(ScalarOp::mul, everywhere, row_everywhere));
  const auto kernel = b.store(shifted)
                          .store(b.op(ScalarOp::row_sum, b.op(ScalarOp::abs, shifted)))
                          .store(b.op(ScalarOp::mul, same_row, sum))
                          .finish();
  for (std::int64_t n : kRowLengths) {
    for (std::int64_t rows : {1, 33}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(n));
      PlanCase c(GetParam());
      const int xs = c.input(kRowType, rows * n);
      const int columns = c.input(kRowType, n);
      const int row_values = c.input(kRowType, rows);
      const int one = c.input(kRowType, 3);
      for (int layout = 0; layout < 4; ++layout) {
        const int out = c.output(kRowType, rows * n);
        const int total = c.output(kRowType, 2 * rows);
        const int product = c.output(kRowType, rows);
        const Operand source = layout == 0   ? view(xs, {n, 1})
                               : layout == 1 ? view(xs, {0, 1})   // every row the same
                               : layout == 2 ? view(xs, {n, 0})   // rows of equal elements
                                             : view(xs, {0, 0});  // one element
        c.region(kernel, {rows, n},
                 {source, view(columns, {0, 1}), view(row_values, {1, 0}),
                  view(row_values, {-1, 0}, rows - 1), view(one, {0, 0}, 1), view(one, {0, 0}, 2),
                  view(out, {n, 1}), view(total, {2, 0}), view(product, {1, 0})},
                 1);
      }
      c.check({2 * tolerance(n).relative, 1e-5});
    }
  }
}

/// Rows of two dimensions that are no single one in memory, under rows of two dimensions too.
TEST_P(PlanRowLayouts, RowsOfSeveralDimensions) {
  const std::int64_t sizes[][4] = {{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 1, 33, 2}, {2, 5, 40, 30}, {1, 2, 3, 700}};
  for (const auto& s : sizes) {
    const std::int64_t a = s[0];
    const std::int64_t b = s[1];
    const std::int64_t d = s[2];
    const std::int64_t e = s[3];
    SCOPED_TRACE(Shape({a, b, d, e}).to_string());
    const std::int64_t count = a * b * d * e;
    PlanCase c(GetParam());
    const int x = c.input(kRowType, 2 * count);
    const int weight = c.input(kRowType, d * e);
    const int y = c.output(kRowType, 4 * count);
    const int scales = c.output(kRowType, 4 * a * b);
    c.scalar(kRowType, floating(1 / static_cast<double>(d * e)));
    c.scalar(kRowType, floating(1e-6));
    const auto kernel = rms_norm_kernel(kRowType);
    const Operand weights[] = {view(weight, {0, 0, e, 1}), view(weight, {0, 0, 1, d}),
                               view(weight, {0, 0, e, 1}), view(weight, {0, 0, 0, 1})};
    const Operand sources[] = {view(x, {b * d * e, d * e, e, 1}),  // dense
                               view(x, {b * d * e, e, b * e, 1}),  // b between the row's dimensions
                               view(x, {1, a, a * b * e, a * b}),  // rows outermost
                               view(x, {2 * b * d * e, 2 * d * e, 2 * e, 1}, e)};  // half of wider rows
    const Operand outputs[] = {view(y, {b * d * e, d * e, e, 1}), view(y, {b * d * e, e, b * e, 1}, count),
                               view(y, {d * e, a * d * e, 1, d}, 2 * count),
                               view(y, {1, a, a * b * e, a * b}, 3 * count)};
    for (int layout = 0; layout < 4; ++layout) {
      c.region(kernel, {a, b, d, e},
               {sources[layout], weights[layout], outputs[layout],
                view(scales, {layout % 2 == 0 ? b : 1, layout % 2 == 0 ? 1 : a, 0, 0}, layout * a * b)},
               2);
    }
    c.check(tolerance(d * e));
  }
}

/// (batch, time, head, size) read as (batch, head, time, size): a norm of every head.
TEST_P(PlanRowLayouts, HeadsBetweenTheRows) {
  const std::int64_t batch = 2;
  const std::int64_t heads = 3;
  for (std::int64_t time : {1, 33}) {
    for (std::int64_t size : {8, 65}) {
      PlanCase c(GetParam());
      const std::int64_t count = batch * heads * time * size;
      const int x = c.input(kRowType, count);
      const int y = c.output(kRowType, count);
      c.region(softmax_kernel(kRowType), {batch, heads, time, size},
               {view(x, {time * heads * size, size, heads * size, 1}),
                view(y, {heads * time * size, time * size, size, 1})},
               1);
      c.check(tolerance(size));
    }
  }
}

TEST_P(PlanRowLayouts, ARowIsEverything) {
  const std::int64_t sizes[][3] = {{1, 1, 1}, {3, 7, 11}, {40, 5, 33}};
  for (const auto& s : sizes) {
    SCOPED_TRACE(Shape({s[0], s[1], s[2]}).to_string());
    const std::int64_t count = s[0] * s[1] * s[2];
    PlanCase c(GetParam());
    const int x = c.input(kRowType, count);
    const int y = c.output(kRowType, count);
    const int z = c.output(kRowType, count);
    c.region(softmax_kernel(kRowType), {s[0], s[1], s[2]},
             {view(x, {s[1] * s[2], s[2], 1}), view(y, {s[1] * s[2], s[2], 1})}, 3);
    c.region(softmax_kernel(kRowType), {s[0], s[1], s[2]},
             {view(x, {1, s[0] * s[2], s[0]}), view(z, {s[1] * s[2], s[2], 1})}, 3);
    c.check(tolerance(count));
  }
}

/// Gives arena buffer `b` the memory of `a`.
void lie_over(PlanCase& c, int b, int a) {
  c.plan().buffers[static_cast<std::size_t>(b)].arena_offset =
      c.plan().buffers[static_cast<std::size_t>(a)].arena_offset;
}

TEST_P(PlanRowLayouts, InThePlaceOfAnOperand) {
  const auto copy = one_op_kernel(ScalarOp::neg, kRowType, kRowType);
  for (std::int64_t n : {1, 7, 64, 1000, 1025, 5000}) {
    for (std::int64_t rows : {1, 5, 33}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(n));
      const std::int64_t count = rows * n;
      PlanCase c(GetParam());
      const int x = c.input(kRowType, count);
      const int weight = c.input(kRowType, n);
      const int bias = c.input(kRowType, n);
      const int first = c.output(kRowType, count);
      const int second = c.output(kRowType, count);
      const int old = c.arena(kRowType, count);
      const int normal = c.arena(kRowType, count);
      const int transposed = c.arena(kRowType, count);
      const int soft = c.arena(kRowType, count);
      c.scalar(kRowType, floating(1 / static_cast<double>(n)));
      c.scalar(kRowType, floating(1e-3));
      lie_over(c, normal, old);
      lie_over(c, soft, transposed);
      // Two reductions, one after another, read the row that is overwritten at last.
      c.region(copy, {count}, {view(x, {1}), view(old, {1})});
      c.region(layer_norm_kernel(), {rows, n},
               {view(old, {n, 1}), view(weight, {0, 1}), view(bias, {0, 1}), view(normal, {n, 1})}, 1);
      c.region(copy, {count}, {view(normal, {1}), view(first, {1})});
      // Columns over columns.
      c.region(copy, {count}, {view(x, {1}), view(transposed, {1})});
      c.region(softmax_kernel(kRowType), {rows, n}, {view(transposed, {1, rows}), view(soft, {1, rows})}, 1);
      c.region(copy, {count}, {view(soft, {1}), view(second, {1})});
      c.check({tolerance(n).relative, 1e-4});
    }
  }
}

/// Of two outputs one is stored over an operand that the other needs too; of two for each row one is stored
/// over the row operand that both read.
TEST_P(PlanRowLayouts, SeveralOutputsInThePlaceOfOperands) {
  KernelBuilder b("running");
  const auto x = b.load(kRowType);
  const auto g = b.load(kRowType);
  const auto before = b.load_row(kRowType);
  const auto most = b.op(ScalarOp::maximum, before, b.op(ScalarOp::row_maximum, x));
  const auto e = b.op(ScalarOp::exp, b.op(ScalarOp::sub, x, most));
  const auto kernel = b.store(b.op(ScalarOp::mul, e, g))
                          .store(b.op(ScalarOp::sub, g, x))
                          .store(most)
                          .store(b.op(ScalarOp::sub, before, most))
                          .finish();
  const auto copy = one_op_kernel(ScalarOp::neg, kRowType, kRowType);
  for (std::int64_t n : {1, 7, 64, 1025, 5000}) {
    SCOPED_TRACE(n);
    const std::int64_t rows = 9;
    PlanCase c(GetParam());
    const int xs = c.input(kRowType, rows * n);
    const int gs = c.input(kRowType, rows * n);
    const int starts = c.input(kRowType, rows);
    int outputs[4];
    for (int o = 0; o < 4; ++o) outputs[o] = c.output(kRowType, o < 2 ? rows * n : rows);
    const int x_copy = c.arena(kRowType, rows * n);
    const int g_copy = c.arena(kRowType, rows * n);
    const int start_copy = c.arena(kRowType, rows);
    const int over_g = c.arena(kRowType, rows * n);
    const int over_x = c.arena(kRowType, rows * n);
    const int over_start = c.arena(kRowType, rows);
    lie_over(c, over_g, g_copy);
    lie_over(c, over_x, x_copy);
    lie_over(c, over_start, start_copy);
    c.region(copy, {rows * n}, {view(xs, {1}), view(x_copy, {1})});
    c.region(copy, {rows * n}, {view(gs, {1}), view(g_copy, {1})});
    c.region(copy, {rows}, {view(starts, {1}), view(start_copy, {1})});
    c.region(kernel, {rows, n},
             {view(x_copy, {n, 1}), view(g_copy, {n, 1}), view(start_copy, {1, 0}), view(over_x, {n, 1}),
              view(over_g, {n, 1}), view(over_start, {1, 0}), view(outputs[3], {1, 0})},
             1);
    c.region(copy, {rows * n}, {view(over_x, {1}), view(outputs[0], {1})});
    c.region(copy, {rows * n}, {view(over_g, {1}), view(outputs[1], {1})});
    c.region(copy, {rows}, {view(over_start, {1}), view(outputs[2], {1})});
    c.check(tolerance(n));
  }
}

}  // namespace
}  // namespace caldera::testing
