#include "engine/device/cpu/convolution/winograd_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/convolution/winograd_ops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V times(float factor, V x) { return hn::Mul(hn::Set(D(), factor), x); }
/// factor * x + y.
HWY_INLINE V plus(float factor, V x, V y) { return hn::MulAdd(hn::Set(D(), factor), x, y); }

/// B^T.
struct OfImage {
  static constexpr int kIn = 6, kOut = 6;
  static HWY_INLINE void apply(const V* x, V* y) {
    y[0] = plus(4, x[0], plus(-5, x[2], x[4]));
    y[5] = plus(4, x[1], plus(-5, x[3], x[5]));
    const V even = plus(-4, x[2], x[4]), odd = plus(-4, x[1], x[3]);
    y[1] = hn::Add(even, odd);
    y[2] = hn::Sub(even, odd);
    const V far = hn::Sub(x[4], x[2]), near = times(2, hn::Sub(x[3], x[1]));
    y[3] = hn::Add(far, near);
    y[4] = hn::Sub(far, near);
  }
};
/// G.
struct OfWeight {
  static constexpr int kIn = 3, kOut = 6;
  static HWY_INLINE void apply(const V* x, V* y) {
    y[0] = times(0.25F, x[0]);
    const V sum = times(-1.0F / 6, hn::Add(x[0], x[2]));
    y[1] = plus(-1.0F / 6, x[1], sum);
    y[2] = plus(1.0F / 6, x[1], sum);
    const V wide = plus(1.0F / 24, x[0], times(1.0F / 6, x[2]));
    y[3] = plus(1.0F / 12, x[1], wide);
    y[4] = plus(-1.0F / 12, x[1], wide);
    y[5] = x[2];
  }
};
/// A^T.
struct OfResult {
  static constexpr int kIn = 6, kOut = 4;
  static HWY_INLINE void apply(const V* x, V* y) {
    const V s = hn::Add(x[1], x[2]), d = hn::Sub(x[1], x[2]), t = hn::Add(x[3], x[4]),
            e = hn::Sub(x[3], x[4]);
    y[0] = hn::Add(x[0], hn::Add(s, t));
    y[1] = plus(2, e, d);
    y[2] = plus(4, t, s);
    y[3] = plus(8, e, hn::Add(d, x[5]));
  }
};
/// A.
struct OfResultGradient {
  static constexpr int kIn = 4, kOut = 6;
  static HWY_INLINE void apply(const V* x, V* y) {
    y[0] = x[0];
    const V even = hn::Add(x[0], x[2]), odd = hn::Add(x[1], x[3]);
    y[1] = hn::Add(even, odd);
    y[2] = hn::Sub(even, odd);
    const V far = plus(4, x[2], x[0]), near = plus(8, x[3], times(2, x[1]));
    y[3] = hn::Add(far, near);
    y[4] = hn::Sub(far, near);
    y[5] = x[3];
  }
};
/// G^T.
struct OfWeightGradient {
  static constexpr int kIn = 6, kOut = 3;
  static HWY_INLINE void apply(const V* x, V* y) {
    const V s = hn::Add(x[1], x[2]), d = hn::Sub(x[2], x[1]), t = hn::Add(x[3], x[4]),
            e = hn::Sub(x[3], x[4]);
    y[0] = plus(0.25F, x[0], plus(1.0F / 24, t, times(-1.0F / 6, s)));
    y[1] = plus(1.0F / 12, e, times(1.0F / 6, d));
    y[2] = hn::Add(x[5], times(1.0F / 6, hn::Sub(t, s)));
  }
};

/// The matrix from the left, and its transpose from the right.
template <class M>
void both_sides(std::int64_t vectors, const float* HWY_RESTRICT from, std::int64_t from_row,
                std::int64_t from_column, float* HWY_RESTRICT to, std::int64_t to_row,
                std::int64_t to_column) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t v = 0; v < vectors; ++v, from += lanes, to += lanes) {
    V half[M::kOut][M::kIn];
    for (int j = 0; j < M::kIn; ++j) {
      V in[M::kIn], out[M::kOut];
      for (int i = 0; i < M::kIn; ++i) in[i] = hn::LoadU(d, from + i * from_row + j * from_column);
      M::apply(in, out);
      for (int i = 0; i < M::kOut; ++i) half[i][j] = out[i];
    }
    for (int i = 0; i < M::kOut; ++i) {
      V out[M::kOut];
      M::apply(half[i], out);
      for (int j = 0; j < M::kOut; ++j) hn::StoreU(out[j], d, to + i * to_row + j * to_column);
    }
  }
}

}  // namespace

const WinogradOps& all_winograd() {
  static const WinogradOps kAll{.lanes = static_cast<std::int64_t>(hn::Lanes(D())),
                                .image = both_sides<OfImage>,
                                .weight = both_sides<OfWeight>,
                                .result = both_sides<OfResult>,
                                .result_gradient = both_sides<OfResultGradient>,
                                .weight_gradient = both_sides<OfWeightGradient>};
  return kAll;
}

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {

HWY_EXPORT(all_winograd);

const WinogradOps& winograd_ops() {
  static const WinogradOps& all = HWY_DYNAMIC_DISPATCH(all_winograd)();
  return all;
}

}  // namespace caldera::cpu
#endif  // HWY_ONCE
