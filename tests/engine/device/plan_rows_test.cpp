// Row kernels of hand-built plans against the reference: what they compute, whatever the rows look like.
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/plans/row_kernels.h"

namespace caldera::testing {
namespace {

class PlanRows : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  bool supports(DType type) const { return shared_backend(GetParam()).supports(type); }
  Tolerance tolerance(std::int64_t length) const { return row_tolerance(GetParam(), length); }
};
INSTANTIATE_TEST_SUITE_P(Devices, PlanRows, ::testing::ValuesIn(tested_devices()), device_test_name);

constexpr DType kF32 = DType::f32;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kQuietNan = std::numeric_limits<double>::quiet_NaN();

struct Extents {
  std::int64_t rows, length;
};

/// Every length with every number of rows, up to 150,000 elements.
std::vector<Extents> all_extents() {
  std::vector<Extents> all;
  for (std::int64_t length : {1, 7, 33, 64, 1000, 1025, 5000, 20000})
    for (std::int64_t rows : {1, 3, 33, 700})
      if (rows * length <= 150000) all.push_back({rows, length});
  return all;
}

std::string text_of(Extents e) { return std::to_string(e.rows) + " rows of " + std::to_string(e.length); }

TEST_P(PlanRows, SoftmaxOfEverySize) {
  for (const Extents e : all_extents()) {
    SCOPED_TRACE(text_of(e));
    PlanCase c(GetParam());
    const int x = c.input(kF32, e.rows * e.length);
    const int y = c.output(kF32, e.rows * e.length);
    c.region(softmax_kernel(kF32), {e.rows, e.length}, {view(x, {e.length, 1}), view(y, {e.length, 1})}, 1);
    c.check(tolerance(e.length));
  }
}

TEST_P(PlanRows, LogSoftmaxOfEverySize) {
  for (const Extents e : all_extents()) {
    SCOPED_TRACE(text_of(e));
    PlanCase c(GetParam());
    const int x = c.input(kF32, e.rows * e.length);
    const int y = c.output(kF32, e.rows * e.length);
    c.region(log_softmax_kernel(), {e.rows, e.length}, {view(x, {e.length, 1}), view(y, {e.length, 1})}, 1);
    c.check({tolerance(e.length).relative, 1e-5});
  }
}

TEST_P(PlanRows, LayerNormOfEverySize) {
  for (const Extents e : all_extents()) {
    SCOPED_TRACE(text_of(e));
    PlanCase c(GetParam());
    const int x = c.input(kF32, e.rows * e.length);
    const int weight = c.input(kF32, e.length);
    const int bias = c.input(kF32, e.length);
    const int y = c.output(kF32, e.rows * e.length);
    c.scalar(kF32, floating(1 / static_cast<double>(e.length)));
    c.scalar(kF32, floating(1e-3));
    c.region(layer_norm_kernel(), {e.rows, e.length},
             {view(x, {e.length, 1}), view(weight, {0, 1}), view(bias, {0, 1}), view(y, {e.length, 1})}, 1);
    // A row of one element has no variance: what x - mean leaves is scaled by 32.
    c.check({tolerance(e.length).relative, 1e-4});
  }
}

TEST_P(PlanRows, RmsNormWithItsScaleForEachRow) {
  for (const Extents e : all_extents()) {
    SCOPED_TRACE(text_of(e));
    PlanCase c(GetParam());
    const int x = c.input(kF32, e.rows * e.length);
    const int weight = c.input(kF32, e.length);
    const int y = c.output(kF32, e.rows * e.length);
    const int scale = c.output(kF32, e.rows);
    c.scalar(kF32, floating(1 / static_cast<double>(e.length)));
    c.scalar(kF32, floating(1e-6));
    c.region(rms_norm_kernel(kF32), {e.rows, e.length},
             {view(x, {e.length, 1}), view(weight, {0, 1}), view(y, {e.length, 1}), view(scale, {1, 0})}, 1);
    c.check(tolerance(e.length));
  }
}

/// y * (g - sum(y g)) with y = softmax(x): three reductions, each of which needs the one before.
TEST_P(PlanRows, ThreePhases) {
  KernelBuilder b("softmax_and_gradient");
  const auto x = b.load(kF32);
  const auto g = b.load(kF32);
  const auto raised = b.op(ScalarOp::exp, b.op(ScalarOp::sub, x, b.op(ScalarOp::row_maximum, x)));
  const auto y = b.op(ScalarOp::div, raised, b.op(ScalarOp::row_sum, raised));
  const auto dot = b.op(ScalarOp::row_sum, b.op(ScalarOp::mul, y, g));
  const auto kernel =
      b.store(b.op(ScalarOp::mul, y, b.op(ScalarOp::sub, g, dot))).store(y).store(dot).finish();
  for (const Extents e : all_extents()) {
    SCOPED_TRACE(text_of(e));
    PlanCase c(GetParam());
    const std::int64_t count = e.rows * e.length;
    const int xs = c.input(kF32, count);
    const int gs = c.input(kF32, count);
    const int dx = c.output(kF32, count);
    const int ys = c.output(kF32, count);
    const int dots = c.output(kF32, e.rows);
    const std::initializer_list<std::int64_t> dense{e.length, 1};
    c.region(kernel, {e.rows, e.length},
             {view(xs, dense), view(gs, dense), view(dx, dense), view(ys, dense), view(dots, {1, 0})}, 1);
    c.check({tolerance(e.length).relative, 2e-5});
  }
}

/// The place of the largest element, whether each element is one of the largest, the range, all in one pass
/// or two; outputs of four types.
TEST_P(PlanRows, OutputsOfSeveralTypes) {
  KernelBuilder b("argmax");
  const auto x = b.load(kF32);
  const auto none = b.scalar(DType::i32);
  const auto most = b.op(ScalarOp::row_maximum, x);
  const auto least = b.op(ScalarOp::row_minimum, x);
  const auto is_most = b.op(ScalarOp::equal, x, most);
  const auto place = b.op(ScalarOp::row_maximum, b.op(ScalarOp::select, is_most, b.index(), none));
  const auto kernel = b.store(is_most)
                          .store(place)
                          .store(b.op(ScalarOp::sub, most, least))
                          .store(b.cast(is_most, DType::u8))
                          .store(x, DType::i32)
                          .store(place, kF32)
                          .finish();
  for (const Extents e :
       {Extents{1, 1}, Extents{33, 7}, Extents{700, 33}, Extents{3, 1025}, Extents{2, 20000}}) {
    SCOPED_TRACE(text_of(e));
    PlanCase c(GetParam());
    const std::int64_t count = e.rows * e.length;
    const int xs = c.input(kF32, count, {-90, 90});
    const int is_most_out = c.output(DType::boolean, count);
    const int place_out = c.output(DType::i32, e.rows);
    const int range = c.output(kF32, e.rows);
    const int bytes = c.output(DType::u8, count);
    const int whole = c.output(DType::i32, count);
    const int place_real = c.output(kF32, e.rows);
    c.scalar(DType::i32, integer(-1));
    c.region(kernel, {e.rows, e.length},
             {view(xs, {e.length, 1}), view(-1, {0, 1}), view(is_most_out, {e.length, 1}),
              view(place_out, {1, 0}), view(range, {1, 0}), view(bytes, {e.length, 1}),
              view(whole, {e.length, 1}), view(place_real, {1, 0})},
             1);
    c.check();
  }
}

TEST_P(PlanRows, EveryReductionOfEveryType) {
  for (DType type : {DType::u8, DType::i32, DType::i64, DType::f32, DType::f64}) {
    if (!supports(type)) continue;
    for (const CombineFacts& combine : kCombines) {
      if (!accepts(combine.combine, type)) continue;
      const ScalarOp op = combine.row;
      KernelBuilder b("reduce_row");
      const auto x = b.load(type);
      const auto all = b.op(op, x);
      const auto kernel = b.store(all).store(b.op(ScalarOp::add, x, all)).finish();
      const bool product = op == ScalarOp::row_product;
      for (const Extents e :
           {Extents{1, 1}, Extents{3, 7}, Extents{33, 33}, Extents{2, 1025}, Extents{700, 5}}) {
        SCOPED_TRACE(std::string(name(type)) + " " + std::string(info(op).name) + ", " + text_of(e));
        PlanCase c(GetParam());
        const int in = c.input(type, e.rows * e.length, product ? Range{0.99, 1.01} : Range{0.5, 1.5});
        const int out = c.output(type, e.rows);
        const int sum = c.output(type, e.rows * e.length);
        c.region(kernel, {e.rows, e.length},
                 {view(in, {e.length, 1}), view(out, {1, 0}), view(sum, {e.length, 1})}, 1);
        const double ulp = type == DType::f64 ? 2.3e-16 : 1.2e-7;
        const double steps = product ? static_cast<double>(e.length) : 10;
        c.check({op == ScalarOp::row_maximum || op == ScalarOp::row_minimum ? ulp : ulp * steps, 0});
      }
    }
  }
}

TEST_P(PlanRows, WideFloats) {
  if (!supports(DType::f64)) GTEST_SKIP() << "no kernels on float64";
  for (const Extents e : {Extents{1, 1}, Extents{33, 7}, Extents{3, 1025}, Extents{2, 5000}}) {
    SCOPED_TRACE(text_of(e));
    PlanCase c(GetParam());
    const int x = c.input(DType::f64, e.rows * e.length);
    const int weight = c.input(DType::f64, e.length);
    const int y = c.output(DType::f64, e.rows * e.length);
    const int scale = c.output(DType::f64, e.rows);
    c.scalar(DType::f64, floating(1 / static_cast<double>(e.length)));
    c.scalar(DType::f64, floating(1e-6));
    c.region(rms_norm_kernel(DType::f64), {e.rows, e.length},
             {view(x, {e.length, 1}), view(weight, {0, 1}), view(y, {e.length, 1}), view(scale, {1, 0})}, 1);
    c.check({1e-13, 0});
  }
}

TEST_P(PlanRows, NanStaysInItsRow) {
  KernelBuilder b("extremes");
  const auto x = b.load(kF32);
  const auto kernel = b.store(b.op(ScalarOp::row_maximum, x))
                          .store(b.op(ScalarOp::row_minimum, x))
                          .store(b.op(ScalarOp::row_sum, x))
                          .store(b.op(ScalarOp::mul, x, b.op(ScalarOp::row_maximum, x)))
                          .finish();
  for (std::int64_t length : {1, 7, 64, 1025, 5000}) {
    SCOPED_TRACE(length);
    const std::int64_t rows = 9;
    PlanCase c(GetParam());
    const int in = c.input(kF32, rows * length, {0.5, 1.5});
    for (std::int64_t row = 0; row < rows; row += 2)
      c.set(in, row * length + (37 * row) % length, floating(kQuietNan));
    const int most = c.output(kF32, rows);
    const int least = c.output(kF32, rows);
    const int sum = c.output(kF32, rows);
    const int scaled = c.output(kF32, rows * length);
    const int probability = c.output(kF32, rows * length);
    c.region(kernel, {rows, length},
             {view(in, {length, 1}), view(most, {1, 0}), view(least, {1, 0}), view(sum, {1, 0}),
              view(scaled, {length, 1})},
             1);
    c.region(softmax_kernel(kF32), {rows, length}, {view(in, {length, 1}), view(probability, {length, 1})},
             1);
    c.check(tolerance(length));
  }
}

/// -inf is what masks leave. A row of nothing else has no softmax.
TEST_P(PlanRows, MaskedRows) {
  for (std::int64_t length : {1, 7, 64, 1025}) {
    SCOPED_TRACE(length);
    const std::int64_t rows = 12;
    PlanCase c(GetParam());
    const int in = c.input(kF32, rows * length);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t j = 0; j < length; ++j)
        if (row == 5 || (row % 3 == 1 && j % 4 != 2) || (row % 3 == 2 && j > row))
          c.set(in, row * length + j, floating(-kInfinity));
    const int y = c.output(kF32, rows * length);
    const int logs = c.output(kF32, rows * length);
    c.region(softmax_kernel(kF32), {rows, length}, {view(in, {length, 1}), view(y, {length, 1})}, 1);
    c.region(log_softmax_kernel(), {rows, length}, {view(in, {length, 1}), view(logs, {length, 1})}, 1);
    c.check({tolerance(length).relative, 1e-5});
  }
}

