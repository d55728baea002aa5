// Promotion of dtypes, C++ numbers as operands, and the dtypes of results. Nothing here is evaluated.
#include <gtest/gtest.h>

#include "ops/ops.h"

namespace caldera::testing {
namespace {

constexpr DType kTypes[] = {DType::boolean, DType::u8,   DType::i32, DType::i64,
                            DType::f16,     DType::bf16, DType::f32, DType::f64};

LazyTensor of(DType type) { return LazyTensor::zeros(Shape{2}, type, Device::cpu()); }

int width(DType type) { return static_cast<int>(size_of(type)); }

/// The Array API's rules in words: within a kind the wider type; unsigned with signed gives a signed type
/// that holds both; boolean gives way. Beyond the standard, as PyTorch: floating wins over integers whatever
/// the widths, and float16 with bfloat16 meets in float32.
DType expected(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a) && width(a) == 2 && width(b) == 2) return DType::f32;
  return width(a) > width(b) ? a : b;
}

TEST(Promotion, TableOfAllPairs) {
  const LazyTensor condition = of(DType::boolean);
  for (const DType a : kTypes) {
    for (const DType b : kTypes) {
      SCOPED_TRACE(std::string(name(a)) + " with " + std::string(name(b)));
      const DType both = expected(a, b);
      EXPECT_EQ(promote(a, b), both);
      EXPECT_EQ(where(condition, of(a), of(b)).dtype(), both);
      EXPECT_EQ(concatenate({of(a), of(b)}).dtype(), both);
      EXPECT_EQ(equal(of(a), of(b)).dtype(), DType::boolean);
      if (both == DType::boolean) {
        EXPECT_THROW(add(of(a), of(b)), DTypeError);
        EXPECT_THROW(matmul(of(a), of(b)), DTypeError);
        continue;
      }
      EXPECT_EQ(add(of(a), of(b)).dtype(), both);
      EXPECT_EQ(matmul(of(a), of(b)).dtype(), both);
      EXPECT_EQ(less(of(a), of(b)).dtype(), DType::boolean);
      EXPECT_EQ(divide(of(a), of(b)).dtype(), is_floating(both) ? both : DType::f32) << "true division";
    }
  }
}

TEST(Promotion, NumbersTakeTheDtypeOfTheTensor) {
  for (const DType type : kTypes) {
    SCOPED_TRACE(std::string(name(type)));
    const LazyTensor x = of(type);
    const DType with_integer = type == DType::boolean ? DType::i32 : type;
    const DType with_real = is_floating(type) ? type : DType::f32;
    EXPECT_EQ((x + 1).dtype(), with_integer);
    EXPECT_EQ((1 - x).dtype(), with_integer);
    EXPECT_EQ((x * 0.5).dtype(), with_real);
    EXPECT_EQ((0.5F / x).dtype(), with_real);
    EXPECT_EQ(where(of(DType::boolean), x, 0).dtype(), with_integer);
    EXPECT_EQ(maximum(x, 0.0).dtype(), with_real);
    EXPECT_EQ((x == 1).dtype(), DType::boolean);
  }
  EXPECT_EQ((of(DType::i64) + LazyTensor(1)).dtype(), DType::i64);
  EXPECT_EQ((of(DType::f64) * LazyTensor(2.0F)).dtype(), DType::f64);
  EXPECT_EQ(LazyTensor(1).dtype(), DType::i32);
  EXPECT_EQ(LazyTensor(1.0).dtype(), DType::f32);
}

TEST(Promotion, NumbersOfFullPrecisionReachF64) {
  EXPECT_EQ((of(DType::f64) + 0.1).to_vector<double>()[0], 0.1) << "not rounded to f32 on the way";
  EXPECT_EQ((of(DType::i64) + 2147483647 + 1).to_vector<std::int64_t>()[0], 2147483648LL);
}

TEST(Promotion, ATensorOfRankZeroIsNoNumber) {
  const LazyTensor wide = LazyTensor::zeros(Shape{}, DType::f64, Device::cpu());
  EXPECT_EQ((of(DType::f32) + wide).dtype(), DType::f64);
}

TEST(Promotion, ResultsOfFamilies) {
  for (const DType type : kTypes) {
    SCOPED_TRACE(std::string(name(type)));
    const LazyTensor x = of(type);
    const bool small = type == DType::boolean || type == DType::u8;
    EXPECT_EQ(sum(x).dtype(), small ? DType::i32 : type);
    EXPECT_EQ(mean(x).dtype(), is_floating(type) ? type : DType::f32);
    EXPECT_EQ(exp(x).dtype(), is_floating(type) ? type : DType::f32);
    EXPECT_EQ(softmax(x).dtype(), is_floating(type) ? type : DType::f32);
    EXPECT_EQ(take(x, of(DType::u8)).dtype(), type);
    EXPECT_EQ(pad(x, {1}, {1}).dtype(), type);
    EXPECT_EQ(one_hot(of(DType::i32), 3, type).dtype(), type);
    if (type == DType::boolean) continue;
    EXPECT_EQ(max(x).dtype(), type);
    EXPECT_EQ(floor(x).dtype(), type);
    EXPECT_EQ(negative(x).dtype(), type);
  }
}

}  // namespace
}  // namespace caldera::testing
