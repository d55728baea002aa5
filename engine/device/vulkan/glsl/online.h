// Sums that follow from a row's maximum, added up in the walk that looks for it (Milakov and Gimelshein,
// 2018): what was added up by then is brought to each new maximum.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/device/vulkan/glsl/source.h"
#include "engine/plan/kernel/row_walks.h"

namespace caldera {

/// sum = row_sum(exp(x - maximum)), or with `picks` row_sum(select(condition, x - maximum, other)), where
/// maximum = row_max(x), all f32.
struct OnlineSum {
  std::uint16_t sum = 0, maximum = 0, x = 0;
  bool picks = false;
  std::uint16_t condition = 0, other = 0;
};

/// The sums that walk number `pass` + 1 is for, where all of its reductions are such of maxima that walk
/// number `pass` finds and of values known by then. Else none.
std::vector<OnlineSum> online_sums(const Kernel& kernel, const RowPhases& phases, const RowWalks& plan,
                                   int pass);

/// The statements. Of maximum m the register v<m> is the largest so far, u<m> that which sums are relative
/// to.
class GlslOnline {
 public:
  GlslOnline(std::vector<OnlineSum> sums, int width, GlslBody& body);

  void declare();
  /// Ahead of a group's points: what it keeps of them.
  void begin_group();
  /// At point `e` of it, when values are known.
  void note_point();
  /// After its points, when v<m> is their maximum too.
  void end_group();
  /// When v<m> is that of the row: brings the lane's sums to it.
  void finish();
  /// When the sums of all lanes are one: of a maximum that is no number they are not, either.
  void settle();

  const std::vector<OnlineSum>& sums() const { return sums_; }

 private:
  void rescale(const OnlineSum& sum);

  std::vector<OnlineSum> sums_;
  std::vector<std::uint16_t> maxima_;
  std::vector<std::uint16_t> numbers_;  // x of each
  const int width_;
  GlslBody& body_;
};

}  // namespace caldera