TEST_P(PlanRows, LargeElementsDoNotOverflow) {
  for (std::int64_t length : {7, 1025}) {
    PlanCase c(GetParam());
    const int in = c.input(kF32, 33 * length, {-3e4, 3e4, true});
    const int y = c.output(kF32, 33 * length);
    const int logs = c.output(kF32, 33 * length);
    c.region(softmax_kernel(kF32), {33, length}, {view(in, {length, 1}), view(y, {length, 1})}, 1);
    c.region(log_softmax_kernel(), {33, length}, {view(in, {length, 1}), view(logs, {length, 1})}, 1);
    c.check({tolerance(length).relative, 1e-5});
  }
}

/// Dropout on a softmax: the causal mask and the random numbers come from coordinates.
TEST_P(PlanRows, CoordinatesAndRandomNumbers) {
  KernelBuilder b("causal_dropout");
  const auto seed = b.scalar(DType::i64);
  const auto blank = b.scalar(kF32);
  const auto keep = b.scalar(kF32);
  const auto x = b.load(kF32);
  const auto column = b.index();
  const auto ahead = b.op(ScalarOp::greater, column, b.index());
  const auto masked = b.op(ScalarOp::select, ahead, blank, x);
  const auto e = b.op(ScalarOp::exp, b.op(ScalarOp::sub, masked, b.op(ScalarOp::row_maximum, masked)));
  const auto y = b.op(ScalarOp::div, e, b.op(ScalarOp::row_sum, e));
  const auto dice = b.philox(ScalarOp::philox_uniform, kF32, seed, b.index());
  const auto kept = b.cast(b.op(ScalarOp::less, dice, keep), kF32);
  const auto kernel = b.store(b.op(ScalarOp::mul, y, kept)).finish();
  for (std::int64_t n : {1, 7, 64, 130}) {
    SCOPED_TRACE(n);
    PlanCase c(GetParam());
    const int in = c.input(kF32, 3 * n * n);
    const int out = c.output(kF32, 3 * n * n);
    c.scalar(DType::i64, integer(0x123456789abcdef));
    c.scalar(kF32, floating(-kInfinity));
    c.scalar(kF32, floating(0.75));
    c.region(kernel, {3, n, n},
             {view(in, {n * n, n, 1}), view(-1, {0, 0, 1}), view(-1, {0, 1, 0}), view(-1, {n * n, n, 1}, 5),
              view(out, {n * n, n, 1})},
             1);
    c.check(tolerance(n));
  }
}

