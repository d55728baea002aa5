// Calls of custom_vjp and checkpoint: to the transforms they are there, to evaluation they are not.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Tensors = std::vector<LazyTensor>;

LazyTensor rows() { return random_normal({4, 8}, 3, DType::f32, Device::cpu()).eval(); }

Tensors plain(Inputs a) { return {tanh(matmul(a[0], a[1])) * 0.5, exp(a[0] * 3.0)}; }

VectorFunction with_own_rule() {
  return custom_vjp(CustomVjp{.name = "layer", .forward = plain, .backward = [](Inputs a, Inputs, Inputs g) {
                                return Tensors{g[1] * a[0], sum(g[0]) * a[1]};
                              }});
}

/// Every way to call plain(), by name.
std::vector<std::pair<const char*, VectorFunction>> ways_to_call() {
  return {{"custom_vjp", with_own_rule()},
          {"checkpoint", checkpoint(VectorFunction(plain))},
          {"both", checkpoint(with_own_rule())},
          {"twice", checkpoint(checkpoint(VectorFunction(plain)))}};
}

TEST(Call, CostsAPlanNothing) {
  const ScopedSettings scope;
  const LazyTensor x = rows(), w = random_normal({8, 8}, 4, DType::f32, Device::cpu()).eval();
  const Tensors at{x, w};
  const auto expected = plan_for(plain(at));
  ASSERT_EQ(expected->scalars.size(), 2U);
  for (const auto& [name, function] : ways_to_call()) {
    const auto plan = plan_for(function(at));
    EXPECT_EQ(plan->scalars, expected->scalars) << name;
    EXPECT_EQ(plan->input_count, expected->input_count) << name;
    EXPECT_EQ(plan->output_count, expected->output_count) << name;
    EXPECT_EQ(plan->steps.size(), expected->steps.size()) << name;
    EXPECT_EQ(plan->arena_bytes, expected->arena_bytes) << name;
  }
}

TEST(Call, GradientsThroughCallsHaveTheScalarsOfTheRules) {
  const ScopedSettings scope;
  const LazyTensor x = rows();
  const auto slope = [&](const TensorFunction& f) { return grad(sum(f({&x, 1})), x); };
  const TensorFunction square = [](Inputs a) { return a[0] * a[0]; };
  const auto rule = [](Inputs a, const LazyTensor&, const LazyTensor& g) { return Tensors{g * a[0] * 3.0}; };
  EXPECT_EQ(plan_for({slope(custom_vjp(square, rule))})->scalars.size(),
            plan_for({ones_like(x) * x * 3.0})->scalars.size());
  EXPECT_EQ(plan_for({slope(checkpoint(square))})->scalars.size(), plan_for({slope(square)})->scalars.size());
}

TEST(Call, IsNotCountedAsWorkThatIsLeft) {
  const LazyTensor x = rows();
  const auto own =
      custom_vjp([](Inputs a) { return exp(a[0]); },
                 [](Inputs, const LazyTensor& y, const LazyTensor& g) { return Tensors{g * y}; });
  // What stands for the argument inside, its exponential, and the name of the result.
  EXPECT_EQ(own({&x, 1}).graph_size(), 3U);
}

TEST(Call, WhatOnlyItsArgumentsNeedIsNotComputed) {
  const ScopedSettings scope;
  const LazyTensor x = rows();
  const auto first = checkpoint(VectorFunction([](Inputs a) { return Tensors{exp(a[0])}; }));
  const LazyTensor unused = matmul(x, transpose(x));
  EXPECT_EQ(plan_for(first(Tensors{x, unused}))->steps.size(), plan_for({exp(x)})->steps.size());
}

TEST(Call, KeepsNoInputFromBeingReused) {
  const ScopedSettings scope;
  const TensorFunction step = [](Inputs a) { return exp(a[0] * 3.0); };
  const TensorFunction own =
      custom_vjp(step, [](Inputs, const LazyTensor& y, const LazyTensor& g) { return Tensors{g * y * 3.0}; });
  for (const TensorFunction& f :
       {step, own, checkpoint(step), checkpoint(own), checkpoint(checkpoint(step))}) {
    LazyTensor x = rows();
    const LazyTensor y = f({&x, 1});
    x = LazyTensor();
    const std::uint64_t before = donation_stats().buffers;
    y.eval();
    EXPECT_EQ(donation_stats().buffers - before, 1U);
  }
}

TEST(Call, IsDrawnAsWhatItIs) {
  const LazyTensor x = rows();
  const Tensors at{x, transpose(x)};
  const Graph graph({with_own_rule()(at)[0]});
  const std::string dot = graph.to_dot();
  EXPECT_NE(dot.find("[label=\"custom_vjp 'layer'\", shape=oval];"), std::string::npos) << dot;
  EXPECT_NE(dot.find(" [style=dashed];"), std::string::npos) << dot;
  std::size_t calls = 0;
  const auto document = nlohmann::json::parse(graph.to_json());
  for (const auto& node : document.at("nodes")) {
    if (node.at("op") != "call") continue;
    ++calls;
    EXPECT_EQ(node.at("rule"), "custom_vjp 'layer'");
    EXPECT_EQ(node.at("inputs").size(), 4U) << "two arguments and two values";
    EXPECT_EQ(node.at("attributes"), nlohmann::json{2});
    EXPECT_FALSE(node.contains("shape"));
  }
  EXPECT_EQ(calls, 1U);
  EXPECT_NE(Graph(checkpoint(VectorFunction(plain))(at)).to_dot().find("\"checkpoint\", shape=oval"),
            std::string::npos);
}

}  // namespace
}  // namespace caldera::testing
