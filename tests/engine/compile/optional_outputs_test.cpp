// Optional outputs change where values lie, and nothing else: random graphs whose every node is held, planned
// with them and without.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/compile/compile.h"
#include "engine/plan/verify.h"
#include "engine/runtime/capture/graph_key.h"
#include "tests/support/plans/random_graph.h"

namespace caldera::testing {
namespace {

/// What steps compute, whichever buffers they touch.
std::multiset<std::string> work_of(const Plan& plan) {
  std::multiset<std::string> all;
  for (const Step& step : plan.steps) {
    std::string text = std::string(step.name()) + step.dims.to_string() + step.label;
    for (const StepKernel& used : step.kernels())
      text += std::to_string(used.kernel->hash.lo) + std::to_string(used.kernel->hash.hi);
    for (const Operand& operand : step.operands)
      text += ' ' + std::to_string(operand.offset) + Shape(operand.strides.span()).to_string();
    all.insert(std::move(text));
  }
  return all;
}

struct Plans {
  Program program;
  std::shared_ptr<const Plan> with, without;
};

Plans plans_of(const RandomGraph& graph, const RandomGraph::Tensors& nodes, bool fusion) {
  const std::scoped_lock lock(graph_mutex());
  GraphKey key;
  key.reset(Device::null());
  for (int output : graph.outputs()) {
    Node& node = nodes[static_cast<std::size_t>(output)].node();
    const bool known = std::find(key.outputs.begin(), key.outputs.end(), &node) != key.outputs.end();
    if (!node.has_value() && !known) key.outputs.push_back(&node);
  }
  Plans plans;
  if (key.outputs.empty()) return plans;
  key.fill();
  plans.program = key.program();
  plans.without = compile(plans.program, {.fusion = fusion});
  plans.program.optional_outputs = key.wanted;
  plans.with = compile(plans.program, {.fusion = fusion});
  return plans;
}

TEST(OptionalOutputs, ChangeNoStep) {
  std::size_t found = 0, nodes_held = 0;
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    for (bool fusion : {true, false}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (fusion ? " fused" : " plain"));
      const RandomGraph graph(seed, DType::f32);
      const RandomGraph::Tensors nodes = graph.build_nodes([](int) { return Device::null(); });
      const Plans plans = plans_of(graph, nodes, fusion);
      if (plans.with == nullptr) continue;
      EXPECT_EQ(work_of(*plans.with), work_of(*plans.without));
      EXPECT_EQ(plans.with->dispatch_count(), plans.without->dispatch_count());
      EXPECT_LE(plans.with->arena_bytes, plans.without->arena_bytes);
      EXPECT_TRUE(plans.without->optional_outputs.empty());
      EXPECT_NO_THROW(verify_plan(*plans.with));
      EXPECT_EQ(plans.with->donations.size(), plans.without->donations.size());
      const auto& optional = plans.with->optional_outputs;
      ASSERT_EQ(plans.with->output_count,
                plans.without->output_count + static_cast<std::int32_t>(optional.size()));
      for (std::size_t k = 0; k < optional.size(); ++k) {
        const Program::Node& node = plans.program.nodes[optional[k]];
        const PlanBuffer& buffer =
            plans.with
                ->buffers[static_cast<std::size_t>(plans.without->input_count + plans.without->output_count) +
                          k];
        EXPECT_EQ(buffer.role, BufferRole::output);
        EXPECT_EQ(buffer.dtype, node.dtype);
        EXPECT_EQ(buffer.bytes, node.shape.numel() * static_cast<std::int64_t>(size_of(node.dtype)));
      }
      found += optional.size();
      nodes_held += plans.program.optional_outputs.size();
    }
  }
  EXPECT_GT(found, 200U) << "of " << nodes_held;
}

}  // namespace
}  // namespace caldera::testing
