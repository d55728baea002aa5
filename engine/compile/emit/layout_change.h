// A dense buffer whose elements come to be elsewhere, and what that makes of operands.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera {

class LayoutChange {
 public:
  /// Returns the change that a step makes which copies all of an arena buffer to another one, or to a part of
  /// any; none if it is another kind of step.
  static std::optional<LayoutChange> of(const Plan& plan, const Step& step);

  std::int32_t from() const { return from_; }
  std::int32_t to() const { return to_; }
  /// Whether the elements are all of the second buffer, which is in the arena then; else a part, which a
  /// position may move.
  bool is_whole() const { return is_whole_; }
  std::int32_t position() const { return position_; }

  /// Says what an operand's dimension becomes: several, outermost first, where its elements no longer have
  /// one stride.
  struct Factor {
    std::int64_t extent = 1;
    std::int64_t stride = 0;
    friend bool operator==(const Factor&, const Factor&) = default;
  };
  struct Mapped {
    std::int64_t offset = 0;
    std::vector<std::vector<Factor>> dims;
  };
  /// Returns the operand that names the same elements of the other buffer. None if no strides say so, or what
  /// was side by side would not be.
  std::optional<Mapped> map(const Operand& operand, const Shape& extents) const;

 private:
  struct Dim {
    std::int64_t extent, from, to;  // strides in either buffer
  };
  bool is_dense(std::int64_t elements, std::int64_t Dim::*stride) const;
  /// The factors of a dimension, the coordinates that they reach added to `last`; empty if there are none.
  std::vector<Factor> factors(std::int64_t extent, std::int64_t stride,
                              std::vector<std::int64_t>& last) const;

  std::int32_t from_ = -1, to_ = -1;
  std::int64_t offset_ = 0;  // in the second buffer
  std::int32_t position_ = -1;
  bool is_whole_ = false;
  std::vector<Dim> dims_;  // by falling strides in the first buffer
};

}  // namespace caldera
