// The functions of one element that plain loops are made of; the loops' compiler vectorises them. Included
// once for every instruction set, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE.
#if defined(CALDERA_SCALAR_FUNCTIONS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_SCALAR_FUNCTIONS_INL
#undef CALDERA_SCALAR_FUNCTIONS_INL
#else
#define CALDERA_SCALAR_FUNCTIONS_INL
#endif

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/graph/scalar_op.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Integers wrap: arithmetic happens in the unsigned type.
template <class T>
using Wrapping = std::make_unsigned_t<T>;

struct Neg {
  template <class T>
  static T of(T x) {
    return static_cast<T>(Wrapping<T>(0) - static_cast<Wrapping<T>>(x));
  }
};
struct Abs {
  template <class T>
  static T of(T x) {
    if constexpr (std::is_signed_v<T>) return x < 0 ? Neg::of(x) : x;
    return x;
  }
};
struct Sign {
  template <class T>
  static T of(T x) {
    if constexpr (std::is_floating_point_v<T>)
      return x != x ? x : static_cast<T>((x > T(0)) - (x < T(0)));
    else
      return static_cast<T>((x > T(0)) - (x < T(0)));
  }
};
struct Same {
  template <class T>
  static T of(T x) {
    return x;
  }
};
struct Add {
  template <class T>
  static T of(T x, T y) {
    return static_cast<T>(static_cast<Wrapping<T>>(x) + static_cast<Wrapping<T>>(y));
  }
};
struct Sub {
  template <class T>
  static T of(T x, T y) {
    return static_cast<T>(static_cast<Wrapping<T>>(x) - static_cast<Wrapping<T>>(y));
  }
};
struct Mul {
  template <class T>
  static T of(T x, T y) {
    return static_cast<T>(static_cast<Wrapping<T>>(x) * static_cast<Wrapping<T>>(y));
  }
};

struct BitNot {
  template <class T>
  static T of(T x) {
    return static_cast<T>(~x);
  }
};
struct BitAnd {
  template <class T>
  static T of(T x, T y) {
    return static_cast<T>(x & y);
  }
};
struct BitOr {
  template <class T>
  static T of(T x, T y) {
    return static_cast<T>(x | y);
  }
};
struct BitXor {
  template <class T>
  static T of(T x, T y) {
    return static_cast<T>(x ^ y);
  }
};
/// A count that is negative or reaches the width moves every bit out.
struct ShiftLeft {
  template <class T>
  static T of(T x, T y) {
    constexpr int kBits = std::numeric_limits<Wrapping<T>>::digits;
    const auto count = static_cast<Wrapping<T>>(y);
    return count < kBits ? static_cast<T>(static_cast<Wrapping<T>>(x) << count) : T(0);
  }
};
struct ShiftRight {
  template <class T>
  static T of(T x, T y) {
    constexpr int kBits = std::numeric_limits<Wrapping<T>>::digits;
    const auto count = static_cast<Wrapping<T>>(y);
    if constexpr (std::is_unsigned_v<T>) return count < kBits ? static_cast<T>(x >> count) : T(0);
    return static_cast<T>(x >> (count < kBits ? count : Wrapping<T>(kBits - 1)));
  }
};

/// floor(x / y); by zero gives 0 for integers; the most negative value by -1 wraps.
struct FloorDiv {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_unsigned_v<T>) {
      return y == 0 ? T(0) : static_cast<T>(x / y);
    } else if constexpr (sizeof(T) == 4) {
      // In double, which vectors divide. It holds both, and no rounded quotient reaches the next integer.
      const T divisor = (y == 0) | (y == -1) ? T(1) : y;
      const T q = static_cast<T>(static_cast<double>(x) / static_cast<double>(divisor));
      const T below = ((x - q * divisor) != 0) & ((x ^ divisor) < 0) ? T(1) : T(0);
      const T finite = y == -1 ? Neg::of(x) : static_cast<T>(q - below);
      return y == 0 ? T(0) : finite;
    } else {
      if (y == 0) return 0;
      if (y == -1) return Neg::of(x);
      const T q = static_cast<T>(x / y);
      return static_cast<T>(q - ((x % y != 0) && ((x < 0) != (y < 0))));
    }
  }
};

/// x - y * floor(x / y): the sign of y.
struct Remainder {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_unsigned_v<T>) {
      return y == 0 ? T(0) : static_cast<T>(x % y);
    } else if constexpr (sizeof(T) == 4) {
      const T divisor = (y == 0) | (y == -1) ? T(1) : y;
      const T q = static_cast<T>(static_cast<double>(x) / static_cast<double>(divisor));
      const T rest = x - q * divisor;
      // Without a branch: signs are what no processor foresees.
      const T is_other_side = (rest != 0) & ((rest ^ divisor) < 0);
      return rest + (-is_other_side & divisor);
    } else {
      if (y == 0 || y == -1) return 0;
      const T rest = static_cast<T>(x % y);
      return rest != 0 && (rest < 0) != (y < 0) ? static_cast<T>(rest + y) : rest;
    }
  }
};

