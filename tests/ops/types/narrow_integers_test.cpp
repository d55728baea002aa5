// Integers that are computed in wider ones (int8, int16, uint32): every result is what the type itself would
// give.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "engine/tensor/dispatch.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

constexpr DType kNarrow[] = {DType::i8, DType::i16, DType::u32};

/// What `type` makes of a number that wraps as int64 does.
std::int64_t held_by(std::int64_t value, DType type) {
  if (type == DType::i64) return value;
  const auto bits = 8 * static_cast<int>(size_of(type));
  const std::int64_t low = value & ((std::int64_t{1} << bits) - 1);
  return low > facts(type).highest ? low - (std::int64_t{1} << bits) : low;
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/// By squaring in the type's own arithmetic: wraps as it goes.
std::int64_t power(std::int64_t base, std::int64_t exponent, DType type) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::uint64_t out = 1, square = static_cast<std::uint64_t>(base);
  for (; exponent > 0; exponent /= 2, square *= square) {
    if (exponent % 2 != 0) out *= square;
  }
  return held_by(static_cast<std::int64_t>(out), type);
}

/// All of int8's; of the others the ends, powers of 2 and what is beside them.
std::vector<std::int64_t> numbers_of(DType type) {
  const TypeFacts& limits = facts(type);
  std::vector<std::int64_t> out;
  if (type == DType::i8) {
    for (std::int64_t i = limits.lowest; i <= limits.highest; ++i) out.push_back(i);
    return out;
  }
  const auto add = [&](std::int64_t value) {
    if (value >= limits.lowest && value <= limits.highest) out.push_back(value);
  };
  for (int bit = 0; bit <= 32; ++bit) {
    for (const std::int64_t beside : {-1, 0, 1}) {
      add((std::int64_t{1} << bit) + beside);
      add(-(std::int64_t{1} << bit) + beside);
    }
  }
  add(0);
  return out;
}

LazyTensor of(const std::vector<std::int64_t>& values, DType type, const Shape& shape, Device device) {
  return dispatch<is_narrow_integer>(type, [&]<class T>() {
    return LazyTensor::from_vector(std::vector<T>(values.begin(), values.end()), shape, device);
  });
}
LazyTensor of(const std::vector<std::int64_t>& values, DType type, Device device) {
  return of(values, type, Shape{static_cast<std::int64_t>(values.size())}, device);
}

constexpr bool is_whole(DType type) { return !is_floating(type); }

std::vector<std::int64_t> read(const LazyTensor& x) {
  return dispatch<is_whole>(x.dtype(), [&]<class T>() {
    const std::vector<T> values = x.to_vector<T>();
    return std::vector<std::int64_t>(values.begin(), values.end());
  });
}

class NarrowIntegers : public OpTest {
 protected:
  std::vector<DType> types() const { return supported(kNarrow); }
};
INSTANTIATE_TEST_SUITE_P(Devices, NarrowIntegers, ::testing::ValuesIn(op_settings()), op_setting_name);

struct BinaryRow {
  const char* name;
  LazyTensor (*function)(const LazyTensor&, const LazyTensor&);
  std::int64_t (*oracle)(std::int64_t, std::int64_t, DType);
};
using I = std::int64_t;
const BinaryRow kBinary[] = {
    {"add", add, [](I a, I b, DType t) { return held_by(a + b, t); }},
    {"subtract", subtract, [](I a, I b, DType t) { return held_by(a - b, t); }},
    {"multiply", multiply,
     [](I a, I b, DType t) {
       return held_by(static_cast<I>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)), t);
     }},
    {"floor_divide", floor_divide, [](I a, I b, DType t) { return held_by(floor_quotient(a, b), t); }},
    {"remainder", remainder,
     [](I a, I b, DType t) { return b == 0 ? 0 : held_by(a - b * floor_quotient(a, b), t); }},
    {"pow", pow, power},
    {"maximum", maximum, [](I a, I b, DType) { return std::max(a, b); }},
    {"minimum", minimum, [](I a, I b, DType) { return std::min(a, b); }},
    {"equal", equal, [](I a, I b, DType) { return I{a == b}; }},
    {"less", less, [](I a, I b, DType) { return I{a < b}; }},
    {"greater_equal", greater_equal, [](I a, I b, DType) { return I{a >= b}; }},
};

