// Graph: a view of what some outputs reach. For people and tools; evaluation does not need it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A snapshot of the nodes reachable from some outputs, inputs before users. What has a value is a leaf, as
/// it is to evaluation. Keeps them alive.
class Graph {
 public:
  explicit Graph(std::span<const LazyTensor> outputs);
  Graph(std::initializer_list<LazyTensor> outputs) : Graph(std::span(outputs.begin(), outputs.size())) {}

  std::size_t node_count() const { return entries_.size(); }
  /// Graphviz source. Calls (engine/graph/call_rule.h) are ovals; dashed edges lead to what is of use to
  /// differentiation alone.
  std::string to_dot() const;
  /// {"nodes":[{"id","op","shape","dtype","device","inputs":[…],"attributes":[…],"evaluated"}],"outputs":[…]}.
  /// A call has no value: it has "rule", its title, in place of "shape", "dtype", "device" and "evaluated".
  std::string to_json() const;

  struct Entry {
    NodePtr node;
    std::vector<std::size_t> inputs;  // positions in entries()
  };
  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<std::size_t>& outputs() const { return outputs_; }

 private:
  std::vector<Entry> entries_;
  std::vector<std::size_t> outputs_;
};

}  // namespace caldera
