// Finds what values have come from, before they let go of their inputs, and asks for it afterwards.
#pragma once

#include <span>
#include <vector>

#include "engine/graph/node.h"

namespace caldera {

/// Whether a gradient goes on to the node from what was computed of it.
inline bool carries_gradients(const Node& node) {
  return is_floating(node.dtype()) && !node.is_scalar_leaf();
}

/// Finds what each of `values`, which still have their inputs, has come from: null where from nothing that is
/// held. Under graph_mutex().
std::vector<OriginsPtr> origins_of(std::span<Node* const> values);
/// Finds what all of them together have come from, themselves included. Under graph_mutex().
OriginsPtr common_origins(std::span<Node* const> values);

/// Whether `value`, which was cut, has come from `x`, or may have. Never false if it did. Under
/// graph_mutex().
bool may_have_come_from(const Node& value, const Node& x);

}  // namespace caldera