TEST_P(PlanRows, EmptyRowsAndNoRows) {
  KernelBuilder b("all");
  const auto x = b.load(kF32);
  const auto start = b.load_row(kF32);
  const auto kernel = b.store(b.op(ScalarOp::add, start, b.op(ScalarOp::row_sum, x)))
                          .store(b.op(ScalarOp::row_maximum, x))
                          .store(b.op(ScalarOp::row_minimum, x))
                          .store(b.op(ScalarOp::row_product, x))
                          .store(b.op(ScalarOp::neg, x))
                          .finish();
  for (const Extents e : {Extents{3, 0}, Extents{0, 5}, Extents{0, 0}, Extents{700, 0}}) {
    SCOPED_TRACE(text_of(e));
    PlanCase c(GetParam());
    const int in = c.input(kF32, 8);
    const int starts = c.input(kF32, 700);
    const int sum = c.output(kF32, 700);
    const int most = c.output(kF32, 700);
    const int least = c.output(kF32, 700);
    const int product = c.output(kF32, 700);
    const int points = c.output(kF32, 8);
    c.region(kernel, {e.rows, e.length},
             {view(in, {e.length, 1}), view(starts, {1, 0}), view(sum, {1, 0}), view(most, {1, 0}),
              view(least, {1, 0}), view(product, {1, 0}), view(points, {e.length, 1})},
             1);
    c.check();
  }
}

}  // namespace
}  // namespace caldera::testing
