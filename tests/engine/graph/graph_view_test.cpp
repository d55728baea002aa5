// Graph: what some outputs reach, counted, drawn and exported.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

LazyTensor leaf(const Shape& shape, float first = 1) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return LazyTensor::from_vector(values, shape, Device::cpu());
}

std::size_t count_matches(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  return static_cast<std::size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), expression), std::sregex_iterator()));
}

TEST(GraphView, CountsEveryNodeOnce) {
  const LazyTensor x = leaf({2, 3});
  EXPECT_EQ(Graph({x}).node_count(), 1U);
  const LazyTensor y = x + x;
  EXPECT_EQ(Graph({y}).node_count(), 2U);
  const LazyTensor z = exp(y) * y;  // y is shared
  EXPECT_EQ(Graph({z}).node_count(), 4U);
  EXPECT_EQ(Graph({z, y, z}).node_count(), 4U);
  EXPECT_EQ(Graph({z * 2.0}).node_count(), 6U);  // the scalar is a node
  EXPECT_EQ(Graph({z, leaf({1})}).node_count(), 5U) << "outputs need not be connected";
  EXPECT_EQ(Graph(std::span<const LazyTensor>()).node_count(), 0U);
}

TEST(GraphView, OperationsThatChangeNothingAddNoNode) {
  const LazyTensor x = leaf({2, 3});
  EXPECT_EQ(reshape(x, {2, 3}).node_id(), x.node_id());
  EXPECT_EQ(permute_dims(x, {0, 1}).node_id(), x.node_id());
  EXPECT_EQ(broadcast_to(x, {2, 3}).node_id(), x.node_id());
  EXPECT_EQ(slice(x, 0, std::nullopt, std::nullopt).node_id(), x.node_id());
  EXPECT_EQ(astype(x, DType::f32).node_id(), x.node_id());
  EXPECT_EQ(pad(x, {0, 0}, {0, 0}).node_id(), x.node_id());
  EXPECT_EQ(concatenate({x}, 1).node_id(), x.node_id());
}

TEST(GraphView, SizeCountsWhatIsLeftToCompute) {
  const ScopedSettings scope;
  const LazyTensor x = leaf({4});
  EXPECT_EQ(x.graph_size(), 0U);
  const LazyTensor y = x + x;
  const LazyTensor z = exp(y) + y;
  EXPECT_EQ(y.graph_size(), 1U);
  EXPECT_EQ(z.graph_size(), 3U);
  y.eval();
  EXPECT_EQ(y.graph_size(), 0U);
  EXPECT_EQ(z.graph_size(), 2U);
  z.eval();
  EXPECT_EQ(z.graph_size(), 0U);
}

TEST(GraphView, EvaluationDropsHistory) {
  const ScopedSettings scope;
  const LazyTensor y = exp(leaf({4}) + 1.0);
  const Graph before({y});
  EXPECT_EQ(before.node_count(), 4U);
  y.eval();
  EXPECT_EQ(Graph({y}).node_count(), 1U);
  EXPECT_EQ(before.node_count(), 4U) << "a view is a snapshot";
}

TEST(GraphView, EntriesStandAfterTheirInputs) {
  const LazyTensor x = leaf({3, 3});
  const LazyTensor out = matmul(x, transpose(exp(x))) + x;
  const Graph graph({out});
  for (std::size_t i = 0; i < graph.entries().size(); ++i) {
    const Graph::Entry& entry = graph.entries()[i];
    ASSERT_EQ(entry.inputs.size(), entry.node->inputs().size());
    for (std::size_t k = 0; k < entry.inputs.size(); ++k) {
      EXPECT_LT(entry.inputs[k], i);
      EXPECT_EQ(graph.entries()[entry.inputs[k]].node.get(), entry.node->inputs()[k].get());
      EXPECT_LT(entry.node->inputs()[k]->id(), entry.node->id());
    }
  }
  ASSERT_EQ(graph.outputs().size(), 1U);
  EXPECT_EQ(graph.entries()[graph.outputs()[0]].node.get(), &out.node());
}

