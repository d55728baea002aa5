#include "lm/formats/quantize/scale_search.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lm/formats/quantize/scale_search.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef CALDERA_SCALE_GROUPS
#define CALDERA_SCALE_GROUPS
namespace caldera::detail {

/// Value i of group g stands at i * kScaleGroups + g. Each group's largest magnitude is 1 (or 0).
struct ScaleGroups {
  alignas(64) std::array<float, kScaleGroups * kScaleGroup> values;
  alignas(64) std::array<float, kScaleGroups * kScaleGroup> weights;
  alignas(64) std::array<float, kScaleGroups> lowest;  // at most 0
  alignas(64) std::array<float, kScaleGroups> range;
  alignas(64) std::array<float, kScaleGroups> scale;
  alignas(64) std::array<float, kScaleGroups> minimum;
};

}  // namespace caldera::detail
#endif

HWY_BEFORE_NAMESPACE();
namespace caldera::detail {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, kScaleGroups>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

/// The search for as many groups as a vector has lanes, from `first` on.
class GroupSearch {
 public:
  GroupSearch(const ScaleGroups& groups, std::size_t first, int most)
      : groups_(groups), first_(first), most_(hn::Set(D(), static_cast<float>(most))) {
    for (std::size_t i = 0; i < kScaleGroup; ++i) {
      weight_ = hn::Add(weight_, weight(i));
      weighted_ = hn::Add(weighted_, hn::Mul(weight(i), value(i)));
    }
  }

  void run(ScaleGroups& found) {
    const D d;
    const V lowest = hn::Load(d, groups_.lowest.data() + first_);
    const V range = hn::Load(d, groups_.range.data() + first_);
    best_minimum_ = hn::Neg(lowest);
    constexpr int kSteps = 24;
    for (int step = -kSteps / 2; step <= kSteps / 2; ++step) {
      V scale = hn::Div(range, hn::Add(most_, hn::Set(d, 0.1F * static_cast<float>(step))));
      V minimum = hn::Neg(lowest);
      M active = hn::Gt(range, hn::Zero(d));
      // Codes, then the best scale and minimum for them, and once more with what that gives.
      for (int round = 0; round < 3; ++round) active = improve(scale, minimum, active);
    }
    hn::Store(best_scale_, d, found.scale.data() + first_);
    hn::Store(best_minimum_, d, found.minimum.data() + first_);
  }

 private:
  V value(std::size_t i) const { return hn::Load(D(), groups_.values.data() + i * kScaleGroups + first_); }
  V weight(std::size_t i) const { return hn::Load(D(), groups_.weights.data() + i * kScaleGroups + first_); }

  /// Considers a scale and a minimum, and makes them the best for the codes that they give; says where there
  /// are such.
  M improve(V& scale, V& minimum, M active) {
    const D d;
    const V zero = hn::Zero(d);
    const V inverse = hn::Div(hn::Set(d, 1.0F), scale);
    V error = zero, codes = zero, squares = zero, products = zero;
    for (std::size_t i = 0; i < kScaleGroup; ++i) {
      const V x = value(i), w = weight(i);
      const V code = hn::Min(hn::Max(hn::Round(hn::Mul(hn::Add(x, minimum), inverse)), zero), most_);
      const V off = hn::Sub(hn::Sub(hn::Mul(scale, code), minimum), x);
      const V weighted = hn::Mul(w, code);
      error = hn::Add(error, hn::Mul(hn::Mul(w, off), off));
      codes = hn::Add(codes, weighted);
      squares = hn::Add(squares, hn::Mul(weighted, code));
      products = hn::Add(products, hn::Mul(weighted, x));
    }
    const M better = hn::And(active, hn::Lt(error, best_error_));
    best_error_ = hn::IfThenElse(better, error, best_error_);
    best_scale_ = hn::IfThenElse(better, scale, best_scale_);
    best_minimum_ = hn::IfThenElse(better, minimum, best_minimum_);

    const V determinant = hn::Sub(hn::Mul(weight_, squares), hn::Mul(codes, codes));
    active = hn::And(active, hn::Gt(determinant, zero));
    const V solved = hn::Div(hn::Sub(hn::Mul(weight_, products), hn::Mul(weighted_, codes)), determinant);
    const V shift = hn::Div(hn::Sub(hn::Mul(codes, products), hn::Mul(squares, weighted_)), determinant);
    const M below = hn::Lt(shift, zero);  // the format has no negative one
    scale = hn::IfThenElse(below, hn::Div(products, squares), solved);
    minimum = hn::IfThenElse(below, zero, shift);
    return hn::And(active, hn::Gt(scale, zero));
  }

  const ScaleGroups& groups_;
  std::size_t first_;
  V most_;
  V weight_ = hn::Zero(D());    // of all values
  V weighted_ = hn::Zero(D());  // all values, each times its weight
  V best_error_ = hn::Inf(D());
  V best_scale_ = hn::Zero(D());
  V best_minimum_ = hn::Zero(D());
};

void search_groups(ScaleGroups& groups, int most) {
  for (std::size_t first = 0; first < kScaleGroups; first += hn::Lanes(D()))
    GroupSearch(groups, first, most).run(groups);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::detail {
HWY_EXPORT(search_groups);

std::array<ScaleAndMinimum, kScaleGroups> search_scales(std::span<const float, kScaleGroups * kScaleGroup> x,
                                                        int most) {
  ScaleGroups groups{};
  std::array<float, kScaleGroups> largest{};
  for (std::size_t g = 0; g < kScaleGroups; ++g) {
    const auto group = x.subspan(g * kScaleGroup, kScaleGroup);
    for (const float v : group) largest[g] = std::max(largest[g], std::abs(v));
    if (largest[g] == 0) continue;
    float squares = 0, low = 0, high = -1;
    for (std::size_t i = 0; i < kScaleGroup; ++i) {
      const float v = group[i] / largest[g];  // of magnitude 1: no square overflows or vanishes
      groups.values[i * kScaleGroups + g] = v;
      squares += v * v;
      low = std::min(low, v);
      high = std::max(high, v);
    }
    const float typical = std::sqrt(squares / static_cast<float>(kScaleGroup));
    for (std::size_t i = 0; i < kScaleGroup; ++i) {
      const std::size_t at = i * kScaleGroups + g;
      groups.weights[at] = typical + std::abs(groups.values[at]);
    }
    groups.lowest[g] = low;
    groups.range[g] = high - low;
  }
  HWY_DYNAMIC_DISPATCH(search_groups)(groups, most);
  std::array<ScaleAndMinimum, kScaleGroups> found;
  for (std::size_t g = 0; g < kScaleGroups; ++g)
    found[g] = {.scale = groups.scale[g] * largest[g], .minimum = groups.minimum[g] * largest[g]};
  return found;
}

}  // namespace caldera::detail
#endif
