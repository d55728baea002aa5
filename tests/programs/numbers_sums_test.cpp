// A sum is added up in the order in which it is written, also where the compiler makes one kernel of it.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class ProgramSums : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, ProgramSums, ::testing::ValuesIn(engine_setups()), engine_setup_name);

LazyTensor filled(const Shape& shape, double value) {
  return LazyTensor::full(shape, value, DType::f32, EngineTest::GetParam().device).eval();
}
void expect_all(const LazyTensor& x, float wanted) {
  for (const float value : x.to_vector<float>()) EXPECT_FLOAT_EQ(value, wanted);
}

TEST_P(ProgramSums, WhatCancelsFirstLeavesRoomForTheRest) {
  const LazyTensor ones = filled({3, 1}, 1), high = filled({1, 5}, 3e38), low = filled({5}, -3e38);
  expect_all(matmul(ones, high) + low + matmul(ones, high), 3e38F);
}

TEST_P(ProgramSums, WhatCancelsFirstKeepsSmallNumbers) {
  const LazyTensor ones = filled({3, 1}, 1), large = filled({1, 5}, 1e9), small = filled({1, 5}, 0.25);
  const LazyTensor offset = filled({5}, -1e9);
  expect_all(matmul(ones, large) + offset + matmul(ones, small), 0.25F);
  expect_all((matmul(ones, large) - matmul(ones, large)) + matmul(ones, small), 0.25F);
}

TEST_P(ProgramSums, BracketsAroundProductsHold) {
  const LazyTensor ones = filled({2, 1}, 1), up = filled({1, 2}, 2.5e38), down = filled({1, 2}, -2.5e38);
  const auto product = [&](const LazyTensor& x) { return matmul(ones, x); };
  expect_all((product(up) + product(down)) + (product(down) + product(up)), 0);
}

TEST_P(ProgramSums, GradientsOfOverlappingSlicesAreAddedAsTheyArise) {
  // Each element of x is read by up to three windows; the cotangents of two of them cancel.
  const LazyTensor x = filled({6}, 1);
  const LazyTensor loss =
      sum(slice(x, 0, 0, 4) * 3e38) - sum(slice(x, 0, 1, 5) * 3e38) + sum(slice(x, 0, 2, 6) * 2.0);
  for (const float g : grad(loss, x).to_vector<float>()) EXPECT_TRUE(std::isfinite(g)) << g;
}

}  // namespace
}  // namespace caldera::testing