TEST_P(NarrowIntegers, EveryPairAndEveryBinaryFunction) {
  for (const DType type : types()) {
    const std::vector<I> values = numbers_of(type);
    const auto n = static_cast<std::int64_t>(values.size());
    const LazyTensor a = of(values, type, Shape{n, 1}, device()), b = of(values, type, Shape{1, n}, device());
    for (const BinaryRow& row : kBinary) {
      const std::vector<I> got = read(row.function(a, b));
      for (std::size_t i = 0; i < values.size(); ++i) {
        for (std::size_t k = 0; k < values.size(); ++k) {
          ASSERT_EQ(got[i * values.size() + k], row.oracle(values[i], values[k], type))
              << row.name << " of " << name(type) << " " << values[i] << " and " << values[k];
        }
      }
    }
  }
}

TEST_P(NarrowIntegers, EveryUnaryFunction) {
  for (const DType type : types()) {
    const std::vector<I> values = numbers_of(type);
    const LazyTensor x = of(values, type, device());
    const std::vector<I> negated = read(negative(x)), magnitude = read(abs(x)), signs = read(sign(x)),
                         squares = read(square(x)), same = read(floor(x));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const I v = values[i];
      ASSERT_EQ(negated[i], held_by(-v, type)) << name(type) << " " << v;
      ASSERT_EQ(magnitude[i], held_by(v < 0 ? -v : v, type)) << name(type) << " " << v;
      ASSERT_EQ(signs[i], (v > 0) - (v < 0)) << name(type) << " " << v;
      ASSERT_EQ(squares[i],
                held_by(static_cast<I>(static_cast<std::uint64_t>(v) * static_cast<std::uint64_t>(v)), type))
          << name(type) << " " << v;
      ASSERT_EQ(same[i], v) << name(type);
    }
  }
}

/// What is fused may not carry on what the type does not hold.
TEST_P(NarrowIntegers, ChainsWrapAtEveryResult) {
  for (const DType type : types()) {
    SCOPED_TRACE(name(type));
    const std::vector<I> values = numbers_of(type);
    const LazyTensor x = of(values, type, device());
    const I two = 2, top = facts(type).highest;
    const std::vector<I> halves = read(floor_divide(x * 2, 2));
    const std::vector<I> above = read(x + 1 > x);
    const std::vector<I> wide = read(astype(x + 1, DType::i64));
    const std::vector<I> chosen = read(where(negative(x) < 0, x * x, x - 1));
    const std::vector<I> largest = read(astype(maximum(x + 1, x - 1), DType::i64));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const I v = values[i];
      EXPECT_EQ(halves[i], floor_quotient(held_by(v * two, type), two)) << v;
      EXPECT_EQ(above[i], v != top) << v;
      EXPECT_EQ(wide[i], held_by(v + 1, type)) << v;
      const I square = static_cast<I>(static_cast<std::uint64_t>(v) * static_cast<std::uint64_t>(v));
      EXPECT_EQ(chosen[i], held_by(held_by(-v, type) < 0 ? square : v - 1, type)) << v;
      EXPECT_EQ(largest[i], std::max(held_by(v + 1, type), held_by(v - 1, type))) << v;
    }
  }
}

TEST_P(NarrowIntegers, CastsFromFloatingNumbersTruncateAndSaturate) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values{0,      -0.0F,  0.75F,   -0.75F,       1.5F,   -1.5F,         127,
                                  127.9F, 128,    -128.9F, -129,         300,    -300,          32767.5F,
                                  32768,  -32769, 1e9F,    3e9F,         4.2e9F, 4294967296.0F, -1e30F,
                                  1e30F,  inf,    -inf,    std::nanf("")};
  const LazyTensor x =
      LazyTensor::from_vector(values, Shape{static_cast<std::int64_t>(values.size())}, device());
  for (const DType type : types()) {
    const std::vector<I> got = read(astype(x, type));
    const std::vector<I> on = read(astype(astype(x, type), DType::i64));  // without passing through memory
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto v = static_cast<double>(values[i]);
      const auto low = static_cast<double>(facts(type).lowest),
                 high = static_cast<double>(facts(type).highest);
      const I want = std::isnan(v) ? 0 : static_cast<I>(std::trunc(std::min(std::max(v, low), high)));
      EXPECT_EQ(got[i], want) << values[i] << " to " << name(type);
      EXPECT_EQ(on[i], want) << values[i] << " to " << name(type) << " and on";
    }
  }
}

