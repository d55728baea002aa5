#include "engine/device/cpu/sort/key_ops.h"

#include <type_traits>

#include "engine/device/cpu/sort/sort_key.h"
#include "engine/tensor/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/sort/key_ops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

void keys_of(const KeyRow& row, std::int64_t begin, std::int64_t end, void* keys) {
  dispatch(row.of, [&]<class Element>() HWY_ATTR {
    using T = Stored<Element>;
    using Key = SortKey<T>;
    const auto* x = reinterpret_cast<const T*>(row.from) + begin * row.stride;
    auto* to = static_cast<Key*>(keys);
    const Key flip = row.descending ? static_cast<Key>(~Key{0}) : Key{0};
    const std::int64_t stride = row.stride;
    if (stride == 1)
      each(end - begin, [=](std::int64_t i) HWY_ATTR { to[i] = sort_key(x[i]) ^ flip; });
    else
      for (std::int64_t i = 0; i < end - begin; ++i) to[i] = sort_key(x[i * stride]) ^ flip;
  });
}

/// Of vectors, lane by lane.
template <class Key>
std::int64_t least_of(const Key* keys, std::int64_t n, std::int64_t share, Key* least) {
  const hn::CappedTag<Key, 64 / sizeof(Key)> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t found = 0;
  for (; n >= share * lanes; n -= share * lanes, found += lanes) {
    auto lowest = hn::LoadU(d, keys);
    for (std::int64_t v = 1; v < share; ++v) lowest = hn::Min(lowest, hn::LoadU(d, keys + v * lanes));
    hn::StoreU(lowest, d, least + found);
    keys += share * lanes;
  }
  return found;
}
std::int64_t least_of_32(const std::uint32_t* keys, std::int64_t n, std::int64_t share,
                         std::uint32_t* least) {
  return least_of(keys, n, share, least);
}
std::int64_t least_of_64(const std::uint64_t* keys, std::int64_t n, std::int64_t share,
                         std::uint64_t* least) {
  return least_of(keys, n, share, least);
}

template <class Key>
std::int64_t up_to(const Key* keys, std::int64_t n, Key bound, std::uint32_t* places) {
  const hn::CappedTag<Key, 64 / sizeof(Key)> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto limit = hn::Set(d, bound);
  std::int64_t i = 0, found = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const Key* k = keys + i;
    const auto least = hn::Min(hn::Min(hn::LoadU(d, k), hn::LoadU(d, k + lanes)),
                               hn::Min(hn::LoadU(d, k + 2 * lanes), hn::LoadU(d, k + 3 * lanes)));
    if (hn::AllTrue(d, hn::Lt(limit, least))) continue;
    for (std::int64_t v = 0; v < 4; ++v) {
      std::uint8_t bytes[8] = {};
      hn::StoreMaskBits(d, hn::Not(hn::Lt(limit, hn::LoadU(d, k + v * lanes))), bytes);
      for (unsigned bits = bytes[0] | static_cast<unsigned>(bytes[1]) << 8U; bits != 0; bits &= bits - 1)
        places[found++] = static_cast<std::uint32_t>(i + v * lanes + __builtin_ctz(bits));
    }
  }
  for (; i < n; ++i)
    if (keys[i] <= bound) places[found++] = static_cast<std::uint32_t>(i);
  return found;
}
std::int64_t up_to_32(const std::uint32_t* keys, std::int64_t n, std::uint32_t bound, std::uint32_t* places) {
  return up_to(keys, n, bound, places);
}
std::int64_t up_to_64(const std::uint64_t* keys, std::int64_t n, std::uint64_t bound, std::uint32_t* places) {
  return up_to(keys, n, bound, places);
}

/// A key above its place, so that no two cells are equal.
void ordered_columns(const std::uint32_t* keys, std::int64_t n, std::span<const Exchange> network,
                     std::uint64_t* cells, std::int64_t first, std::int64_t count, std::uint32_t* places) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t column = 0; column < kRowsTogether; ++column)
      cells[i * kRowsTogether + column] =
          static_cast<std::uint64_t>(keys[i * kRowsTogether + column]) << 32U | static_cast<std::uint64_t>(i);
  const hn::CappedTag<std::uint64_t, 8> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (const Exchange& exchange : network) {
    std::uint64_t* const low = cells + exchange.low * kRowsTogether;
    std::uint64_t* const high = cells + exchange.high * kRowsTogether;
    for (std::int64_t column = 0; column < kRowsTogether; column += lanes) {
      const auto a = hn::Load(d, low + column), b = hn::Load(d, high + column);
      hn::Store(hn::Min(a, b), d, low + column);
      hn::Store(hn::Max(a, b), d, high + column);
    }
  }
  for (std::int64_t k = 0; k < count; ++k)
    for (std::int64_t column = 0; column < kRowsTogether; ++column)
      places[k * kRowsTogether + column] =
          static_cast<std::uint32_t>(cells[(first + k) * kRowsTogether + column]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(keys_of);
HWY_EXPORT(least_of_32);
HWY_EXPORT(least_of_64);
HWY_EXPORT(up_to_32);
HWY_EXPORT(up_to_64);
HWY_EXPORT(ordered_columns);

void write_keys(const KeyRow& row, std::int64_t begin, std::int64_t end, void* keys) {
  HWY_DYNAMIC_DISPATCH(keys_of)(row, begin, end, keys);
}
std::int64_t least_of_groups(const std::uint32_t* keys, std::int64_t n, std::int64_t share,
                             std::uint32_t* least) {
  return HWY_DYNAMIC_DISPATCH(least_of_32)(keys, n, share, least);
}
std::int64_t least_of_groups(const std::uint64_t* keys, std::int64_t n, std::int64_t share,
                             std::uint64_t* least) {
  return HWY_DYNAMIC_DISPATCH(least_of_64)(keys, n, share, least);
}
std::int64_t find_up_to(const std::uint32_t* keys, std::int64_t n, std::uint32_t bound,
                        std::uint32_t* places) {
  return HWY_DYNAMIC_DISPATCH(up_to_32)(keys, n, bound, places);
}
std::int64_t find_up_to(const std::uint64_t* keys, std::int64_t n, std::uint64_t bound,
                        std::uint32_t* places) {
  return HWY_DYNAMIC_DISPATCH(up_to_64)(keys, n, bound, places);
}
void order_columns(const std::uint32_t* keys, std::int64_t n, std::span<const Exchange> network,
                   std::uint64_t* cells, std::int64_t first, std::int64_t count, std::uint32_t* places) {
  HWY_DYNAMIC_DISPATCH(ordered_columns)(keys, n, network, cells, first, count, places);
}

}  // namespace caldera::cpu
#endif
