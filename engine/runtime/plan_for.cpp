// The plan by which tensors would be evaluated.
#include <mutex>
#include <vector>

#include "engine/base/error.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/plan_finder.h"
#include "engine/runtime/runtime.h"

namespace caldera {

std::shared_ptr<const Plan> plan_for(std::span<const LazyTensor> outputs) {
  Program program;
  std::vector<NodePtr> nodes;  // that the program names
  {
    const std::scoped_lock lock(graph_mutex());
    GraphKey c;
    const std::uint64_t walk = next_walk();
    for (const LazyTensor& output : outputs) {
      Node& node = output.node();
      if (node.has_value() || node.walk == walk) continue;
      node.walk = walk;
      c.outputs.push_back(&node);
    }
    if (c.outputs.empty()) return nullptr;
    c.device = c.outputs[0]->device();
    c.fill();
    if (c.crosses) {
      throw ValueError(
          "plan_for: the graph crosses devices, so it has a plan for each part; ask for the tensors that "
          "to() "
          "moves, one by one, or record an evaluation with Profiler");
    }
    program = c.program();
    nodes = c.owned_nodes();
  }
  return make_plan(program, backend(program.device));
}
std::shared_ptr<const Plan> plan_for(std::initializer_list<LazyTensor> outputs) {
  return plan_for(std::span<const LazyTensor>(outputs.begin(), outputs.size()));
}

}  // namespace caldera
