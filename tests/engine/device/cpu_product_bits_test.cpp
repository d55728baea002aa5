// A product on the CPU has the same bits with an epilogue and without one: what a training step keeps for its
// backward pass decides what is computed with a product, and must not change a loss.
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

}  // namespace
}  // namespace caldera::testing
