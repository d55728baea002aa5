// Lineage: from which values a computed one may have come. A node drops its inputs when it is evaluated; this
// little stays, so that differentiation can tell a value whose gradient it would lose from a constant.
//
// A way is what a gradient takes: from a floating value to a floating input. Where the ways end lie the
// origins of a value: leaves, nodes without floating inputs, and operations without a gradient
// (stop_gradient, floor). Names for other values (OpClass::identity: the arguments of a function under
// differentiation) are origins too, beside those of the value they name. Bare numbers are none, as there are
// too many of them.
//
// The walk over the graph of a value leaves a mark of every origin, and of every node on the way that had a
// value already. So a value that came from x has a mark of x, unless x was lazy when it, or something between
// the two, was computed. Then it has marks of all origins of x at least; and so may a value of the same
// origins that did not come from x. What is not known for sure counts as a way.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/node.h"

namespace caldera {

/// Of one value, or of many that were computed together. Constant, of bounded size, and keeps no node alive.
class Lineage {
 public:
  /// Of nodes that are about to get values in one evaluation, before they drop their inputs: appends one for
  /// each. Many have the same, which is then that of all of them together. Under graph_mutex().
  static void append(std::span<Node* const> outputs, std::vector<LineagePtr>& to);

 private:
  friend class LineagePtr;
  friend class LineageWalk;
  friend class Origin;

  Lineage() = default;

  struct Mark {
    std::uint64_t id = 0;          // of a node
    std::uint64_t evaluation = 0;  // in which it got its value; 0 if it had none, or always
    bool is_origin = false;        // for sure, of all values that share the lineage
  };
  /// Whether there is, or may have been, a mark of the node.
  bool may_name(std::uint64_t id) const;

  static constexpr std::size_t kMost = 64;
  std::vector<Mark> marks_;       // the youngest node first, and no more than these
  std::uint64_t unknown_ = 0;     // nodes up to this id may have had marks
  std::uint64_t evaluation_ = 0;  // evaluations are counted
  mutable std::atomic<std::uint32_t> refs_{1};
};

/// A node, to be looked for among what values came from.
class Origin {
 public:
  /// Under graph_mutex().
  explicit Origin(Node& x);

  /// Whether `value`, which has dropped its inputs, may have come from the node. Never false if it did.
  bool may_be_of(const Node& value) const;

 private:
  std::uint64_t id_;
  bool is_number_;                      // leaves no marks
  bool is_origin_;                      // leaves marks at all times
  std::uint64_t evaluation_ = 0;        // in which it got its value
  std::vector<std::uint64_t> origins_;  // ids of those that are sure
};

}  // namespace caldera
