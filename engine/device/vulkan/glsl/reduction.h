// Combining elements along a row: the accumulator of an invocation, and what those of a workgroup become
// together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/device/vulkan/glsl/source.h"

namespace caldera {

/// One reduction. Its accumulator, in the end its result, is the register `name`.
struct GlslReduction {
  Combine combine = Combine::sum;
  DType type = DType::f32;
  std::string name;
  bool few = false;  // elements an invocation

  /// Sums of f32 go through blocks of 256 elements, so that a long sum loses little.
  bool in_blocks() const { return combine == Combine::sum && type == DType::f32 && !few; }
  /// Whether NaN is noted: of f32 the built-in maximum and minimum may drop it, so the largest bits but the
  /// sign go beside, in the register `name`_bits, and tell at the end whether there was one.
  bool notes_nan() const {
    return (combine == Combine::maximum || combine == Combine::minimum) && type == DType::f32;
  }
};

/// The reductions of one walk along a row.
class GlslReductions {
 public:
  GlslReductions(std::vector<GlslReduction> list, GlslBody& body) : list_(std::move(list)), body_(body) {}

  /// Before the walk: declares the accumulators.
  void declare();
  /// One element, a register's name, joins reduction `r`. Until finish() NaN may be lost in the accumulator.
  void add(std::size_t r, const std::string& value);
  /// Last at every point, or at every `points` that are added one after the other: a power of two.
  void end_point(int points = 1);
  /// After the walk.
  void finish();
  /// Whether combine_lanes() goes through shared memory and has a barrier.
  bool share(const GlslOptions& options, int lanes) const;
  /// The accumulators of all lanes become one, in an order that depends on the device only; in every lane, or
  /// if not `everywhere` in lane 0. Appends what it keeps in shared memory to `shared`. `again`: the
  /// workgroup may come here again without another barrier in between.
  void combine_lanes(const GlslOptions& options, int lanes, bool everywhere, bool again, std::string& shared);

 private:
  void combine_subgroup(const GlslReduction& r);
  /// The counter of elements, or empty.
  std::string counter() const;

  std::vector<GlslReduction> list_;
  GlslBody& body_;
};

/// Whether workgroups of `lanes` are single subgroups.
inline bool single_subgroup(const GlslOptions& options, int lanes) {
  return options.subgroup_size > 0 && options.exact_subgroup_size &&
         lanes == static_cast<int>(options.subgroup_size);
}

}  // namespace caldera
