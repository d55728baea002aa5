#include "engine/graph/graph.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace caldera {

Graph::Graph(std::span<const LazyTensor> outputs) {
  std::vector<Node*> roots;
  for (const LazyTensor& output : outputs) roots.push_back(&output.node());
  const std::scoped_lock lock(graph_mutex());
  for (Node* node : topological_order(roots, [](const Node&) { return false; })) {
    Entry entry;
    node->add_ref();
    entry.node = NodePtr(node);
    for (const NodePtr& input : node->inputs()) entry.inputs.push_back(input->walk_index);
    entries_.push_back(std::move(entry));
  }
  for (const Node* root : roots) outputs_.push_back(root->walk_index);
}

std::string Graph::to_dot() const {
  std::string dot = "digraph caldera {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Node& n = *entries_[i].node;
    dot += fmt::format("  n{} [label=\"{}\\n{} {}\"{}];\n", i, n.op().name, n.shape().to_string(),
                       name(n.dtype()), n.has_value() ? ", style=filled, fillcolor=lightgrey" : "");
    for (std::size_t input : entries_[i].inputs) dot += fmt::format("  n{} -> n{};\n", input, i);
  }
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    dot += fmt::format("  out{} [label=\"output {}\", shape=plaintext];\n  n{} -> out{};\n", k, k,
                       outputs_[k], k);
  }
  return dot + "}\n";
}

std::string Graph::to_json() const {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Node& n = *entries_[i].node;
    nlohmann::ordered_json item;
    item["id"] = i;
    item["op"] = n.op().name;
    item["shape"] = std::vector<std::int64_t>(n.shape().begin(), n.shape().end());
    item["dtype"] = name(n.dtype());
    item["device"] = n.device().to_string();
    item["inputs"] = entries_[i].inputs;
    const auto attributes = n.attributes().values();
    item["attributes"] = std::vector<std::int64_t>(attributes.begin(), attributes.end());
    item["evaluated"] = n.has_value();
    nodes.push_back(std::move(item));
  }
  nlohmann::ordered_json document;
  document["nodes"] = std::move(nodes);
  document["outputs"] = outputs_;
  return document.dump(1);
}

}  // namespace caldera
