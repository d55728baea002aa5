#include "engine/compile/order/step_graph.h"

#include <algorithm>
#include <map>

#include "engine/compile/order/in_place.h"
#include "engine/graph/host_exchange.h"
#include "engine/plan/dependencies.h"

namespace caldera {
std::int64_t arena_bytes_of(const PlanBuffer& buffer) {
  return std::max<std::int64_t>(1, (buffer.bytes + kArenaAlignment - 1) / kArenaAlignment) * kArenaAlignment;
}

namespace {

/// Each exchange before the one that follows it in its queue.
void add_queues(const Plan& plan, std::vector<StepEdge>& edges) {
  std::map<int, std::uint32_t> last;
  for (std::uint32_t s = 0; s < plan.steps.size(); ++s) {
    const HostExchange* const exchange = exchange_of(plan.steps[s]);
    if (exchange == nullptr) continue;
    const auto [before, is_first] = last.try_emplace(exchange->queue(), s);
    if (!is_first) edges.emplace_back(std::exchange(before->second, s), s);
  }
}

}  // namespace

const HostExchange* exchange_of(const Step& step) {
  const auto* control = step.if_a<ControlStep>();
  return control != nullptr && control->layout.kind == ControlKind::exchange ? control->exchange.get()
                                                                             : nullptr;
}

StepGraph::StepGraph(const Plan& plan)
    : predecessors(plan.steps.size(), 0), first_block(plan.input_count + plan.output_count) {
  std::vector<StepEdge> edges = dependencies_of(plan);
  add_queues(plan, edges);
  // Edges in order of the step they come from.
  std::vector<std::uint32_t> next(plan.steps.size() + 1, 0);
  for (const auto& [from, to] : edges) {
    ++next[from + 1];
    ++predecessors[to];
  }
  for (std::size_t s = 1; s < next.size(); ++s) next[s] += next[s - 1];
  std::vector<std::uint32_t> sorted(edges.size());
  for (const auto& [from, to] : edges) sorted[next[from]++] = to;
  std::size_t at = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    for (; at < next[s]; ++at) successors.push(sorted[at]);
    successors.end_row();
  }

  const auto blocks = plan.buffers.size() - static_cast<std::size_t>(first_block);
  bytes.reserve(blocks);
  for (std::size_t b = 0; b < blocks; ++b) {
    bytes.push_back(arena_bytes_of(plan.buffers[static_cast<std::size_t>(first_block) + b]));
  }
  touch_count.assign(blocks, 0);
  std::vector<std::uint32_t> touched_by(blocks, ~std::uint32_t{0});
  for (std::uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    for (const Operand& operand : step.operands) {
      if (operand.buffer < first_block) continue;
      const auto block = static_cast<std::size_t>(operand.buffer - first_block);
      if (touched_by[block] == s) continue;
      touched_by[block] = s;
      ++touch_count[block];
      touches.push(static_cast<std::int32_t>(block));
    }
    touches.end_row();
    const std::size_t outputs = step.first_output();
    for (std::size_t out = outputs; out < step.operands.size(); ++out) {
      if (step.operands[out].buffer < first_block) continue;
      for (std::size_t in = 0; in < outputs; ++in) {
        if (replacements.open_row().size() == kMaxReplacements) break;
        if (step.operands[in].buffer < first_block || !may_write_over(plan, step, out, in)) continue;
        replacements.push({step.operands[out].buffer - first_block, step.operands[in].buffer - first_block});
      }
    }
    replacements.end_row();
  }
}

std::int64_t LiveBytes::during(std::uint32_t step) const {
  std::int64_t live = now_;
  for (std::int32_t block : graph_.touches[step]) {
    if (is_new(block)) live += graph_.bytes[static_cast<std::size_t>(block)];
  }
  match_replacements(
      graph_.replacements[step],
      [&](std::int32_t output, std::int32_t operand) {
        return is_new(output) && dies(operand) && !is_new(operand);
      },
      [&](std::int32_t output, std::int32_t) { live -= graph_.bytes[static_cast<std::size_t>(output)]; });
  return live;
}

std::int64_t LiveBytes::change(std::uint32_t step) const {
  std::int64_t change = 0;
  for (std::int32_t block : graph_.touches[step]) {
    const std::int64_t size = graph_.bytes[static_cast<std::size_t>(block)];
    if (is_new(block)) change += size;
    if (dies(block)) change -= size;
  }
  return change;
}

std::int64_t peak_of(const StepGraph& graph, std::span<const std::uint32_t> order) {
  LiveBytes live(graph);
  std::int64_t peak = 0;
  for (std::uint32_t step : order) {
    peak = std::max(peak, live.during(step));
    live.run(step, [](std::int32_t) {});
  }
  return peak;
}

void put_in_order(Plan& plan, std::span<const std::uint32_t> order) {
  std::vector<Step> steps;
  steps.reserve(plan.steps.size());
  for (const std::uint32_t s : order) steps.push_back(std::move(plan.steps[s]));
  plan.steps = std::move(steps);
}

Rows<std::uint32_t> reversed_edges(const StepGraph& graph) {
  std::vector<std::vector<std::uint32_t>> to(graph.size());
  for (std::uint32_t s = 0; s < graph.size(); ++s) {
    for (const std::uint32_t next : graph.successors[s]) to[next].push_back(s);
  }
  Rows<std::uint32_t> edges;
  for (const std::vector<std::uint32_t>& list : to) {
    for (const std::uint32_t s : list) edges.push(s);
    edges.end_row();
  }
  return edges;
}

}  // namespace caldera
