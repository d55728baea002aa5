#include "engine/graph/graph.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/graph/call_rule.h"

namespace caldera {
namespace {

std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// A box with what the node computes; of a call, which computes nothing, an oval with its rule's title.
std::string dot_node(std::size_t id, const Node& n) {
  if (n.is_call())
    return fmt::format("  n{} [label={}, shape=oval];\n", id, dot_string(n.call_rule()->title()));
  return fmt::format("  n{} [label=\"{}\\n{} {}\"{}];\n", id, n.op().name, n.shape().to_string(),
                     name(n.dtype()), n.has_value() ? ", style=filled, fillcolor=lightgrey" : "");
}

/// Whether the node's value is computed from its input `k`.
bool is_operand(const Node& n, std::size_t k) {
  return !n.is_call() && (n.op().kind != OpClass::identity || k == 0);
}

nlohmann::ordered_json json_node(std::size_t id, const Graph::Entry& entry) {
  const Node& n = *entry.node;
  nlohmann::ordered_json item;
  item["id"] = id;
  item["op"] = n.op().name;
  if (n.is_call()) {
    item["rule"] = n.call_rule()->title();
  } else {
    item["shape"] = std::vector<std::int64_t>(n.shape().begin(), n.shape().end());
    item["dtype"] = name(n.dtype());
    item["device"] = n.device().to_string();
  }
  item["inputs"] = entry.inputs;
  const auto attributes = n.attributes().values();
  item["attributes"] = std::vector<std::int64_t>(attributes.begin(), attributes.end());
  if (!n.is_call()) item["evaluated"] = n.has_value();
  return item;
}

}  // namespace

Graph::Graph(std::span<const LazyTensor> outputs) {
  std::vector<Node*> roots;
  for (const LazyTensor& output : outputs) roots.push_back(&output.node());
  const std::scoped_lock lock(graph_mutex());
  for (Node* node : topological_order(roots, [](const Node& node) { return node.has_value(); })) {
    Entry entry;
    node->add_ref();
    entry.node = NodePtr(node);
    if (!node->has_value()) {
      for (const NodePtr& input : node->inputs()) entry.inputs.push_back(input->walk_index);
    }
    entries_.push_back(std::move(entry));
  }
  for (const Node* root : roots) outputs_.push_back(root->walk_index);
}

std::string Graph::to_dot() const {
  std::string dot = "digraph caldera {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    dot += dot_node(i, *entries_[i].node);
    for (std::size_t k = 0; k < entries_[i].inputs.size(); ++k) {
      dot += fmt::format("  n{} -> n{}{};\n", entries_[i].inputs[k], i,
                         is_operand(*entries_[i].node, k) ? "" : " [style=dashed]");
    }
  }
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    dot += fmt::format("  out{} [label=\"output {}\", shape=plaintext];\n  n{} -> out{};\n", k, k,
                       outputs_[k], k);
  }
  return dot + "}\n";
}

std::string Graph::to_json() const {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < entries_.size(); ++i) nodes.push_back(json_node(i, entries_[i]));
  nlohmann::ordered_json document;
  document["nodes"] = std::move(nodes);
  document["outputs"] = outputs_;
  return document.dump(1);
}

}  // namespace caldera
