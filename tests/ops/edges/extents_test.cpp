// Shapes that no memory can hold are refused by the call that asks for them, with the operation's name.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace caldera {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 62;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

struct Row {
  std::string op;
  std::function<LazyTensor()> build;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows{
      {"zeros", [] { return LazyTensor::zeros({kHuge}); }},
      {"zeros", [] { return LazyTensor::zeros({-1}); }},
      {"zeros",
       [] {
         return LazyTensor::zeros({std::int64_t{1} << 40, std::int64_t{1} << 40});
       }},
      {"add",
       [] {
         const std::int64_t side = std::int64_t{1} << 31;
         return LazyTensor::zeros({side, 1}) + LazyTensor::zeros({1, side});
       }},
      {"iota",
       [] {
         return one_hot(LazyTensor::from_vector<std::int32_t>({0, 1}, {2}), kHuge);
       }},
      {"pad", [] { return pad(LazyTensor::zeros({4}), {kMost}, {1}); }},
      {"pad", [] { return pad(LazyTensor::zeros({4}), {0}, {0}, 0, {kHuge}); }},
      {"concatenate",
       [] {
         const LazyTensor half = LazyTensor::zeros({std::int64_t{1} << 60});
         return concatenate({half, half}, 0);
       }},
      {"zeros",
       [] {
         return LazyTensor::zeros({0, std::int64_t{1} << 40, std::int64_t{1} << 40});
       }},
      {"reshape",
       [] {
         return reshape(LazyTensor::zeros({4}), {kHuge, kHuge});
       }},
      {"reshape",
       [] {
         return reshape(LazyTensor::zeros({4}), {kHuge, -1, 4});
       }},
      {"reshape",
       [] {
         return reshape(LazyTensor::zeros({0}), {0, -1});
       }},
      {"matmul",
       [] {
         const std::int64_t side = std::int64_t{1} << 31;
         return matmul(LazyTensor::zeros({side, 1}), LazyTensor::zeros({1, side}));
       }},
      {"count_nonzero",
       [] {
         return count_nonzero(broadcast_to(LazyTensor::ones({1}), {1 << 16, 1 << 16}));
       }},
  };
  return kRows;
}

TEST(Extents, WhatCannotBeAddressedIsRefusedAtTheCall) {
  for (const Row& row : rows()) {
    try {
      const LazyTensor built = row.build();
      ADD_FAILURE() << row.op << " gave " << built.to_string();
    } catch (const ShapeError& error) {
      EXPECT_NE(std::string(error.what()).find(row.op), std::string::npos) << error.what();
    }
  }
}

TEST(Extents, CountsOfRowsMayBeManyTogether) {
  const LazyTensor x = broadcast_to(LazyTensor::ones({1}), {1 << 16, 1 << 16});
  EXPECT_EQ(count_nonzero(x, 0).shape(), (Shape{1 << 16}));
  EXPECT_EQ(any(x).dtype(), DType::boolean);
}

TEST(Extents, EmptyIsNotTooLarge) {
  const LazyTensor x = LazyTensor::zeros({std::int64_t{1} << 20, 0, std::int64_t{1} << 20});
  EXPECT_EQ(x.numel(), 0);
  EXPECT_TRUE(x.to_vector<float>().empty());
}

TEST(Extents, AnyIntegerIsAScalar) {
  const LazyTensor x = LazyTensor::from_vector<std::int32_t>({1, 2}, {2});
  EXPECT_EQ((x * std::int64_t{3}).to_vector<std::int32_t>(), (std::vector<std::int32_t>{3, 6}));
  EXPECT_EQ((x + std::size_t{1}).dtype(), DType::i32);
}

}  // namespace
}  // namespace caldera
