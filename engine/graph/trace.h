// Trace: the time during which evaluated nodes keep their inputs, so that they can still be differentiated.
#pragma once

#include <atomic>
#include <vector>

#include "engine/graph/node.h"

namespace caldera {

/// Shared by the nodes built, directly or not, from the arguments of one function under differentiation.
/// Nodes built after the end carry it too, and it means nothing to them.
struct Trace {
  std::atomic<bool> active{true};
  std::vector<NodePtr> kept;  // evaluated while active, with their inputs. Guarded by graph_mutex()
};

/// Ends the trace: from here on its nodes drop their inputs when evaluated, and those that were evaluated
/// drop them now. Without this, a parameter updated from traced gradients would keep every earlier step
/// alive.
void end_trace(Trace& trace);

}  // namespace caldera
