// GraphKey: the graph behind some outputs on one device, in the order in which replays of its plan bind it.
// Internal to the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compile/program/program.h"
#include "engine/graph/node.h"
#include "engine/runtime/capture/device_partition.h"
#include "engine/tensor/hash.h"

namespace caldera {

/// Bytes of the node's value.
inline std::size_t bytes_of(const Node& node) {
  return static_cast<std::size_t>(node.shape().numel()) * size_of(node.dtype());
}

/// Filled anew for every evaluation; what it has allocated stays. All under graph_mutex().
struct GraphKey {
  Device device;
  std::vector<Node*> outputs;           // distinct, lazy: those asked for, then those that fill() adds
  Walk walk;                            // inputs before users
  std::vector<Node*> data;              // leaves with a value, in order of the walk
  std::vector<Node*> scalars;           // leaves that are numbers
  std::vector<std::int64_t> positions;  // of parts that take theirs as arguments: further scalars
  /// What else the program holds and is computed on the way, by its place in the walk, ascending: to be kept
  /// where the plan stores it anyway. Does not enter the hash: most of it is stored by no plan.
  std::vector<std::uint32_t> wanted;
  Hash128 hash;          // of the structure: values of scalars, positions and data do not enter
  bool crosses = false;  // the graph crosses devices: nothing else holds, cut() it

  /// Starts over with no outputs.
  void reset(Device of) {
    device = of;
    outputs.clear();
    wanted.clear();
  }
  /// Walks the graph of `outputs` and fills the rest. Two captures of equal hash have the same structure,
  /// leaf for leaf.
  ///
  /// What else the program holds of the graph becomes an output too, if it needs data that nobody else holds,
  /// or long work that is computed by itself: a tensor that was replaced goes, and a factorisation is not
  /// computed twice while somebody has a handle to it. Instead of a view, what it is a view of is an output.
  /// The rest of what the program holds is `wanted`.
  void fill();
  /// The same for a part of a larger graph. What other parts give it counts as a leaf with a value, though
  /// its node may be lazy.
  void fill(const DevicePart& part);
  /// Walks the graph again, over all devices, and finds its data; the hash is left as it was.
  void walk_again();
  /// The graph as the compiler sees it, without what is wanted besides. Good for as long as its nodes live.
  Program program() const;
  /// All nodes of the walk, with an owner more each.
  std::vector<NodePtr> owned_nodes() const;

 private:
  void add_held();
  /// From the walk and `data`.
  void hash_structure();
  void find_summands();
  /// Whether where the node's part lies is an argument (engine/compile/program/moved_parts.h).
  bool takes_positions(const Node& node) const;

  std::vector<bool>
      summands_;  // paddings that are added to paddings, by number in the walk; empty without any
};

}  // namespace caldera
