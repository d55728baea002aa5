#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine/device/cpu/attention/key_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/attention/key_row_ops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/lane_sums-inl.h"
#include "engine/device/cpu/simd/widening-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Queries whose sums are in registers together.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr int kQueriesTogether = 2;
#else
constexpr int kQueriesTogether = 4;
#endif
/// Keys whose products are added up along the lanes together.
constexpr int kKeysTogether = 4;
/// Sums that do not wait for one another.
constexpr int kChains = 4;

constexpr std::int64_t kBlock = 32, kBlockBytes = 34;

template <class D>
constexpr std::int64_t lanes_of(D d) {
  return static_cast<std::int64_t>(hn::MaxLanes(d));
}

/// Numbers of a row that have one scale, or as many as a vector has.
template <class D, RowForm kForm>
constexpr std::int64_t unit_of() {
  return kForm == RowForm::q8_0 ? kBlock : lanes_of(D());
}

/// One unit of a row, from number `first` on: its vectors are at 0, a vector's lanes, ...
template <class D, RowForm kForm>
class Unit {
 public:
  using V = hn::Vec<D>;

  HWY_INLINE Unit(const std::byte* row, std::int64_t first, const float* halves) {
    if constexpr (kForm == RowForm::q8_0) {
      const std::byte* block = row + first / kBlock * kBlockBytes;
      std::uint16_t bits = 0;
      std::memcpy(&bits, block, sizeof bits);
      scale_ = halves[bits];
      at_ = block + sizeof bits + first % kBlock;
    } else {
      (void)halves;
      at_ = row + first * (kForm == RowForm::f32 ? 4 : 2);
    }
  }

  HWY_INLINE V at(std::int64_t j) const {
    const D d;
    if constexpr (kForm == RowForm::f32) {
      return hn::LoadU(d, reinterpret_cast<const float*>(at_) + j);
    } else if constexpr (kForm == RowForm::q8_0) {
      const hn::RebindToSigned<D> words;
      const hn::Rebind<std::int8_t, D> bytes;
      const auto codes = hn::LoadU(bytes, reinterpret_cast<const std::int8_t*>(at_) + j);
      return hn::Mul(hn::ConvertTo(d, hn::PromoteTo(words, codes)), hn::Set(d, scale_));
    } else {
      const auto* halves = reinterpret_cast<const std::uint16_t*>(at_) + j;
      return kForm == RowForm::bf16 ? widened_bf16(d, halves) : widened_f16(d, halves);
    }
  }

 private:
  const std::byte* at_;
  float scale_ = 1;
};

template <class D, RowForm kForm, int kQueries>
HWY_INLINE void dots_of_four(const float* q, std::int64_t q_row, const std::byte* const* rows,
                             const float* halves, std::int64_t width, float* scores, std::int64_t leading) {
  const D d;
  using V = hn::Vec<D>;
  V sums[kQueries][kKeysTogether];
  for (auto& query : sums)
    for (V& sum : query) sum = hn::Zero(d);
  using Keys = Unit<D, kForm>;
  for (std::int64_t first = 0; first < width; first += unit_of<D, kForm>()) {
    const Keys a(rows[0], first, halves), b(rows[1], first, halves), c(rows[2], first, halves),
        e(rows[3], first, halves);
    for (std::int64_t j = 0; j < unit_of<D, kForm>(); j += lanes_of(d)) {
      const V of_a = a.at(j), of_b = b.at(j), of_c = c.at(j), of_e = e.at(j);
      for (int m = 0; m < kQueries; ++m) {
        const V query = hn::LoadU(d, q + m * q_row + first + j);
        sums[m][0] = hn::MulAdd(query, of_a, sums[m][0]);
        sums[m][1] = hn::MulAdd(query, of_b, sums[m][1]);
        sums[m][2] = hn::MulAdd(query, of_c, sums[m][2]);
        sums[m][3] = hn::MulAdd(query, of_e, sums[m][3]);
      }
    }
  }
  for (int m = 0; m < kQueries; ++m) store_sums(d, sums[m], scores + m * leading);
}

/// Keys from one that is read to one that is asked for, where rows are apart: no processor foresees them.
constexpr std::int64_t kKeysAhead = 16;
constexpr std::int64_t kLine = 64;

/// Asks for the bytes [first, last) of the row of a key ahead of n.
HWY_INLINE void ask_ahead(const KeyRows& rows, std::int64_t n, std::int64_t keys, std::int64_t first,
                          std::int64_t last) {
  const std::byte* row = rows.at(std::min(n + kKeysAhead, keys - 1));
  for (std::int64_t at = first; at < last; at += kLine) hwy::Prefetch(row + at);
}

template <RowForm kForm>
constexpr std::int64_t bytes_of(std::int64_t numbers) {
  return kForm == RowForm::q8_0 ? numbers / kBlock * kBlockBytes : numbers * (kForm == RowForm::f32 ? 4 : 2);
}

/// Whether rows are worth asking for one by one.
template <RowForm kForm>
bool are_apart(const KeyRows& rows, std::int64_t width) {
  const std::int64_t bytes = bytes_of<kForm>(width);
  return bytes >= kLine && (rows.numbers != nullptr || rows.stride != bytes);
}

