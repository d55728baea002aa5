#include "engine/compile/order/step_graph.h"

#include <algorithm>
#include <map>

#include "engine/compile/order/in_place.h"
#include "engine/plan/byte_range.h"

namespace caldera {
namespace {

using Edge = std::pair<std::uint32_t, std::uint32_t>;

/// The steps that touched the bytes of one buffer, as runs of bytes with equal history.
class History {
 public:
  /// Calls after(step) for every step that the access must follow, and records it.
  template <class After>
  void access(const ByteRange& range, bool writes, std::uint32_t step, After after) {
    if (range.empty()) return;
    split(range.begin);
    split(range.end);
    const auto first = runs_.lower_bound(range.begin);
    std::int64_t covered = range.begin;
    for (auto run = first; run != runs_.end() && run->first < range.end; ++run) {
      if (run->first > covered) gaps_.emplace_back(covered, run->first);
      covered = run->second.end;
      if (run->second.writer != step && run->second.writer != kNobody) after(run->second.writer);
      if (!writes) {
        if (run->second.readers.empty() || run->second.readers.back() != step)
          run->second.readers.push_back(step);
        continue;
      }
      for (std::uint32_t reader : run->second.readers) {
        if (reader != step) after(reader);
      }
    }
    if (covered < range.end) gaps_.emplace_back(covered, range.end);
    if (writes) {
      runs_.erase(runs_.lower_bound(range.begin), runs_.lower_bound(range.end));
      runs_[range.begin] = {range.end, step, {}};
    } else {
      for (const auto& [begin, end] : gaps_) runs_[begin] = {end, kNobody, {step}};
    }
    gaps_.clear();
  }

 private:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  struct Run {
    std::int64_t end = 0;
    std::uint32_t writer = kNobody;
    std::vector<std::uint32_t> readers;  // since it was written
  };

  void split(std::int64_t at) {
    auto run = runs_.upper_bound(at);
    if (run == runs_.begin()) return;
    --run;
    if (run->first == at || run->second.end <= at) return;
    Run right = run->second;
    run->second.end = at;
    runs_.emplace(at, std::move(right));
  }

  std::map<std::int64_t, Run> runs_;
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps_;
};

/// What the steps did to one buffer, each access by itself: exact where several write it through strides.
class Accesses {
 public:
  template <class After>
  void access(const ByteComb& bytes, bool writes, std::uint32_t step, After after) {
    if (bytes.hull.empty()) return;
    for (const Access& earlier : accesses_) {
      const bool conflict = earlier.writes || writes;
      if (conflict && earlier.step != step && !bytes.apart_from(earlier.bytes)) after(earlier.step);
    }
    accesses_.push_back({bytes, step, writes});
  }

 private:
  struct Access {
    ByteComb bytes;
    std::uint32_t step;
    bool writes;
  };
  std::vector<Access> accesses_;
};

/// Most buffers are written by one step, and all that read them follow it. The others are looked at closely:
/// access by access where there are few, else by their hulls.
class Edges {
 public:
  explicit Edges(const Plan& plan) : plan_(plan), uses_(plan.buffers.size()) {
    for (std::uint32_t s = 0; s < plan.steps.size(); ++s) count(s);
    for (Use& use : uses_) {
      if (!use.is_shared) continue;
      const bool few = use.count <= kFew;
      use.at = static_cast<std::uint32_t>(few ? accesses_.size() : histories_.size());
      if (few)
        accesses_.emplace_back();
      else
        histories_.emplace_back();
    }
    for (std::uint32_t s = 0; s < plan.steps.size(); ++s) add(s);
  }
  std::vector<Edge> take() { return std::move(edges_); }

 private:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  static constexpr std::uint32_t kFew = 512;  // to compare with one another

  struct Use {
    std::uint32_t writer = kNobody;  // the first
    std::uint32_t count = 0;         // accesses
    bool is_shared = false;          // written by several, or read before it is written
    std::uint32_t at = 0;            // of a shared one: in accesses_ or histories_
  };

  static std::size_t first_output(const Step& step) {
    return step.operands.size() - static_cast<std::size_t>(step.output_count());
  }
  bool is_written(std::int32_t buffer) const {
    return buffer >= 0 && plan_.buffers[static_cast<std::size_t>(buffer)].role != BufferRole::input;
  }

  void count(std::uint32_t s) {
    const Step& step = plan_.steps[s];
    const std::size_t outputs = first_output(step);
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      if (!is_written(step.operands[k].buffer)) continue;
      Use& use = uses_[static_cast<std::size_t>(step.operands[k].buffer)];
      const bool writes = k >= outputs;
      ++use.count;
      if (!writes && use.writer == kNobody) use.is_shared = true;
      if (writes && use.writer != kNobody && use.writer != s) use.is_shared = true;
      if (writes && use.writer == kNobody) use.writer = s;
    }
  }

  void add(std::uint32_t s) {
    const Step& step = plan_.steps[s];
    const std::size_t outputs = first_output(step);
    const auto after = [&](std::uint32_t earlier) {
      if (edges_.empty() || edges_.back() != Edge{earlier, s}) edges_.emplace_back(earlier, s);
    };
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      const Operand& operand = step.operands[k];
      if (!is_written(operand.buffer)) continue;
      const Use& use = uses_[static_cast<std::size_t>(operand.buffer)];
      if (!use.is_shared) {
        if (k < outputs && use.writer != s) after(use.writer);
      } else if (use.count <= kFew) {
        accesses_[use.at].access(byte_comb(plan_, step, operand), k >= outputs, s, after);
      } else {
        histories_[use.at].access(byte_range(plan_, step, operand), k >= outputs, s, after);
      }
    }
  }

  const Plan& plan_;
  std::vector<Use> uses_;  // of each buffer
  std::vector<Accesses> accesses_;
  std::vector<History> histories_;
  std::vector<Edge> edges_;
};

}  // namespace

std::int64_t arena_bytes_of(const PlanBuffer& buffer) {
  return std::max<std::int64_t>(1, (buffer.bytes + kArenaAlignment - 1) / kArenaAlignment) * kArenaAlignment;
}

StepGraph::StepGraph(const Plan& plan)
    : predecessors(plan.steps.size(), 0), first_block(plan.input_count + plan.output_count) {
  // Edges in order of the step they come from.
  const std::vector<Edge> edges = Edges(plan).take();
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
    const std::size_t outputs = step.operands.size() - static_cast<std::size_t>(step.output_count());
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

}  // namespace caldera
