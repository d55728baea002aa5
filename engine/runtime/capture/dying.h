// Dying: which nodes of a graph nobody needs any longer once its outputs have values. Internal to the
// runtime.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/runtime/capture/graph_key.h"

namespace caldera {

/// Supposes that the outputs of a capture let go of their inputs: a node whose owners were all such inputs
/// goes away, and lets go of its own. The owners of a node are counted by its references. A count equal to
/// those found here cannot grow: another owner could only come by the node through one of them, and nobody
/// walks graphs while the mutex is held. Under graph_mutex(), for as long as that is held.
class Dying {
 public:
  explicit Dying(const GraphKey& c);
  bool operator[](std::size_t position) const { return states_[position].is_dying; }

  /// Supposes that these nodes, of each of which the caller is an owner for the moment, let go of their
  /// inputs as well.
  void release_inputs_of(std::span<const NodePtr> nodes);

 private:
  struct State {
    std::uint32_t released = 0;
    bool is_output = false;
    bool is_dying = false;
    bool has_dropped = false;  // its inputs
  };

  State& state_of(const Node& node);
  void drop_inputs(const Node& node);
  void release(const Node& node);
  void run();

  const std::vector<Node*>& order_;
  std::vector<State> states_;                         // by position
  std::unordered_map<const Node*, State> elsewhere_;  // of nodes that are not in the capture
  std::vector<const Node*> droppers_;                 // whose inputs are yet to be released
};

}  // namespace caldera