struct Pow {
  template <class T>
  static T of(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(x, y);
    } else {
      if constexpr (std::is_signed_v<T>) {
        if (y < 0) return x == 1 ? T(1) : x == -1 ? (y % 2 == 0 ? T(1) : T(-1)) : T(0);
      }
      T result = 1;
      T base = x;
      for (auto e = static_cast<std::uint64_t>(y); e != 0; e >>= 1) {
        if (e & 1) result = Mul::of(result, base);
        base = Mul::of(base, base);
      }
      return result;
    }
  }
};
struct Max {
  template <class T>
  static T of(T x, T y) {
    return x > y ? x : y;
  }
};
struct Min {
  template <class T>
  static T of(T x, T y) {
    return x < y ? x : y;
  }
};

struct Equal {
  template <class T>
  static bool of(T x, T y) {
    return x == y;
  }
};
struct NotEqual {
  template <class T>
  static bool of(T x, T y) {
    return x != y;
  }
};
struct Less {
  template <class T>
  static bool of(T x, T y) {
    return x < y;
  }
};
struct LessEqual {
  template <class T>
  static bool of(T x, T y) {
    return x <= y;
  }
};
struct Greater {
  template <class T>
  static bool of(T x, T y) {
    return x > y;
  }
};
struct GreaterEqual {
  template <class T>
  static bool of(T x, T y) {
    return x >= y;
  }
};
struct IsNan {
  template <class T>
  static bool of(T x) {
    return x != x;
  }
};
struct Truth {
  template <class T>
  static bool of(T x) {
    return x != T(0);
  }
};
struct LogicalNot {
  template <class T>
  static bool of(T x) {
    return x == T(0);
  }
};
struct LogicalAnd {
  template <class T>
  static bool of(T x, T y) {
    return (x != T(0)) & (y != T(0));
  }
};
struct LogicalOr {
  template <class T>
  static bool of(T x, T y) {
    return (x != T(0)) | (y != T(0));
  }
};
struct LogicalXor {
  template <class T>
  static bool of(T x, T y) {
    return (x != T(0)) != (y != T(0));
  }
};

/// The elementary functions in the types that have no vectors.
template <ScalarOp Op>
struct Elementary;
#define CALDERA_LIBRARY_FUNCTION(op, expression) \
  template <>                                    \
  struct Elementary<ScalarOp::op> {              \
    template <class T>                           \
    static T of(T x) {                           \
      return expression;                         \
    }                                            \
  };
/// 1 / (1 + exp(-x)), from the exponential that cannot overflow.
template <class T>
T logistic(T x) {
  const T e = std::exp(-std::fabs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}
CALDERA_LIBRARY_FUNCTION(exp, std::exp(x))
CALDERA_LIBRARY_FUNCTION(expm1, std::expm1(x))
CALDERA_LIBRARY_FUNCTION(log, std::log(x))
CALDERA_LIBRARY_FUNCTION(log1p, std::log1p(x))
CALDERA_LIBRARY_FUNCTION(sin, std::sin(x))
CALDERA_LIBRARY_FUNCTION(cos, std::cos(x))
CALDERA_LIBRARY_FUNCTION(tan, std::tan(x))
CALDERA_LIBRARY_FUNCTION(asin, std::asin(x))
CALDERA_LIBRARY_FUNCTION(acos, std::acos(x))
CALDERA_LIBRARY_FUNCTION(atan, std::atan(x))
CALDERA_LIBRARY_FUNCTION(tanh, std::tanh(x))
CALDERA_LIBRARY_FUNCTION(erf, std::erf(x))
CALDERA_LIBRARY_FUNCTION(exp2, std::exp2(x))
CALDERA_LIBRARY_FUNCTION(log2, std::log2(x))
CALDERA_LIBRARY_FUNCTION(log10, std::log10(x))
CALDERA_LIBRARY_FUNCTION(sigmoid, logistic(x))
#undef CALDERA_LIBRARY_FUNCTION

struct Atan2 {
  template <class T>
  static T of(T x, T y) {
    return std::atan2(x, y);
  }
};

template <class From, class To>
struct Convert {
  static To of(From x) {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      // The upper limit as a floating value is max + 1 (a power of two) or max itself.
      constexpr auto low = static_cast<From>(std::numeric_limits<To>::min());
      constexpr auto high = static_cast<From>(std::numeric_limits<To>::max());
      if (!(x > low)) return x != x ? To(0) : std::numeric_limits<To>::min();
      if (x >= high) return std::numeric_limits<To>::max();
      return static_cast<To>(x);
    } else {
      return static_cast<To>(x);
    }
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#endif
