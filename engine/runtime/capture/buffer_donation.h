// Donation at replay: outputs that take the memory of inputs which nobody else holds. Internal to the
// runtime.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/plan/plan.h"
#include "engine/runtime/capture/graph_key.h"

namespace caldera {

/// Finds for each output of the capture the number of the data leaf whose storage it takes, or -1. An input
/// is given away only where the plan allows it, and where its value can be seen by nobody once this
/// evaluation is scheduled: all owners of its node are nodes that go away, and all owners of its storage are
/// that node. `may_give` says of a leaf, by its position in the walk, whether its value may go. Under
/// graph_mutex(), before any job holds the storages.
std::vector<std::int32_t> find_donors(const GraphKey& c, const Plan& plan, const std::vector<bool>& may_give);

}  // namespace caldera
