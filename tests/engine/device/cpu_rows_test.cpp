// Regions on the CPU at the sizes where its way of working changes: whole tiles and one element beside them,
// rows of several tiles, rows that threads share, operands that repeat from run to run.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/cpu_threads.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/plans/row_kernels.h"

namespace caldera::testing {
namespace {

constexpr DType kF = DType::f32;

/// Sets the number of threads for a test.
class Threads {
 public:
  explicit Threads(int count) { set_cpu_threads(count); }
  ~Threads() { set_cpu_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_ = cpu_threads();
};

/// y = g * softmax(x), with the softmax, its logarithm and what these are made of: four values wait for the
/// row's sum.
std::shared_ptr<const Kernel> waiting_kernel() {
  KernelBuilder b("waiting");
  const auto x = b.load(kF);
  const auto g = b.load(kF);
  const auto centred = b.op(ScalarOp::sub, x, b.op(ScalarOp::row_maximum, x));
  const auto raised = b.op(ScalarOp::exp, centred);
  const auto weighted = b.op(ScalarOp::mul, raised, g);
  const auto root = b.op(ScalarOp::sqrt, raised);
  const auto sum = b.op(ScalarOp::row_sum, raised);
  return b.store(b.op(ScalarOp::div, weighted, sum))
      .store(b.op(ScalarOp::div, raised, sum))
      .store(b.op(ScalarOp::sub, centred, b.op(ScalarOp::log, sum)))
      .store(b.op(ScalarOp::mul, root, sum))
      .store(sum)
      .finish();
}

PlanCase waiting_case(std::int64_t rows, std::int64_t length) {
  PlanCase c(Device::cpu());
  const int x = c.input(kF, rows * length);
  const int g = c.input(kF, rows * length);
  std::vector<Operand> operands{view(x, {length, 1}), view(g, {length, 1})};
  for (int o = 0; o < 4; ++o) operands.push_back(view(c.output(kF, rows * length), {length, 1}));
  operands.push_back(view(c.output(kF, rows), {1, 0}));
  c.region(waiting_kernel(), {rows, length}, operands, 1);
  return c;
}

TEST(CpuRows, AroundWholeTiles) {
  for (std::int64_t tile : {256, 512, 1024})
    for (std::int64_t length : {tile / 2, tile / 2 + 1, tile - 1, tile, tile + 1, 2 * tile, 2 * tile + 1})
      for (std::int64_t rows : {1, 2, 5}) {
        SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(length));
        waiting_case(rows, length).check({1e-5, 1e-5});
      }
}

TEST(CpuRows, ShorterThanAVector) {
  for (std::int64_t length = 1; length < 40; ++length) {
    SCOPED_TRACE(length);
    waiting_case(301, length).check({1e-5, 1e-5});
  }
}

// 60000: what waits for the sum is too much to be kept. 65536: one part of a sum. 65537, 200001: several.
TEST(CpuRows, LongRows) {
  for (std::int64_t length : {60000, 65536, 65537, 200001})
    for (std::int64_t rows : {1, 5}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(length));
      waiting_case(rows, length).check({1e-5, 1e-5});
    }
}

TEST(CpuRows, AreBitIdenticalForAnyNumberOfThreads) {
  for (const auto& [rows, length] : {std::pair<std::int64_t, std::int64_t>{1, 300001},
                                     {3, 70000},
                                     {9, 70000},
                                     {40, 5000},
                                     {3000, 64},
                                     {300, 1000}}) {
    SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(length));
    const PlanCase c = waiting_case(rows, length);
    const Threads one_thread(1);
    const auto one = c.run_on_device();
    for (int threads : {2, 3, 4}) {
      set_cpu_threads(threads);
      EXPECT_EQ(c.run_on_device(), one) << threads << " threads";
    }
  }
}

/// x * row + column * scalar + offset(row): operands that are one a row, or repeat from row to row.
TEST(CpuRows, ElementwiseOperandsThatRepeat) {
  KernelBuilder b("repeat");
  const auto x = b.load(kF);
  const auto row = b.load(kF);
  const auto column = b.load(kF);
  const auto scalar = b.scalar(kF);
  const auto less = b.op(ScalarOp::less, row, b.op(ScalarOp::mul, column, scalar));
  const auto sum = b.op(ScalarOp::add, b.op(ScalarOp::mul, x, b.op(ScalarOp::exp, row)),
                        b.op(ScalarOp::mul, column, scalar));
  const auto kernel = b.store(b.op(ScalarOp::select, less, sum, row)).store(less).finish();
  for (std::int64_t rows : {1, 3, 700})
    for (std::int64_t columns : {1, 2, 7, 16, 100, 255, 256, 257, 1025}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
      for (int threads : {1, 2}) {
        const Threads set(threads);
        PlanCase c(Device::cpu());
        const int xs = c.input(kF, rows * columns);
        const int row_values = c.input(kF, rows);
        const int column_values = c.input(kF, columns);
        const int z = c.output(kF, rows * columns);
        const int flags = c.output(DType::boolean, rows * columns);
        const int transposed = c.output(kF, rows * columns);
        const int turned = c.output(DType::boolean, rows * columns);
        c.scalar(kF, {0.75, 0});
        c.region(kernel, {rows, columns},
                 {view(xs, {columns, 1}), view(row_values, {1, 0}), view(column_values, {0, 1}),
                  view(z, {columns, 1}), view(flags, {columns, 1})});
        c.region(kernel, {columns, rows},
                 {view(xs, {1, columns}), view(row_values, {0, 1}), view(column_values, {1, 0}),
                  view(transposed, {rows, 1}), view(turned, {rows, 1})});
        c.check({1e-5, 1e-5});
      }
    }
}

/// Sums over the outer dimension, of a product with a value a row: the gradient of a norm's weight.
TEST(CpuRows, ColumnSumsOfScaledRows) {
  auto k = std::make_shared<Kernel>();
  k->name = "sum(mul)";
  k->inputs = {kF, kF, kF};
  k->code = {{ScalarOp::load, kF, 0, 0, 0},
             {ScalarOp::load, kF, 1, 0, 0},
             {ScalarOp::load, kF, 2, 0, 0},
             {ScalarOp::mul, kF, 0, 1, 0},
             {ScalarOp::mul, kF, 3, 2, 0}};
  k->outputs = {{4, kF}};
  k->reduce = Combine::sum;
  k->finish();
  for (std::int64_t rows : {1, 33, 500})
    for (std::int64_t columns : {5, 255, 256, 1025, 3000}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
      PlanCase c(Device::cpu());
      const int x = c.input(kF, rows * columns, {0.5, 1.5});
      const int g = c.input(kF, rows * columns, {0.5, 1.5});
      const int scale = c.input(kF, rows, {0.5, 1.5});
      const int z = c.output(kF, columns);
      c.region(k, {columns, rows},
               {view(x, {1, columns}), view(g, {1, columns}), view(scale, {0, 1}), view(z, {1, 0})}, 1);
      c.check({4e-6, 0});
    }
}

}  // namespace
}  // namespace caldera::testing
