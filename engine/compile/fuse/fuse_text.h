// Prints where values live, and groups, as text for people who look into the compiler.
#pragma once

#include <string>
#include <vector>

#include "engine/compile/fuse/group.h"
#include "engine/compile/fuse/placement.h"

namespace caldera {

/// A line a node that some output needs: a root, and how it has its values, or what it is a view of.
std::string to_string(const Placement& placement);

/// A line a group: its roots, its space, and those that need memory.
std::string to_string(const Placement& placement, const std::vector<Group>& groups);

}  // namespace caldera