TEST_P(NarrowIntegers, CastsAmongIntegersWrap) {
  const std::vector<std::int64_t> wide{0,
                                       1,
                                       -1,
                                       127,
                                       128,
                                       -128,
                                       -129,
                                       255,
                                       32767,
                                       32768,
                                       -32769,
                                       65535,
                                       2147483647,
                                       -2147483648LL,
                                       4294967295LL,
                                       4294967296LL,
                                       -4294967297LL,
                                       (1LL << 40) + 5};
  if (!supports(DType::i64)) return;
  const LazyTensor x = LazyTensor::from_vector(wide, Shape{static_cast<std::int64_t>(wide.size())}, device());
  for (const DType type : types()) {
    const std::vector<I> got = read(astype(x, type));
    const std::vector<I> through = read(astype(astype(x, type), DType::i32));
    const std::vector<float> real = astype(astype(x, type), DType::f32).to_vector<float>();
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const I want = held_by(wide[i], type);
      EXPECT_EQ(got[i], want) << wide[i] << " to " << name(type);
      EXPECT_EQ(through[i], static_cast<std::int32_t>(want)) << wide[i] << " through " << name(type);
      EXPECT_EQ(real[i], static_cast<float>(want)) << wide[i] << " through " << name(type);
    }
  }
}

TEST_P(NarrowIntegers, ReductionsAndScansAtTheLimits) {
  for (const DType type : types()) {
    SCOPED_TRACE(name(type));
    const I low = facts(type).lowest, high = facts(type).highest;
    const std::vector<I> rows{low, low, low, high, high, high, low, high, 1};
    const LazyTensor x = of(rows, type, Shape{3, 3}, device());
    EXPECT_EQ(read(max(x, 1)), (std::vector<I>{low, high, high}));
    EXPECT_EQ(read(min(x, 1)), (std::vector<I>{low, high, low}));
    EXPECT_EQ(read(max(x, 0)), (std::vector<I>{high, high, high}));
    EXPECT_EQ(read(argmax(x, 1)), (std::vector<I>{0, 0, 1}));
    EXPECT_EQ(read(cummax(x, 1)), (std::vector<I>{low, low, low, high, high, high, low, high, high}));
    EXPECT_EQ(read(cummin(x, 1)), (std::vector<I>{low, low, low, high, high, high, low, low, low}));
    const LazyTensor total = sum(x, 1);
    EXPECT_EQ(total.dtype(), type == DType::u32 ? DType::u32 : DType::i32);
    const auto add_up = [&](I a, I b, I c) {
      return type == DType::u32 ? held_by(a + b + c, type) : a + b + c;
    };
    const std::vector<I> sums{add_up(low, low, low), add_up(high, high, high), add_up(low, high, 1)};
    EXPECT_EQ(read(total), sums);
    // What follows in the same kernel meets the sum that the type holds.
    EXPECT_EQ(read(astype(sum(x, 1, true) * 1, DType::i64)), sums);
    EXPECT_EQ(read(cumsum(x, 1)),
              (std::vector<I>{low, add_up(low, low, 0), sums[0], high, add_up(high, high, 0), sums[1], low,
                              add_up(low, high, 0), sums[2]}));
    EXPECT_EQ(read(prod(of({3, 5, 7}, type, device()))), (std::vector<I>{105}));
    EXPECT_EQ(read(x - max(x, 1, true) < 0),
              (std::vector<I>{0, 0, 0, 0, 0, 0, type != DType::u32 && held_by(low - high, type) < 0, 0,
                              type != DType::u32}));
  }
}

TEST_P(NarrowIntegers, ProductsGathersAndScattersWrap) {
  for (const DType type : types()) {
    SCOPED_TRACE(name(type));
    const I high = facts(type).highest;
    const std::vector<I> left{high, 2, 3, 1, high, 5}, right{high, 1, 7, 2, high, 3};
    const LazyTensor a = of(left, type, Shape{2, 3}, device()), b = of(right, type, Shape{3, 2}, device());
    std::vector<I> product, positive;
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t k = 0; k < 2; ++k) {
        std::uint64_t total = 0;
        for (std::size_t j = 0; j < 3; ++j)
          total += static_cast<std::uint64_t>(left[i * 3 + j]) * static_cast<std::uint64_t>(right[j * 2 + k]);
        product.push_back(held_by(static_cast<I>(total), type));
        positive.push_back(product.back() > 10);
      }
    }
    EXPECT_EQ(matmul(a, b).dtype(), type);
    EXPECT_EQ(read(matmul(a, b)), product);
    EXPECT_EQ(read(matmul(a, b) > 10), positive) << "with what follows";
    EXPECT_EQ(read(matmul(a + 1, transpose(transpose(b)))), read(matmul((a + 1).eval(), b)))
        << "of computed ones";

    const LazyTensor index = LazyTensor::from_vector<std::int32_t>({1, 0, 1, 9}, Shape{4}, device());
    EXPECT_EQ(read(take(of({high, 5}, type, device()), index)), (std::vector<I>{5, high, 5, 0}));
    const LazyTensor base = of({1, high}, type, device());
    EXPECT_EQ(read(scatter_add(base, index, of({high, 2, 3, 4}, type, device()))),
              (std::vector<I>{3, held_by(high + high + 3, type)}));
    EXPECT_EQ(read(take(of({10, 20, 30}, DType::i16, device()), of({2, 0}, type, device()))),
              (std::vector<I>{30, 10}))
        << "as indices";
  }
}

