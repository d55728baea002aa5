#include "engine/explain/explanation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/explain/explained_plan.h"
#include "engine/explain/records.h"
#include "engine/plan/dependencies.h"

namespace caldera {

Explanation explain(const RunRecord& run) {
  Explanation e;
  e.plan = run.plan;
  e.graph = run.graph;
  e.executed = true;
  e.cache_hit = run.cache_hit;
  e.submits = run.submits;
  e.seconds = seconds_of({run.begin, run.done});
  e.step_seconds.assign(run.steps.size(), 0);
  for (const KernelRun& kernel : kernel_runs(*run.plan, run.steps)) {
    // Steps that ran as one share its time by the bytes that they move.
    const double bytes = static_cast<double>(std::max<std::int64_t>(1, kernel.cost.bytes()));
    for (std::size_t i = kernel.first; i < kernel.first + kernel.count; ++i) {
      const double share = kernel.count == 1
                               ? 1.0
                               : static_cast<double>(cost_of(*run.plan, run.plan->steps[i]).bytes()) / bytes;
      e.step_seconds[i] = seconds_of(kernel.time) * share;
    }
  }
  e.code = run.code;
  return e;
}

Explanation explain(std::span<const std::shared_ptr<const RunRecord>> runs) {
  const auto largest = std::max_element(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return a->plan->node_count < b->plan->node_count;
  });
  if (largest == runs.end()) throw ValueError("explain: nothing was recorded");
  Explanation e = explain(**largest);
  e.submits = 0;
  for (const auto& run : runs) e.submits += run->submits;
  return e;
}

std::string to_json(const Explanation& e) {
  using Json = nlohmann::ordered_json;
  const Plan& plan = *e.plan;
  const std::vector<StepCost> costs = costs_of(plan);
  Json steps = Json::array();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const StepCost& cost = costs[i];
    Json item{{"kernel", step.name()},
              {"kind", step.kind()},
              {"ops", cost.ops},
              {"flops", cost.flops},
              {"bytes", cost.bytes()},
              {"scratch_bytes", cost.scratch_bytes},
              {"form", step.form()},
              {"label", step.label},
              {"dims", std::vector<std::int64_t>(step.dims.begin(), step.dims.end())},
              {"dtype", name(step.dtype)},
              {"read_bytes", cost.read_bytes},
              {"written_bytes", cost.written_bytes},
              {"joined", step.joined || step.finishes},
              {"barrier", step.barrier_before}};
    if (i < e.step_seconds.size()) item["microseconds"] = e.step_seconds[i] * 1e6;
    steps.push_back(std::move(item));
  }
  const Json document{{"title", e.title},
                      {"device", plan.device.to_string()},
                      {"nodes", plan.node_count},
                      {"steps", std::move(steps)},
                      {"dispatches", plan.dispatch_count()},
                      {"barriers", plan.barrier_count()},
                      {"depth", depth_of(plan)},
                      {"submits", e.executed ? Json(e.submits) : Json(nullptr)},
                      {"arena_bytes", plan.arena_bytes},
                      {"peak_bytes", plan.peak_bytes},
                      {"recomputed", Json::array()},
                      {"cache", e.executed ? Json(e.cache_hit ? "hit" : "miss") : Json(nullptr)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace caldera
