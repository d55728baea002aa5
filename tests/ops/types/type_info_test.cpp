// What types hold, against the C++ types, and what they become beside each other.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/caldera.h"

namespace caldera {
namespace {

template <class T>
void expect_like(const FloatInfo& info) {
  using Limits = std::numeric_limits<T>;
  EXPECT_EQ(info.bits, static_cast<int>(8 * sizeof(T)));
  EXPECT_EQ(info.eps, static_cast<double>(Limits::epsilon()));
  EXPECT_EQ(info.max, static_cast<double>(Limits::max()));
  EXPECT_EQ(info.min, static_cast<double>(Limits::lowest()));
  EXPECT_EQ(info.smallest_normal, static_cast<double>(Limits::min()));
}

TEST(TypeInfo, OfFloatingTypes) {
  expect_like<float>(finfo(DType::f32));
  expect_like<double>(finfo(DType::f64));
  const FloatInfo half = finfo(DType::f16);
  EXPECT_EQ(half.bits, 16);
  EXPECT_EQ(half.max, 65504);
  EXPECT_EQ(half.min, -65504);
  EXPECT_EQ(half.eps, std::ldexp(1, -10));
  EXPECT_EQ(half.smallest_normal, std::ldexp(1, -14));
  const FloatInfo brain = finfo(DType::bf16);
  EXPECT_EQ(brain.max, static_cast<double>(to_float(BFloat16{0x7f7f})));
  EXPECT_EQ(brain.eps, static_cast<double>(to_float(BFloat16{0x3f81})) - 1);
  EXPECT_EQ(brain.smallest_normal, static_cast<double>(std::numeric_limits<float>::min()));
  EXPECT_THROW(finfo(DType::i32), DTypeError);
}

TEST(TypeInfo, OfIntegers) {
  EXPECT_EQ(iinfo(DType::u8).max, 255);
  EXPECT_EQ(iinfo(DType::u8).min, 0);
  EXPECT_EQ(iinfo(DType::i32).max, std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(iinfo(DType::i32).min, std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(iinfo(DType::i64).max, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(iinfo(DType::i64).min, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(iinfo(DType::i64).bits, 64);
  EXPECT_THROW(iinfo(DType::boolean), DTypeError);
  EXPECT_THROW(iinfo(DType::f16), DTypeError);
}

TEST(TypeInfo, KindsContainTheirTypes) {
  EXPECT_TRUE(isdtype(DType::boolean, TypeKind::boolean));
  EXPECT_FALSE(isdtype(DType::boolean, TypeKind::numeric));
  EXPECT_TRUE(isdtype(DType::u8, TypeKind::unsigned_integer));
  EXPECT_FALSE(isdtype(DType::u8, TypeKind::signed_integer));
  EXPECT_TRUE(isdtype(DType::i64, TypeKind::signed_integer));
  EXPECT_TRUE(isdtype(DType::i64, TypeKind::integral));
  EXPECT_TRUE(isdtype(DType::bf16, TypeKind::real_floating));
  EXPECT_TRUE(isdtype(DType::bf16, TypeKind::numeric));
  EXPECT_FALSE(isdtype(DType::f64, TypeKind::integral));
}

TEST(TypeInfo, ResultsAreWhatOperationsGive) {
  for (const DType a : kAllDTypes) {
    const LazyTensor x = LazyTensor::ones({2}, a);
    for (const DType b : kAllDTypes) {
      const LazyTensor y = LazyTensor::ones({2}, b);
      EXPECT_EQ(result_type({a, b}), promote(a, b));
      EXPECT_EQ(result_type(x, y), concatenate({x, y}).dtype());
      EXPECT_EQ(can_cast(a, b), concatenate({x, y}).dtype() == b);
    }
    // Numbers give way to tensors of their kind.
    EXPECT_EQ(result_type(x, 1), (x * 1).dtype()) << name(a);
    if (a != DType::boolean) {
      EXPECT_EQ(result_type(0.5, x), (0.5 * x).dtype()) << name(a);
    }
  }
  EXPECT_EQ(result_type({DType::u8, DType::i32, DType::f16}), DType::f16);
  EXPECT_TRUE(can_cast(LazyTensor::ones({2}, DType::u8), DType::i64));
  EXPECT_THROW(result_type({}), ValueError);
}

}  // namespace
}  // namespace caldera