TEST_P(NarrowIntegers, MadeMovedAndRead) {
  for (const DType type : types()) {
    SCOPED_TRACE(name(type));
    const I low = facts(type).lowest, high = facts(type).highest;
    EXPECT_EQ(read(LazyTensor::full(Shape{2}, static_cast<double>(high), type)),
              (std::vector<I>{high, high}));
    EXPECT_THROW(LazyTensor::full(Shape{1}, static_cast<double>(high + 1), type), ValueError);
    EXPECT_EQ(read(arange(4, type, device())), (std::vector<I>{0, 1, 2, 3}));
    EXPECT_EQ(read(one_hot(LazyTensor::from_vector<std::int32_t>({1}, Shape{1}, device()), 3, type)),
              (std::vector<I>{0, 1, 0}));
    const LazyTensor x = of({low, 1, high}, type, device());
    EXPECT_EQ(read(pad(x, {1}, {1}, 3)), (std::vector<I>{3, low, 1, high, 3}));
    EXPECT_EQ(read(concatenate({x, of({7}, type, device())})), (std::vector<I>{low, 1, high, 7}));
    EXPECT_EQ(read(slice(x, 0, std::nullopt, std::nullopt, -1)), (std::vector<I>{high, 1, low}));
    EXPECT_EQ(read(x + 100),
              (std::vector<I>{held_by(low + 100, type), held_by(101, type), held_by(high + 100, type)}));
    EXPECT_EQ(slice(x, 0, 0, 1).item<std::int64_t>(), low);
    EXPECT_EQ(slice(x, 0, 2, 3).item<double>(), static_cast<double>(high));
    EXPECT_THROW(x.to_vector<std::int64_t>(), DTypeError);
  }
}

/// A tensor, and the numbers that it is to hold.
struct IntegerValue {
  LazyTensor tensor;
  std::vector<I> numbers;
  std::string text;
};

/// The result of `made` on two values: in the type in which they meet, by `oracle` on single numbers.
template <class Oracle>
IntegerValue combined(const IntegerValue& a, const IntegerValue& b, LazyTensor made, Oracle oracle) {
  const DType both = promote(a.tensor.dtype(), b.tensor.dtype());
  IntegerValue out{std::move(made), {}, {}};
  for (std::size_t i = 0; i < a.numbers.size(); ++i)
    out.numbers.push_back(held_by(oracle(held_by(a.numbers[i], both), held_by(b.numbers[i], both)), both));
  return out;
}

constexpr std::int64_t kProgramRows = 3, kProgramColumns = 37;

/// The row's sum beside its elements.
IntegerValue less_row_sum(const IntegerValue& a) {
  const LazyTensor total = sum(a.tensor, 1, true);
  IntegerValue out{a.tensor - total, {}, {}};
  for (std::int64_t i = 0; i < kProgramRows * kProgramColumns; ++i) {
    std::uint64_t row = 0;
    for (std::int64_t k = 0; k < kProgramColumns; ++k)
      row += static_cast<std::uint64_t>(
          a.numbers[static_cast<std::size_t>(i / kProgramColumns * kProgramColumns + k)]);
    const auto held = static_cast<std::uint64_t>(held_by(static_cast<I>(row), total.dtype()));
    const auto x = static_cast<std::uint64_t>(a.numbers[static_cast<std::size_t>(i)]);
    out.numbers.push_back(held_by(static_cast<I>(x - held), out.tensor.dtype()));
  }
  return out;
}

constexpr const char* kProgramSteps[] = {"add",    "subtract", "multiply", "maximum",
                                         "lesser", "quotient", "cast",     "less sum"};

