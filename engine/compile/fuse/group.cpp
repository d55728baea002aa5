#include "engine/compile/fuse/group.h"

#include <algorithm>

namespace caldera {

bool is_per_row(const Group& group, const Shape& extents) {
  return group.reduced != 0 && extents.numel() == group.rows && group.columns != 1;
}

std::optional<View> view_in_group(const Group& group, const Shape& member_extents, const View& view,
                                  const Shape& operand_extents) {
  if (!is_per_row(group, member_extents)) {
    if (operand_extents == group.space) return view;
    return reshape_view(view, operand_extents, group.space);
  }
  Shape kept = group.space;
  for (int axis = 0; axis < kept.rank(); ++axis) {
    if ((group.reduced >> axis & 1) != 0) kept[axis] = 1;
  }
  std::optional<View> out = operand_extents == kept ? view : reshape_view(view, operand_extents, kept);
  if (!out) return out;
  for (int axis = 0; axis < kept.rank(); ++axis) {
    if ((group.reduced >> axis & 1) != 0) out->strides[axis] = 0;
  }
  return out;
}

bool Group::is_plain_reduction(const Placement& placement) const {
  if (reduced == 0 || other != kNoRoot || outputs.size() != 1 || outputs[0] != members.back()) return false;
  // One reduction, at the end, of values that are one a point.
  return std::all_of(members.begin(), members.end(), [&](std::uint32_t m) {
    const bool reduces = placement.node(m).op->kind == OpClass::reduce;
    return m == members.back() ? reduces : !reduces && !is_per_row(*this, placement.node(m).shape);
  });
}

}  // namespace caldera
