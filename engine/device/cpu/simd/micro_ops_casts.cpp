// Conversions between types, copies, and single elements repeated: plain loops, as in micro_ops_loops.cpp.
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/device/cpu/simd/micro_ops.h"
#include "engine/tensor/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/simd/micro_ops_casts.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/loops-inl.h"
#include "engine/device/cpu/simd/scalar_functions-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class Bits>
void fill(void* out, const void* a, const void*, const void*, std::int64_t n) {
  auto* o = static_cast<Bits*>(out);
  const Bits x = static_cast<const Bits*>(a)[0];
  each(n, [=](std::int64_t i) HWY_ATTR { o[i] = x; });
}

template <class Bits>
void spread(void* out, const void* a, std::int64_t rows, std::int64_t n) {
  auto* o = static_cast<Bits*>(out);
  const auto* x = static_cast<const Bits*>(a);
  // Rows shorter than a block are written as whole blocks, each over the end of the one before.
  constexpr std::int64_t kBlock = 64 / static_cast<std::int64_t>(sizeof(Bits));
  const Bits* end = o + rows * n;
  std::int64_t r = 0;
  if (n <= kBlock)
    for (; r < rows && end - o >= kBlock; ++r, o += n) {
      const Bits value = x[r];
      for (std::int64_t j = 0; j < kBlock; ++j) o[j] = value;
    }
  for (; r < rows; ++r, o += n) {
    const Bits value = x[r];
    each(n, [=](std::int64_t i) HWY_ATTR { o[i] = value; });
  }
}

SpreadFn spread_op(std::size_t size) {
  return size == 1   ? spread<std::uint8_t>
         : size == 2 ? spread<std::uint16_t>
         : size == 4 ? spread<std::uint32_t>
                     : spread<std::uint64_t>;
}

MicroFn fill_op(std::size_t size) {
  return size == 1   ? fill<std::uint8_t>
         : size == 2 ? fill<std::uint16_t>
         : size == 4 ? fill<std::uint32_t>
                     : fill<std::uint64_t>;
}

template <class T>
void copy(void* out, const void* a, const void*, const void*, std::int64_t n) {
  std::memmove(out, a, static_cast<std::size_t>(n) * sizeof(T));
}

template <class From>
MicroFn cast_from(DType to) {
  return dispatch<is_compute_type>(to, []<class To>() -> MicroFn {
    if constexpr (std::is_same_v<To, bool>)
      return unary_loop<Truth, From, std::uint8_t>;
    else
      return unary_loop<Convert<From, To>, From, To>;
  });
}

/// Narrow integers are converted from and to what they are computed in alone: widened, or wrapped.
template <class Narrow>
MicroFn narrow_cast(DType from, DType to) {
  using Computed = std::conditional_t<sizeof(Narrow) < 4, std::int32_t, std::int64_t>;
  static_assert(compute_type(dtype_of<Narrow>()) == dtype_of<Computed>());
  if (to == dtype_of<Computed>()) return unary_loop<Convert<Narrow, Computed>, Narrow, Computed>;
  if (from == dtype_of<Computed>()) return unary_loop<Convert<Computed, Narrow>, Computed, Narrow>;
  return nullptr;
}

MicroFn cast_op(DType from, DType to) {
  if (from == to) {
    return size_of(to) == 1   ? copy<char>
           : size_of(to) == 2 ? copy<std::uint16_t>
           : size_of(to) == 4 ? copy<float>
                              : copy<double>;
  }
  if (is_memory_type(from) || is_memory_type(to))  // of floating ones see find_half_cast
    return dispatch<is_narrow_integer>(is_memory_type(to) ? to : from,
                                       [&]<class Narrow>() { return narrow_cast<Narrow>(from, to); });
  return dispatch<is_compute_type>(from, [&]<class From>() { return cast_from<Stored<From>>(to); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {

HWY_EXPORT(cast_op);
HWY_EXPORT(fill_op);
HWY_EXPORT(spread_op);

MicroFn find_fill(std::size_t size) { return HWY_DYNAMIC_DISPATCH(fill_op)(size); }
SpreadFn find_spread(std::size_t size) { return HWY_DYNAMIC_DISPATCH(spread_op)(size); }
MicroFn find_cast(DType from, DType to) {
  if (from != to && (is_half(from) || is_half(to))) return find_half_cast(from, to);
  return HWY_DYNAMIC_DISPATCH(cast_op)(from, to);
}

}  // namespace caldera::cpu
#endif