template <class D, RowForm kForm>
void dots(const float* q, std::int64_t q_row, std::int64_t queries, const KeyRows& rows, std::int64_t keys,
          std::int64_t width, float* scores, std::int64_t leading) {
  const bool apart_rows = are_apart<kForm>(rows, width);
  for (std::int64_t n = 0; n < keys; n += kKeysTogether) {
    const std::int64_t few = std::min<std::int64_t>(keys - n, kKeysTogether);
    const std::byte* at[kKeysTogether];
    for (std::int64_t i = 0; i < kKeysTogether; ++i) at[i] = rows.at(n + std::min(i, few - 1));
    for (std::int64_t i = 0; apart_rows && i < kKeysTogether; ++i)
      ask_ahead(rows, n + i, keys, 0, bytes_of<kForm>(width));
    float last[kQueriesTogether * kKeysTogether];
    for (std::int64_t m = 0; m < queries;) {
      const float* query = q + m * q_row;
      float* to = few == kKeysTogether ? scores + m * leading + n : last;
      const std::int64_t apart = few == kKeysTogether ? leading : kKeysTogether;
      int count = 1;
      if (queries - m >= kQueriesTogether) {
        count = kQueriesTogether;
        dots_of_four<D, kForm, kQueriesTogether>(query, q_row, at, rows.halves, width, to, apart);
      } else if (queries - m >= 2) {
        count = 2;
        dots_of_four<D, kForm, 2>(query, q_row, at, rows.halves, width, to, apart);
      } else {
        dots_of_four<D, kForm, 1>(query, q_row, at, rows.halves, width, to, apart);
      }
      if (few < kKeysTogether)
        for (int i = 0; i < count; ++i)
          std::copy_n(last + i * kKeysTogether, few, scores + (m + i) * leading + n);
      m += count;
    }
  }
}

/// Calls body(0) ... body(kCount - 1) with numbers that are constants, so that what they index is in
/// registers.
template <int kCount, class Body>
HWY_INLINE void repeat(const Body& body) {
  [&]<int... kEach>(std::integer_sequence<int, kEach...>) HWY_ATTR {
    (body(std::integral_constant<int, kEach>()), ...);
  }
  (std::make_integer_sequence<int, kCount>());
}

template <class D, RowForm kForm, int kQueries, int kVectors>
HWY_INLINE void mix_part(const float* weights, std::int64_t leading, const KeyRows& rows, std::int64_t keys,
                         std::int64_t first, std::int64_t width, float* sums, bool add) {
  const D d;
  using V = hn::Vec<D>;
  constexpr int kSteps = std::max(1, kChains / (kQueries * kVectors));
  constexpr int kEach = kQueries * kVectors;
  constexpr std::int64_t kUnit = unit_of<D, kForm>();
  const bool apart_rows = are_apart<kForm>(rows, width);
  const std::int64_t lanes = lanes_of(d);
  V all[kSteps * kEach];
  const auto place = [&](int i)
                         HWY_ATTR { return sums + i / kVectors * width + first + i % kVectors * lanes; };
  repeat<kSteps * kEach>(
      [&](auto i) HWY_ATTR { all[i] = add && i < kEach ? hn::LoadU(d, place(i % kEach)) : hn::Zero(d); });
  const auto take = [&](auto step, std::int64_t n) HWY_ATTR {
    const std::byte* row = rows.at(n);
    if (apart_rows)
      ask_ahead(rows, n, keys, bytes_of<kForm>(first), bytes_of<kForm>(first + kVectors * lanes));
    V values[kVectors];
    repeat<kVectors>([&](auto v) HWY_ATTR {
      const std::int64_t at = first + v * lanes;
      values[v] = Unit<D, kForm>(row, at - at % kUnit, rows.halves).at(at % kUnit);
    });
    repeat<kQueries>([&](auto m) HWY_ATTR {
      const V weight = hn::Set(d, weights[m * leading + n]);
      repeat<kVectors>([&](auto v) HWY_ATTR {
        V& sum = all[step * kEach + m * kVectors + v];
        sum = hn::MulAdd(weight, values[v], sum);
      });
    });
  };
  std::int64_t n = 0;
  for (; n + kSteps <= keys; n += kSteps) repeat<kSteps>([&](auto step) HWY_ATTR { take(step, n + step); });
  for (; n < keys; ++n) take(std::integral_constant<int, 0>(), n);
  repeat<kEach>([&](auto i) HWY_ATTR {
    V sum = all[i];
    repeat<kSteps - 1>([&](auto step) HWY_ATTR { sum = hn::Add(sum, all[(step + 1) * kEach + i]); });
    hn::StoreU(sum, d, place(i));
  });
}

