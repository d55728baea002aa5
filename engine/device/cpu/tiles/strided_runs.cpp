#include "engine/device/cpu/tiles/strided_runs.h"

#include <limits>
#include <type_traits>

#include "engine/tensor/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/tiles/strided_runs.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls f with an unsigned number of `size` bytes.
template <class F>
[[gnu::always_inline]] inline void with_size(std::size_t size, const F& f) {
  switch (size) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

void every_other(const std::byte* from, std::byte* out, std::int64_t n, std::size_t size) {
  with_size(size, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    const auto* x = reinterpret_cast<const T*>(from);
    auto* to = reinterpret_cast<T*>(out);
    const hn::CappedTag<T, 64 / sizeof(T)> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    std::int64_t i = 0;
    // The last pair has an element behind it that is not there.
    for (; i + lanes < n; i += lanes) {
      hn::VFromD<decltype(d)> even, odd;
      hn::LoadInterleaved2(d, x + 2 * i, even, odd);
      hn::StoreU(even, d, to + i);
    }
    for (; i < n; ++i) to[i] = x[2 * i];
  });
}

void repeated(const std::byte* element, std::byte* out, std::int64_t n, std::size_t size) {
  with_size(size, [&](auto zero) HWY_ATTR {
    using T = decltype(zero);
    const T value = *reinterpret_cast<const T*>(element);
    auto* to = reinterpret_cast<T*>(out);
    each(n, [=](std::int64_t i) HWY_ATTR { to[i] = value; });
  });
}

void coordinates(DType type, std::int64_t first, std::int64_t step, std::byte* out, std::int64_t n) {
  dispatch<is_compute_number>(type, [&]<class T>() HWY_ATTR {
    auto* to = reinterpret_cast<T*>(out);
    using Limits = std::numeric_limits<std::int32_t>;
    const auto fits = [](std::int64_t x) { return x >= Limits::min() && x <= Limits::max(); };
    if constexpr (sizeof(T) == 4) {
      if (fits(first) && fits(step) && fits(first + step * n)) {
        // Unsigned, as the distance from the first may wrap where no coordinate does.
        const auto start = static_cast<std::uint32_t>(first), apart = static_cast<std::uint32_t>(step);
        return each(n, [=](std::int64_t i) HWY_ATTR {
          to[i] = static_cast<T>(static_cast<std::int32_t>(start + static_cast<std::uint32_t>(i) * apart));
        });
      }
    }
    each(n, [=](std::int64_t i) HWY_ATTR { to[i] = static_cast<T>(first + i * step); });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(every_other);
HWY_EXPORT(repeated);
HWY_EXPORT(coordinates);

void gather_every_other(const std::byte* from, std::byte* out, std::int64_t n, std::size_t size) {
  HWY_DYNAMIC_DISPATCH(every_other)(from, out, n, size);
}
void repeat_element(const std::byte* element, std::byte* out, std::int64_t n, std::size_t size) {
  HWY_DYNAMIC_DISPATCH(repeated)(element, out, n, size);
}
void write_coordinates(DType type, std::int64_t first, std::int64_t step, std::byte* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(coordinates)(type, first, step, out, n);
}

}  // namespace caldera::cpu
#endif
