// Graphviz source of a graph after fusion.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "engine/explain/explained_plan.h"
#include "engine/explain/explanation.h"
#include "engine/graph/op.h"

namespace caldera {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

class DotWriter {
 public:
  explicit DotWriter(const Explanation& e) : e_(e), home_(e.graph.nodes.size(), kNone) {}

  std::string write() {
    text_ =
        "digraph caldera {\n"
        "  graph [fontname=\"sans-serif\", style=\"rounded,filled\", color=\"#8899aa\", "
        "fillcolor=\"#f3f6fa\"];\n"
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\", "
        "fontsize=11];\n"
        "  edge [color=\"#667788\"];\n";
    for (std::uint32_t i = 0; i < e_.plan->steps.size(); ++i) cluster(i);
    for (std::uint32_t p = 0; p < e_.graph.nodes.size(); ++p) loose_node(p);
    for (std::uint32_t i = 0; i < e_.plan->steps.size(); ++i) step_edges(i);
    for (std::size_t k = 0; k < e_.graph.outputs.size(); ++k) {
      text_ +=
          fmt::format("  out{0} [label=\"output {0}\", shape=plaintext, style=\"\"];\n  {1} -> out{0};\n", k,
                      id(e_.graph.outputs[k], kNone));
    }
    return text_ + "}\n";
  }

 private:
  bool is_in(std::uint32_t p, std::uint32_t step) const {
    const auto& nodes = e_.plan->steps[step].nodes;
    return std::find(nodes.begin(), nodes.end(), p) != nodes.end();
  }

  /// A node that several steps compute is drawn in each of them.
  std::string id(std::uint32_t p, std::uint32_t step) const {
    if (step == kNone || home_[p] == step || !is_in(p, step)) return fmt::format("n{}", p);
    return fmt::format("n{}_{}", p, step);
  }

  void node(const std::string& id, const GraphNode& n, const char* indent, const char* more) {
    text_ += fmt::format("{}{} [label=\"{}\\n{} {}\"{}];\n", indent, id, n.op->name, n.shape.to_string(),
                         name(n.dtype), more);
  }

  void cluster(std::uint32_t i) {
    const Step& step = e_.plan->steps[i];
    text_ += fmt::format("  subgraph cluster_{} {{\n    label={};\n", i,
                         quoted(fmt::format("{}: {} {}", i, step.name(), step.dims.to_string())));
    bool empty = true;
    for (const std::uint32_t p : step.nodes) {
      if (p >= home_.size()) continue;
      if (home_[p] == kNone) home_[p] = i;
      node(id(p, i), e_.graph.nodes[p], "    ", "");
      empty = false;
    }
    if (empty) text_ += fmt::format("    s{} [label={}];\n", i, quoted(step.name()));
    text_ += "  }\n";
  }

  /// Leaves, and nodes that need no work of their own: views, and what was simplified away.
  void loose_node(std::uint32_t p) {
    if (home_[p] != kNone) return;
    const GraphNode& n = e_.graph.nodes[p];
    const bool leaf = n.inputs.empty();
    node(id(p, kNone), n, "  ",
         leaf ? ", shape=ellipse, style=filled, fillcolor=\"#e3e8ee\"" : ", style=dashed");
    for (const std::uint32_t q : n.inputs) text_ += fmt::format("  {} -> {};\n", id(q, kNone), id(p, kNone));
  }

  void step_edges(std::uint32_t i) {
    const Step& step = e_.plan->steps[i];
    bool empty = true;
    for (const std::uint32_t p : step.nodes) {
      if (p >= home_.size()) continue;
      empty = false;
      for (const std::uint32_t q : e_.graph.nodes[p].inputs)
        text_ += fmt::format("  {} -> {};\n", id(q, i), id(p, i));
    }
    if (!empty) return;
    for (const std::uint32_t from : dependencies_[i]) {
      const auto& nodes = e_.plan->steps[from].nodes;
      const std::string source = nodes.empty() ? fmt::format("s{}", from) : id(nodes.back(), from);
      text_ += fmt::format("  {} -> s{};\n", source, i);
    }
  }

  const Explanation& e_;
  std::vector<std::uint32_t> home_;  // of each node: the first step that computes it
  std::vector<std::vector<std::uint32_t>> dependencies_ = step_dependencies(*e_.plan);
  std::string text_;
};

}  // namespace

std::string to_dot(const Explanation& explanation) { return DotWriter(explanation).write(); }

}  // namespace caldera
