// Quotients rounded down, their rests and angles of two coordinates on the CPU, with every instruction set,
// against the C library in wider types: over pairs of all magnitudes, and whatever the neighbours of a pair
// are.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/device/cpu/simd/micro_ops.h"
#include "tests/support/instruction_sets.h"

namespace caldera::testing {
namespace {

/// Exact: fmod rounds nothing, and the last sum is rounded once.
template <class T>
T floored_rest(T x, T y) {
  T rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(T(0), y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

/// floor(x / y), exact where it has fewer digits than long double, and then rounded.
template <class T>
T floored_quotient(T x, T y) {
  if (y == 0 || !std::isfinite(x) || std::isnan(y)) return std::floor(x / y);
  const long double wide = x, rest = std::fmod(wide, static_cast<long double>(y));
  long double whole = std::round((wide - rest) / y);
  if (rest != 0 && (rest < 0) != (y < 0)) whole -= 1;
  return whole == 0 ? std::copysign(T(0), static_cast<T>(std::signbit(x) != std::signbit(y) ? -1 : 1))
                    : static_cast<T>(whole);
}

template <class T>
struct Pairs {
  std::vector<T> x, y;
};

/// Near each other and far apart, whole quotients and those next to one, and every pair of special values.
template <class T>
Pairs<T> pairs() {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> between(-1, 1);
  Pairs<T> out;
  const auto add = [&](T x, T y) {
    out.x.push_back(x);
    out.y.push_back(y);
  };
  for (int i = 0; i < 20'000; ++i) {
    const T y = static_cast<T>(std::ldexp(between(random), static_cast<int>(random() % 60) - 30));
    const T x = static_cast<T>(std::ldexp(between(random), static_cast<int>(random() % 60) - 30));
    add(x, y);
    add(y * static_cast<T>(random() % 5000), y);
    add(std::nextafter(y * static_cast<T>(random() % 5000), T(0)), y);
    add(std::nextafter(y * static_cast<T>(random() % 5000), std::numeric_limits<T>::max()), -y);
  }
  const T kInfinite = std::numeric_limits<T>::infinity();
  const std::vector<T> special{T(0),
                               T(-0.0),
                               T(1),
                               T(-1),
                               T(3),
                               T(-0.1),
                               kInfinite,
                               -kInfinite,
                               std::numeric_limits<T>::quiet_NaN(),
                               std::numeric_limits<T>::max(),
                               std::numeric_limits<T>::lowest(),
                               std::numeric_limits<T>::min(),
                               -std::numeric_limits<T>::denorm_min()};
  for (const T x : special) {
    for (const T y : special) {
      add(x, y);
      for (int i = 0; i < 15; ++i) add(T(7), T(2));  // a vector whose other quotients are short
    }
  }
  return out;
}

template <class T>
bool is_same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
void check_quotients(const char* set, DType type) {
  const Pairs<T> p = pairs<T>();
  std::vector<T> got(p.x.size());
  const auto run = [&](ScalarOp op) {
    const auto fn = cpu::find_micro_op(op, type, type);
    ASSERT_NE(fn, nullptr);
    fn(got.data(), p.x.data(), p.y.data(), p.x.data(), static_cast<std::int64_t>(got.size()));
  };
  run(ScalarOp::remainder);
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(is_same(got[i], floored_rest(p.x[i], p.y[i])))
        << p.x[i] << " remainder " << p.y[i] << " is " << got[i] << " with " << set;
  run(ScalarOp::floor_div);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const T want = floored_quotient(p.x[i], p.y[i]);
    // Quotients of more than 2^21 (2^50) come from rounded numbers.
    const bool is_short = !(std::fabs(want) > T(std::int64_t{1} << (std::numeric_limits<T>::digits - 3)));
    ASSERT_TRUE(
        is_same(got[i], want) ||
        (!is_short && std::fabs(got[i] - want) <= std::fabs(want) * 2 * std::numeric_limits<T>::epsilon()))
        << p.x[i] << " over " << p.y[i] << " is " << got[i] << ", want " << want << " with " << set;
  }
}

TEST(CpuQuotients, AreExactForEveryPair) {
  with_each_instruction_set([](const char* set) {
    check_quotients<float>(set, DType::f32);
    check_quotients<double>(set, DType::f64);
  });
}

TEST(CpuQuotients, OfIntegersAtTheirLimits) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> values{0,      1,          -1,    2,         -2,      3,    -7,
                                   kLeast, kLeast + 1, kMost, kMost - 1, 1 << 30, 46341};
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) values.push_back(static_cast<std::int32_t>(random()) >> (i % 31));
  std::vector<std::int32_t> x, y;
  for (const std::int32_t a : values) {
    for (const std::int32_t b : values) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  with_each_instruction_set([&](const char* set) {
    std::vector<std::int32_t> quotients(x.size()), rests(x.size());
    const auto n = static_cast<std::int64_t>(x.size());
    cpu::find_micro_op(ScalarOp::floor_div, DType::i32, DType::i32)(quotients.data(), x.data(), y.data(),
                                                                    x.data(), n);
    cpu::find_micro_op(ScalarOp::remainder, DType::i32, DType::i32)(rests.data(), x.data(), y.data(),
                                                                    x.data(), n);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t a = x[i], b = y[i];
      const std::int64_t down = b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
      ASSERT_EQ(quotients[i], static_cast<std::int32_t>(down)) << a << " over " << b << " with " << set;
      ASSERT_EQ(rests[i], b == 0 ? 0 : a - down * b) << a << " remainder " << b << " with " << set;
    }
  });
}

TEST(CpuQuotients, AnglesOfTwoCoordinates) {
  const Pairs<float> p = pairs<float>();
  with_each_instruction_set([&](const char* set) {
    std::vector<float> got(p.x.size());
    cpu::find_micro_op(ScalarOp::atan2, DType::f32, DType::f32)(
        got.data(), p.x.data(), p.y.data(), p.x.data(), static_cast<std::int64_t>(got.size()));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double want = std::atan2(static_cast<double>(p.x[i]), static_cast<double>(p.y[i]));
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(got[i]));
        continue;
      }
      const int exponent = std::max(want == 0 ? -126 : std::ilogb(want), -126);
      ASSERT_LE(std::fabs(got[i] - want), std::ldexp(1.5, exponent - 23))
          << "of (" << p.y[i] << ", " << p.x[i] << ") with " << set;
      ASSERT_EQ(std::signbit(got[i]), std::signbit(want)) << p.x[i] << ", " << p.y[i] << " with " << set;
    }
  });
}

}  // namespace
}  // namespace caldera::testing