TEST(GraphView, JsonSaysWhatTheGraphIs) {
  const ScopedSettings scope;
  const LazyTensor x = leaf({2, 3});
  const LazyTensor done = (x + x).eval();
  const LazyTensor turned = permute_dims(done, {1, 0});
  const LazyTensor out = matmul(turned, done);
  const auto document = nlohmann::json::parse(Graph({out, turned}).to_json());
  const auto& nodes = document.at("nodes");
  ASSERT_EQ(nodes.size(), 3U);
  for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(nodes[i].at("id"), i);

  EXPECT_EQ(nodes[0].at("op"), "add");
  EXPECT_EQ(nodes[0].at("evaluated"), true);
  EXPECT_EQ(nodes[0].at("inputs"), nlohmann::json::array());
  EXPECT_EQ(nodes[1].at("op"), "permute_dims");
  EXPECT_EQ(nodes[1].at("attributes"), (nlohmann::json{1, 0}));
  EXPECT_EQ(nodes[1].at("shape"), (nlohmann::json{3, 2}));
  EXPECT_EQ(nodes[1].at("evaluated"), false);
  EXPECT_EQ(nodes[2].at("op"), "matmul");
  EXPECT_EQ(nodes[2].at("shape"), (nlohmann::json{3, 3}));
  EXPECT_EQ(nodes[2].at("dtype"), "float32");
  EXPECT_EQ(nodes[2].at("device"), "cpu");
  EXPECT_EQ(nodes[2].at("inputs"), (nlohmann::json{1, 0}));
  EXPECT_EQ(document.at("outputs"), (nlohmann::json{2, 1}));
}

TEST(GraphView, JsonNamesTheSameInputTwice) {
  const LazyTensor x = leaf({});
  const auto document = nlohmann::json::parse(Graph({x * x}).to_json());
  EXPECT_EQ(document.at("nodes")[1].at("inputs"), (nlohmann::json{0, 0}));
  EXPECT_EQ(document.at("nodes")[1].at("shape"), nlohmann::json::array());
}

TEST(GraphView, DotHasANodeAndAnEdgeForEach) {
  const ScopedSettings scope;
  const LazyTensor x = leaf({2, 3});
  const LazyTensor done = (x + x).eval();
  const LazyTensor out = concatenate({done, exp(done), done}, 0);
  const Graph graph({out, done});
  const std::string dot = graph.to_dot();
  EXPECT_TRUE(dot.starts_with("digraph "));
  EXPECT_TRUE(dot.ends_with("}\n"));
  EXPECT_EQ(count_matches(dot, R"(\n  n\d+ \[label=)"), 3U);
  EXPECT_EQ(count_matches(dot, R"(\n  n\d+ -> n\d+;)"), 4U);
  EXPECT_EQ(count_matches(dot, R"(\n  n\d+ -> out\d+;)"), 2U);
  EXPECT_EQ(count_matches(dot, R"(fillcolor=lightgrey)"), 1U) << "only the evaluated node is filled";
  EXPECT_NE(dot.find("concatenate\\n(6, 3) float32"), std::string::npos) << dot;
}

TEST(GraphView, OutlivesTheTensors) {
  auto graph = [] {
    const LazyTensor x = leaf({5});
    return Graph({tanh(x) + x});
  }();
  EXPECT_EQ(nlohmann::json::parse(graph.to_json()).at("nodes").size(), 3U);
}

TEST(GraphView, TensorsDescribeThemselves) {
  const ScopedSettings scope;
  const LazyTensor x = exp(leaf({2, 3}));
  EXPECT_EQ(x.to_string(), "LazyTensor(shape=(2, 3), dtype=float32, device=cpu, lazy)");
  x.eval();
  EXPECT_EQ(x.to_string(), "LazyTensor(shape=(2, 3), dtype=float32, device=cpu, evaluated)");
}

TEST(GraphView, AnEmptyHandleSaysSo) {
  const LazyTensor empty;
  EXPECT_FALSE(empty.defined());
  EXPECT_THROW(empty.shape(), Error);
  EXPECT_THROW(empty.eval(), Error);
  EXPECT_THROW(empty + leaf({1}), Error);
  EXPECT_THROW(Graph({empty}), Error);
  EXPECT_THROW(empty.to_string(), Error);
}

}  // namespace
}  // namespace caldera::testing
