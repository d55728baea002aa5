#include "engine/runtime/inspect/explain.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/profile_hooks.h"
#include "engine/runtime/runtime.h"

namespace caldera {

Explanation explain(std::span<const LazyTensor> outputs) {
  Explanation e;
  e.plan = plan_for(outputs);
  if (!e.plan) throw ValueError("explain: everything has been computed, there is nothing to plan");
  // The same walk as that of an evaluation, so that positions are those of the plan.
  const std::scoped_lock lock(graph_mutex());
  GraphKey c;
  for (const LazyTensor& output : outputs) {
    Node* node = &output.node();
    if (!node->has_value() && std::find(c.outputs.begin(), c.outputs.end(), node) == c.outputs.end())
      c.outputs.push_back(node);
  }
  c.fill();
  e.graph = record_graph(c);
  e.code = backend(e.plan->device).code_writer();
  return e;
}

Explanation explain(std::initializer_list<LazyTensor> outputs) {
  return explain(std::span<const LazyTensor>(outputs.begin(), outputs.size()));
}

}  // namespace caldera
