#include "engine/explain/explained_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

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
