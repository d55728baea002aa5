// Trace: the time during which evaluated nodes keep their inputs, so that they can still be differentiated.
#pragma once

#include <atomic>
#include <vector>

namespace caldera {

class NodePtr;  // complete in engine/graph/node.h, which declares what is done with traces

/// Shared by the nodes built, directly or not, from the arguments of one function under differentiation.
/// Nodes built after the end carry it too, and it means nothing to them.
struct Trace {
  std::atomic<bool> active{true};
  std::vector<NodePtr> kept;  // evaluated while active, with their inputs. Guarded by graph_mutex()
};

}  // namespace caldera
