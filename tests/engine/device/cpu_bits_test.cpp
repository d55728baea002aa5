// Products and sums on the CPU have the same bits whatever a kernel computes besides: what a training step
// keeps for its backward pass decides what is computed together, and must not change a loss.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "ops/ops.h"

namespace caldera::testing {
namespace {

using Values = std::vector<double>;

Values values_of(const LazyTensor& x) { return astype(x, DType::f64).to_vector<double>(); }

TEST(CpuProducts, HaveTheSameBitsWithAnEpilogue) {
  // Rows that share out among threads or do not, tiles that cut them unevenly, short and long sums.
  const std::vector<std::array<std::int64_t, 3>> sizes{{512, 688, 256}, {512, 256, 16}, {1024, 1024, 128},
                                                       {301, 700, 96},  {97, 2048, 64}, {40, 64, 64},
                                                       {7, 33, 500}};
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const auto& [m, n, k] : sizes) {
      SCOPED_TRACE(::testing::Message() << name(dtype) << " " << m << " " << n << " " << k);
      const LazyTensor x = astype(random_normal({m, k}, 1), dtype),
                       w = astype(random_normal({k, n}, 2), dtype);
      eval({x, w});
      const auto product = [&] { return matmul(x + 0.0, w); };  // of its own each time
      const LazyTensor plain = product(), stored = product(), inside = product();
      eval({plain});
      LazyTensor doubled = stored * 2.0;
      eval({stored, doubled});
      EXPECT_EQ(values_of(stored), values_of(plain));
      doubled = inside * 2.0;
      eval({doubled});
      Values expected = values_of(plain);
      for (double& value : expected) value *= 2;
      EXPECT_EQ(values_of(doubled), expected);
    }
  }
}

/// Sums of x y, alone and beside `others` further results of the same kernel.
Values sums_beside(const LazyTensor& x, const LazyTensor& y, int axis, int others) {
  const LazyTensor product = x * y;
  std::vector<LazyTensor> all{sum(product, {axis}, true)};
  for (int i = 0; i < others; ++i) all.push_back(sin(product + (0.5 * i)) * (all[0] + 1.0));
  eval(all);
  return values_of(all[0]);
}

TEST(CpuReductions, HaveTheSameBitsBesideOtherResults) {
  // A kernel with more values has smaller tiles: rows of one tile and of several, and what is left of one.
  for (const std::int64_t length : {200, 600, 1024, 2048, 5000}) {
    const LazyTensor x = random_normal({3, length}, 1), y = random_normal({3, length}, 2);
    for (const int others : {3, 7})
      EXPECT_EQ(sums_beside(x, y, 1, others), sums_beside(x, y, 1, 0)) << length << " " << others;
  }
}

TEST(CpuReductions, HaveTheSameBitsOverColumns) {
  // What is summed is computed in one kernel by a few instructions, and in the other by many: the tiles
  // differ.
  for (const std::int64_t width : {3, 40, 64, 65, 100, 300}) {
    const LazyTensor x = random_normal({333, width}, 1);
    LazyTensor raised =
        sqrt(abs(sin(x) * cos(x) * exp(x) * tanh(x) * (x + 2.0) * (x - 3.0) * log(abs(x)) * x));
    const Values together = values_of(sum(raised, {0}));
    eval({raised});
    EXPECT_EQ(together, values_of(sum(raised, {0}))) << width;
  }
}

}  // namespace
}  // namespace caldera::testing
