// Promotion of dtypes, C++ numbers as operands, and the dtypes of results. Nothing here is evaluated.
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <type_traits>

#include "engine/graph/scalar_op.h"
#include "ops/ops.h"

namespace caldera::testing {
namespace {

constexpr const auto& kTypes = kAllDTypes;

LazyTensor of(DType type) { return LazyTensor::zeros(Shape{2}, type, Device::cpu()); }

int width(DType type) { return static_cast<int>(size_of(type)); }

/// The integers' table of the Python Array API standard 2023.12 ("Type Promotion Rules"), row by row.
struct Pair {
  DType a, b, both;
};
constexpr DType U1 = DType::u8, U4 = DType::u32, S1 = DType::i8, S2 = DType::i16, S4 = DType::i32,
                S8 = DType::i64;
constexpr Pair kStandard[] = {
    // signed with signed
    {S1, S1, S1},
    {S1, S2, S2},
    {S1, S4, S4},
    {S1, S8, S8},
    {S2, S2, S2},
    {S2, S4, S4},
    {S2, S8, S8},
    {S4, S4, S4},
    {S4, S8, S8},
    {S8, S8, S8},
    // unsigned with unsigned
    {U1, U1, U1},
    {U1, U4, U4},
    {U4, U4, U4},
    // signed with unsigned
    {S1, U1, S2},
    {S1, U4, S8},
    {S2, U1, S2},
    {S2, U4, S8},
    {S4, U1, S4},
    {S4, U4, S8},
    {S8, U1, S8},
    {S8, U4, S8},
};

/// Beyond the standard, as PyTorch: floating wins over integers whatever the widths, and float16 with
/// bfloat16 meets in float32.
DType expected(DType a, DType b) {
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (!is_floating(a)) {
    for (const Pair& pair : kStandard) {
      if ((pair.a == a && pair.b == b) || (pair.a == b && pair.b == a)) return pair.both;
    }
    throw std::logic_error("not in the table");
  }
  if (a != b && width(a) == 2 && width(b) == 2) return DType::f32;
  return width(a) > width(b) ? a : b;
}

TEST(Types, FactsAreThoseOfTheCppTypes) {
  const auto check = [](auto element, std::string_view spelled) {
    using T = decltype(element);
    const DType type = dtype_of<T>();
    const TypeFacts& found = facts(type);
    EXPECT_EQ(found.name, spelled);
    EXPECT_EQ(size_of(type), sizeof(T)) << spelled;
    constexpr bool integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
    EXPECT_EQ(is_unsigned(type), integer && std::is_unsigned_v<T>) << spelled;
    EXPECT_EQ(is_floating(type), std::is_floating_point_v<T>) << spelled;
    EXPECT_EQ(is_integral(type), integer) << spelled;
    EXPECT_EQ(found.digits, std::is_floating_point_v<T> ? std::numeric_limits<T>::digits : 0) << spelled;
    if constexpr (std::is_integral_v<T>) {
      EXPECT_EQ(found.lowest, static_cast<std::int64_t>(std::numeric_limits<T>::lowest())) << spelled;
      EXPECT_EQ(found.highest, static_cast<std::int64_t>(std::numeric_limits<T>::max())) << spelled;
    }
  };
  check(bool{}, "bool");
  check(std::uint8_t{}, "uint8");
  check(std::uint32_t{}, "uint32");
  check(std::int8_t{}, "int8");
  check(std::int16_t{}, "int16");
  check(std::int32_t{}, "int32");
  check(std::int64_t{}, "int64");
  check(float{}, "float32");
  check(double{}, "float64");
  EXPECT_EQ(facts(dtype_of<Half>()).name, "float16");
  EXPECT_EQ(facts(dtype_of<BFloat16>()).name, "bfloat16");
  for (const DType type : kTypes) {
    // What a type is computed in holds all of it, and is computed in itself.
    const DType computed = compute_type(type);
    EXPECT_FALSE(is_memory_type(computed));
    EXPECT_EQ(is_floating(computed), is_floating(type));
    EXPECT_LE(facts(computed).lowest, facts(type).lowest);
    EXPECT_GE(facts(computed).highest, facts(type).highest);
    EXPECT_EQ(is_memory_type(type), narrowing(type) != ScalarOp::cast) << name(type);
    if (is_memory_type(type)) {
      EXPECT_EQ(narrowed_to(narrowing(type)), type);
    }
  }
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
    const bool small = type == DType::boolean || type == DType::u8 || type == DType::i8 || type == DType::i16;
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
