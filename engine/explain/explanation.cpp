#include "engine/explain/explanation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/error.h"
#include "engine/compile/order/levels.h"
#include "engine/plan/dependencies.h"

namespace caldera {
namespace {

/// Positions of the buffers that a step reads, and of those that it writes.
struct Accesses {
  std::vector<std::size_t> reads;
  std::vector<std::size_t> writes;
};

Accesses accesses_of(const Step& step) {
  Accesses all;
  const std::size_t first_output = step.first_output();
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    if (step.operands[k].buffer < 0) continue;
    const auto buffer = static_cast<std::size_t>(step.operands[k].buffer);
    if (k >= first_output) all.writes.push_back(buffer);
    if (k < first_output || step.accumulates()) all.reads.push_back(buffer);
  }
  return all;
}

}  // namespace

std::vector<StepCost> costs_of(const Plan& plan) {
  std::vector<StepCost> costs;
  costs.reserve(plan.steps.size());
  for (const Step& step : plan.steps) costs.push_back(cost_of(plan, step));
  return costs;
}

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
  e.costs = costs_of(*e.plan);
  return e;
}

std::string to_json(const Explanation& e) {
  using Json = nlohmann::ordered_json;
  const Plan& plan = *e.plan;
  Json steps = Json::array();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const StepCost& cost = e.costs[i];
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

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kUnits[unit]);
}

std::vector<std::vector<std::uint32_t>> step_dependencies(const Plan& plan) {
  std::vector<std::vector<std::uint32_t>> result(plan.steps.size());
  std::vector<std::vector<std::uint32_t>> writers(plan.buffers.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Accesses accesses = accesses_of(plan.steps[i]);
    std::vector<std::uint32_t>& from = result[i];
    for (const std::size_t b : accesses.reads) from.insert(from.end(), writers[b].begin(), writers[b].end());
    std::sort(from.begin(), from.end());
    from.erase(std::unique(from.begin(), from.end()), from.end());
    for (const std::size_t b : accesses.writes) {
      // Who goes on with a buffer stands for all who wrote it before.
      const bool goes_on = std::find(accesses.reads.begin(), accesses.reads.end(), b) != accesses.reads.end();
      if (goes_on) writers[b].clear();
      writers[b].push_back(static_cast<std::uint32_t>(i));
    }
  }
  return result;
}

std::vector<BufferLife> arena_lives(const Plan& plan) {
  std::vector<std::optional<BufferLife>> found(plan.buffers.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const std::size_t first_output = step.first_output();
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      const Operand& operand = step.operands[k];
      if (operand.buffer < 0) continue;
      const auto b = static_cast<std::size_t>(operand.buffer);
      if (plan.buffers[b].role != BufferRole::arena) continue;
      if (!found[b]) found[b] = BufferLife{.buffer = b, .first = i, .last = i, .writer = {}, .shape = {}};
      found[b]->last = i;
      if (k < first_output || found[b]->writer) continue;
      found[b]->writer = i;
      const Shape dims = step.operand_dims(k);
      for (int d = 0; d < dims.rank(); ++d)
        if (operand.strides[d] != 0 && dims[d] != 1) found[b]->shape.push_back(dims[d]);
    }
  }
  std::vector<BufferLife> lives;
  for (const auto& life : found)
    if (life) lives.push_back(*life);
  std::stable_sort(lives.begin(), lives.end(),
                   [](const BufferLife& a, const BufferLife& b) { return a.first < b.first; });
  return lives;
}

std::vector<std::int64_t> live_bytes(const Plan& plan, std::span<const BufferLife> lives) {
  std::vector<std::int64_t> live(plan.steps.size(), 0);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::size_t i = 0; i < live.size(); ++i) {
    ranges.clear();
    for (const BufferLife& life : lives) {
      if (life.first > i || life.last < i) continue;
      const PlanBuffer& buffer = plan.buffers[life.buffer];
      ranges.emplace_back(buffer.arena_offset, buffer.arena_offset + buffer.bytes);
    }
    std::sort(ranges.begin(), ranges.end());
    std::int64_t end = 0;
    for (const auto& [low, high] : ranges) {
      live[i] += std::max<std::int64_t>(0, high - std::max(low, end));
      end = std::max(end, high);
    }
  }
  return live;
}

}  // namespace caldera
