// Settlement: what scheduling an evaluation changes in graphs, and how it is taken back if the evaluation
// fails. Internal to the runtime.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/small_allocator.h"
#include "engine/graph/node.h"

namespace caldera {

/// Belongs to the job that computes the values. While it has not ended, the values are pending: they have a
/// place, and an event that is not set yet. What the values have let go of is kept here until they are there.
class Settlement {
 public:
  /// Gives the node a value that is on its way. Under graph_mutex().
  void add_value(Node& node, Value value);
  /// Cuts the node, one of the values or of an earlier evaluation's. Under graph_mutex().
  void cut(Node& node, OriginsPtr origins);
  /// The node's memory is taken by one of the values: it is lost if the job fails after it has begun. Under
  /// graph_mutex().
  void add_donor(Node& node);

  /// Gives away the value of a node that somebody still has a handle to: from now on its value is the error
  /// of `given`, unless the job fails before it has begun. Under graph_mutex().
  void give_away(Node& node, std::shared_ptr<Event> given);

  /// All values are there. Needs no mutex; to be called before anybody is told.
  void succeed();
  /// They are not, but for those `is_there` tells, by number: makes the others lazy again, with their inputs.
  /// `has_begun`: donors may have been overwritten; whoever uses one gets the error of `failed`. Takes
  /// graph_mutex().
  void fail(const std::vector<bool>& is_there, bool has_begun, const std::shared_ptr<Event>& failed);
  /// Whether it holds nothing.
  bool is_empty() const;

 private:
  struct Cut {
    Node* node = nullptr;  // in nodes_
    std::size_t first = 0;
    std::size_t count = 0;  // of inputs_
  };

  SmallList<NodePtr> values_;
  std::vector<NodePtr> nodes_;  // others that were cut
  std::vector<Cut> cuts_;
  std::vector<NodePtr> inputs_;
  std::vector<NodePtr> donors_;
  std::vector<std::pair<NodePtr, Value>> given_;  // with their former values
  StoragePtr nothing_;                            // where their values are now
};

}  // namespace caldera
