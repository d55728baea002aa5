// Writes lineages, and asks them whether a value may have come from a node.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/lineage.h"
#include "engine/graph/node.h"

namespace caldera {

/// Appends the lineage of each node of `outputs`, which are about to get values in one evaluation and have
/// not dropped their inputs yet. Above a few outputs all share one, which is that of all together. Under
/// graph_mutex().
void append_lineages(std::span<Node* const> outputs, std::vector<LineagePtr>& to);

/// Looks for one node among what values came from.
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