/// One of kProgramSteps on two values; `to` is the type of the cast.
IntegerValue program_step(std::size_t function, const IntegerValue& a, const IntegerValue& b, DType to) {
  const auto u = [](I x) { return static_cast<std::uint64_t>(x); };
  switch (function) {
    case 0:
      return combined(a, b, a.tensor + b.tensor, [&](I x, I y) { return static_cast<I>(u(x) + u(y)); });
    case 1:
      return combined(a, b, a.tensor - b.tensor, [&](I x, I y) { return static_cast<I>(u(x) - u(y)); });
    case 2:
      return combined(a, b, a.tensor * b.tensor, [&](I x, I y) { return static_cast<I>(u(x) * u(y)); });
    case 3:
      return combined(a, b, maximum(a.tensor, b.tensor), [](I x, I y) { return std::max(x, y); });
    case 4:
      return combined(a, b, where(a.tensor < b.tensor, a.tensor, b.tensor),
                      [](I x, I y) { return x < y ? x : y; });
    case 5:  // by what is neither 0 nor -1
      return combined(a, b, floor_divide(a.tensor, maximum(b.tensor, 1)),
                      [](I x, I y) { return floor_quotient(x, std::max<I>(y, 1)); });
    case 6: {
      IntegerValue out{astype(a.tensor, to), {}, {}};
      for (const I x : a.numbers) out.numbers.push_back(held_by(x, to));
      return out;
    }
    default:
      return less_row_sum(a);
  }
}

/// Programs over integers of every type, fused as the compiler likes, against the same on single numbers.
TEST_P(NarrowIntegers, RandomProgramsOfMixedTypes) {
  constexpr DType kIntegers[] = {DType::u8, DType::u32, DType::i8, DType::i16, DType::i32, DType::i64};
  const std::vector<DType> all = supported(kIntegers);
  const Shape shape{kProgramRows, kProgramColumns};
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::vector<IntegerValue> values;
    for (const DType type : all) {
      std::vector<I> numbers;
      for (std::int64_t i = 0; i < shape.numel(); ++i)
        numbers.push_back(held_by(static_cast<I>(random()) << below(3) * 16, type));
      const LazyTensor wide = LazyTensor::from_vector(numbers, shape, device());
      values.push_back({astype(wide, type).eval(), numbers, std::string(name(type))});
    }
    for (int step = 0; step < 24; ++step) {
      const std::size_t first = below(values.size()), second = below(values.size());
      const std::size_t function = below(std::size(kProgramSteps));
      IntegerValue out = program_step(function, values[first], values[second], all[below(all.size())]);
      out.text = std::string(kProgramSteps[function]) + " #" + std::to_string(first) + " #" +
                 std::to_string(second) + " " + std::string(name(out.tensor.dtype()));
      values.push_back(out);
    }
    std::string program;
    for (std::size_t i = 0; i < values.size(); ++i)
      program += "#" + std::to_string(i) + " " + values[i].text + "\n";
    std::vector<LazyTensor> results;
    for (std::size_t i = values.size() - 4; i < values.size(); ++i) results.push_back(values[i].tensor);
    eval(results);
    for (std::size_t i = values.size() - 4; i < values.size(); ++i)
      EXPECT_EQ(astype(values[i].tensor, DType::i64).to_vector<std::int64_t>(), values[i].numbers)
          << "value " << i << " of\n"
          << program;
  }
}

TEST_P(NarrowIntegers, PromotionMeetsInATypeThatHoldsBoth) {
  if (!supports(DType::u32) || !supports(DType::i16)) return;
  const LazyTensor bytes = LazyTensor::from_vector<std::uint8_t>({255, 0}, Shape{2}, device());
  const LazyTensor small = of({-128, 127}, DType::i8, device());
  const LazyTensor words = of({4294967295LL, 0}, DType::u32, device());
  EXPECT_EQ((bytes + small).dtype(), DType::i16);
  EXPECT_EQ(read(bytes + small), (std::vector<I>{127, 127}));
  EXPECT_EQ((words + small).dtype(), DType::i64);
  EXPECT_EQ(read(words + small), (std::vector<I>{4294967167LL, 127}));
  EXPECT_EQ(read(words > small), (std::vector<I>{1, 0})) << "not compared as signed 32-bit numbers";
  // Widened in the same kernel: a driver got the sign of the first wrong.
  const LazyTensor many =
      LazyTensor::from_vector<std::int64_t>({3000000000LL, 1LL << 40}, Shape{2}, device());
  EXPECT_EQ(read(floor_divide(small, many)), (std::vector<I>{-1, 0}));
  EXPECT_EQ(read(floor_divide(small, maximum(words, 1))), (std::vector<I>{-1, 127}));
  EXPECT_EQ((words + bytes).dtype(), DType::u32);
  EXPECT_EQ(read(words + bytes), (std::vector<I>{254, 0}));
}

}  // namespace
}  // namespace caldera::testing
