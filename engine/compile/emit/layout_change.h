// A dense buffer whose dimensions come to lie in another order, and what that makes of operands.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera {

class LayoutChange {
 public:
  /// Of a step that copies all of one arena buffer to another; none if it is another kind of step.
  static std::optional<LayoutChange> of(const Plan& plan, const Step& step);

  std::int32_t from() const { return from_; }
  std::int32_t to() const { return to_; }

  /// What an operand's dimension becomes: several, outermost first, where its elements no longer have one
  /// stride.
  struct Factor {
    std::int64_t extent = 1;
    std::int64_t stride = 0;
    friend bool operator==(const Factor&, const Factor&) = default;
  };
  struct Mapped {
    std::int64_t offset = 0;
    std::vector<std::vector<Factor>> dims;
  };
  /// The same elements of the other buffer. None if no strides say so, or what lay side by side would not.
  std::optional<Mapped> map(const Operand& operand, const Shape& extents) const;

 private:
  struct Dim {
    std::int64_t extent, from, to;  // strides in either buffer
  };
  bool is_dense(std::int64_t elements) const;
  /// The factors of a dimension, the coordinates that they reach added to `last`; empty if there are none.
  std::vector<Factor> factors(std::int64_t extent, std::int64_t stride,
                              std::vector<std::int64_t>& last) const;

  std::int32_t from_ = -1, to_ = -1;
  std::vector<Dim> dims_;  // by falling strides in the first buffer
};

}  // namespace caldera
