// GraphKey: the graph behind some outputs on one device, in the order in which replays of its plan bind it.
// Internal to the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/hash.h"
#include "engine/compile/program/program.h"
#include "engine/graph/node.h"
#include "engine/runtime/capture/device_partition.h"

namespace caldera {

/// Bytes of the node's value.
inline std::size_t bytes_of(const Node& node) {
  return static_cast<std::size_t>(node.shape().numel()) * size_of(node.dtype());
}

/// Filled again for every evaluation; what it has allocated stays. All under graph_mutex().
struct GraphKey {
  Device device;
  std::vector<Node*> outputs;           // distinct, lazy: those asked for, then those that fill() adds
  Walk walk;                            // inputs before users
  std::vector<Node*> data;              // leaves with a value, in order of the walk
  std::vector<Node*> scalars;           // leaves that are numbers
  std::vector<std::int64_t> positions;  // of parts that take theirs as arguments: further scalars
  /// Lists what else the program holds and is computed on the way, by its place in the walk, ascending: to be
  /// kept where the plan stores it anyway. Does not enter the hash: most of it is stored by no plan.
  std::vector<std::uint32_t> wanted;
  Hash128 hash;            // of the structure: values of scalars, positions and data do not enter
  bool crosses = false;    // the graph crosses devices: nothing else holds, cut() it
  bool has_dear = false;   // something needs data that nobody else holds, or long work
  bool has_calls = false;  // some values come of calls, which are no part of the walk

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
  /// Fills the rest for a part of a larger graph. What other parts give it counts as a leaf with a value,
  /// though its node may be lazy.
  void fill(const DevicePart& part);
  /// Walks outputs that may be on several devices, and stay as they are.
  void walk_again();
  /// The graph as the compiler sees it, without what is wanted besides. Good for as long as its nodes live.
  Program program() const;
  /// All nodes of the walk, with an owner more each.
  std::vector<NodePtr> owned_nodes() const;
  bool contains(const Node& node) const {
    return node.walk_index < walk.order.size() && walk.order[node.walk_index] == &node;
  }
  /// Whether the value at this place of the walk, which no output is, is computed from data that nobody else
  /// holds, or from long work, without an output in between. Of captures that add what is held.
  bool is_dear(std::size_t place) const;
  /// Whether the node at this place of the walk came from something that can be differentiated with respect
  /// to, as far as the walk shows (has_calls). Not of parts.
  bool has_origins(std::size_t place) const;

 private:
  enum Mark : std::uint8_t;
  /// Says what becomes of values that the program holds.
  enum class Held : std::uint8_t { are_added, stay };

  void walk_and_read(Held held);
  // Reading, inputs before users, each node once: data, scalars, positions, hash, marks.
  void begin();
  void read_scalar(Node& node);
  void read_data(const Node& node);
  void read_operation(Node& node, std::uint32_t place, Held held);
  void read_rest(const Node& node, std::uint32_t place, std::uint8_t of_operands, PartHash& part);
  void end();

  void mix_leaf(const Node& node);
  void add_held(Node& node, std::uint32_t place);
  void find_sum_of_pads(const Node& node, std::uint32_t place);
  void mix_positions();

  std::vector<std::uint8_t> marks_;                             // Mark, by place in the walk
  std::vector<std::pair<const Node*, std::uint32_t>> movable_;  // parts with positions, and their places
  std::vector<Node*> added_;                                    // further outputs
};

}  // namespace caldera