template <class D, RowForm kForm, int kQueries>
HWY_INLINE void mix_rows(const float* weights, std::int64_t leading, const KeyRows& rows, std::int64_t keys,
                         std::int64_t width, float* sums, bool add) {
  const std::int64_t lanes = lanes_of(D());
  std::int64_t first = 0;
  for (; first + 4 * lanes <= width; first += 4 * lanes)
    mix_part<D, kForm, kQueries, 4>(weights, leading, rows, keys, first, width, sums, add);
  for (; first + 2 * lanes <= width; first += 2 * lanes)
    mix_part<D, kForm, kQueries, 2>(weights, leading, rows, keys, first, width, sums, add);
  for (; first < width; first += lanes)
    mix_part<D, kForm, kQueries, 1>(weights, leading, rows, keys, first, width, sums, add);
}

template <class D, RowForm kForm>
void mix(const float* weights, std::int64_t leading, std::int64_t queries, const KeyRows& rows,
         std::int64_t keys, std::int64_t width, float* sums, bool add) {
  for (std::int64_t m = 0; m < queries;) {
    const float* from = weights + m * leading;
    float* to = sums + m * width;
    if (queries - m >= kQueriesTogether) {
      mix_rows<D, kForm, kQueriesTogether>(from, leading, rows, keys, width, to, add);
      m += kQueriesTogether;
    } else if (queries - m >= 2) {
      mix_rows<D, kForm, 2>(from, leading, rows, keys, width, to, add);
      m += 2;
    } else {
      mix_rows<D, kForm, 1>(from, leading, rows, keys, width, to, add);
      ++m;
    }
  }
}

template <class D, RowForm kForm>
void widen(const KeyRows& rows, std::int64_t keys, std::int64_t width, float* to) {
  for (std::int64_t n = 0; n < keys; ++n, to += width) {
    const std::byte* row = rows.at(n);
    for (std::int64_t first = 0; first < width; first += unit_of<D, kForm>()) {
      const Unit<D, kForm> unit(row, first, rows.halves);
      for (std::int64_t j = 0; j < unit_of<D, kForm>(); j += lanes_of(D()))
        hn::StoreU(unit.at(j), D(), to + first + j);
    }
  }
}

/// Calls with(tag, form): the widest vectors that divide a row.
template <class With>
void with_row(RowForm form, std::int64_t width, const With& with) {
  const auto of_form = [&](auto d) {
    using D = decltype(d);
    switch (form) {
      case RowForm::f32:
        return with.template operator()<D, RowForm::f32>();
      case RowForm::f16:
        return with.template operator()<D, RowForm::f16>();
      case RowForm::bf16:
        return with.template operator()<D, RowForm::bf16>();
      case RowForm::q8_0:
        return with.template operator()<D, RowForm::q8_0>();
    }
  };
  using Widest = hn::CappedTag<float, 16>;
  using Middle = hn::CappedTag<float, 8>;
  if (width % lanes_of(Widest()) == 0) return of_form(Widest());
  if (width % lanes_of(Middle()) == 0) return of_form(Middle());
  of_form(hn::CappedTag<float, 4>());
}

void dots_any(const float* q, std::int64_t q_row, std::int64_t queries, const KeyRows& rows,
              std::int64_t keys, std::int64_t width, float* scores, std::int64_t leading) {
  with_row(rows.form, width, [&]<class D, RowForm kForm>() {
    dots<D, kForm>(q, q_row, queries, rows, keys, width, scores, leading);
  });
}
void mix_any(const float* weights, std::int64_t leading, std::int64_t queries, const KeyRows& rows,
             std::int64_t keys, std::int64_t width, float* sums, bool add) {
  with_row(rows.form, width, [&]<class D, RowForm kForm>() {
    mix<D, kForm>(weights, leading, queries, rows, keys, width, sums, add);
  });
}
void widen_any(const KeyRows& rows, std::int64_t keys, std::int64_t width, float* to) {
  with_row(rows.form, width, [&]<class D, RowForm kForm>() { widen<D, kForm>(rows, keys, width, to); });
}

const KeyRowOps* key_row_ops_of_target() {
  static constexpr KeyRowOps ops{dots_any, mix_any, widen_any};
  return &ops;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {

const std::byte* KeyRows::nan_row(RowForm form) {
  struct Rows {
    std::array<float, kWidestRow> f32;
    std::array<std::uint16_t, kWidestRow> f16, bf16, blocks;
  };
  static const Rows kRows = [] {
    Rows r;
    r.f32.fill(std::numeric_limits<float>::quiet_NaN());
    r.f16.fill(0x7e00);
    r.bf16.fill(0x7fc0);
    r.blocks.fill(0x7e00);  // scales that are no numbers; the codes do not matter
    return r;
  }();
  switch (form) {
    case RowForm::f32:
      break;
    case RowForm::f16:
      return reinterpret_cast<const std::byte*>(kRows.f16.data());
    case RowForm::bf16:
      return reinterpret_cast<const std::byte*>(kRows.bf16.data());
    case RowForm::q8_0:
      return reinterpret_cast<const std::byte*>(kRows.blocks.data());
  }
  return reinterpret_cast<const std::byte*>(kRows.f32.data());
}

HWY_EXPORT(key_row_ops_of_target);
const KeyRowOps& key_row_ops() {
  static const KeyRowOps& ops = *HWY_DYNAMIC_DISPATCH(key_row_ops_of_target)();
  return ops;
}
}  // namespace caldera::cpu
#endif
