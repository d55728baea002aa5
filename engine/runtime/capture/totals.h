// Totals: numbers that the program has not asked for, but keeps, and that need what an evaluation is about to
// replace. Internal to the runtime.
//
// `total += loss; w = w - lr * g; eval(w);` leaves a total that needs the old w, the batch, and all totals
// before it: read at the end of an epoch, it would have kept every step's parameters, and computed every
// step's loss again. So what is a single number, was built by the same thread, is held, and needs data that
// nothing else holds is computed along with what was asked for.
#pragma once

#include <vector>

#include "engine/graph/node.h"
#include "engine/runtime/capture/graph_key.h"

namespace caldera {

/// Finds such numbers for a capture that is filled, and adds an owner to each. Under graph_mutex().
std::vector<NodePtr> find_totals(const GraphKey& c);

}  // namespace caldera
