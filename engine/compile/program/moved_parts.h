// Positions that are arguments of a plan, and no part of its key: those of slices of stored data, of zero and
// other paddings, and of the operations that take numbers for them (OpClass::dynamic_slice, dynamic_update).
#pragma once

#include <cstdint>

#include "engine/compile/program/program.h"
#include "engine/graph/node.h"

namespace caldera {

/// Says what a slice takes of an axis of its operand, or a padding covers of one of its result.
struct PartAxis {
  std::int64_t first = 0;  // the lowest element
  std::int64_t step = 1;   // from element to element; negative: the first comes last
  std::int64_t reach = 0;  // from the lowest to the highest
  bool moves = false;      // there is more than one place for it
};

/// Whether it is a slice of some elements of stored data, or of a view of such, with places to choose from.
/// What is sliced of other values is structure: it decides what is computed together.
bool is_movable_slice(const Node& node);
/// Whether it is a padding whose contents could be elsewhere in the result. Under graph_mutex(), both.
bool is_movable_pad(const Node& node);

/// Calls visit(PartAxis) for every axis of such a slice or padding.
template <class Visit>
void for_each_axis(const Node& node, Visit visit) {
  const bool pads = node.op().kind == OpClass::pad;
  const Node& operand = *node.inputs()[0];
  const Shape& whole = pads ? node.shape() : operand.shape();
  const Shape& part = pads ? operand.shape() : node.shape();
  const auto attributes = node.attributes();
  const auto rank = static_cast<std::size_t>(whole.rank());
  for (std::size_t d = 0; d < rank; ++d) {
    const auto axis = static_cast<int>(d);
    const std::int64_t step = pads ? attributes[2 * rank + d] + 1 : attributes[rank + d];
    const std::int64_t way = (part[axis] - 1) * step;
    const std::int64_t reach = way < 0 ? -way : way;
    visit(PartAxis{.first = attributes[d] + (way < 0 ? way : 0),
                   .step = step,
                   .reach = reach,
                   .moves = reach + 1 < whole[axis]});
  }
}

/// Makes of the program's slice or padding `n`, which stands for `node`, one that the next positions move:
/// a dynamic_slice, or a padding with a fourth block of attributes, the slots. `position` counts them.
void name_positions(Program& program, Program::Node& n, const Node& node, std::int64_t& position);
/// Names the numbers that move the program's dynamic_slice or dynamic_update by their slots, in place of
/// inputs.
void name_slots(Program& program, Program::Node& n);

}  // namespace caldera
