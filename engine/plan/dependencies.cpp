#include "engine/plan/dependencies.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/plan/byte_range.h"

namespace caldera {
namespace {

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
  std::vector<StepEdge> take() { return std::move(edges_); }

 private:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  static constexpr std::uint32_t kFew = 512;  // to compare with one another

  struct Use {
    std::uint32_t writer = kNobody;  // the first
    std::uint32_t count = 0;         // accesses
    bool is_shared = false;          // written by several, or read before it is written
    std::uint32_t at = 0;            // of a shared one: in accesses_ or histories_
  };

  bool is_written(std::int32_t buffer) const {
    return buffer >= 0 && plan_.buffers[static_cast<std::size_t>(buffer)].role != BufferRole::input;
  }

  void count(std::uint32_t s) {
    const Step& step = plan_.steps[s];
    const std::size_t outputs = step.first_output();
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
    const std::size_t outputs = step.first_output();
    const auto after = [&](std::uint32_t earlier) {
      if (edges_.empty() || edges_.back() != StepEdge{earlier, s}) edges_.emplace_back(earlier, s);
    };
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      const Operand& operand = step.operands[k];
      if (!is_written(operand.buffer)) continue;
      const Use& use = uses_[static_cast<std::size_t>(operand.buffer)];
      if (!use.is_shared) {
        if (k < outputs && use.writer != s) after(use.writer);
      } else if (use.count <= kFew) {
        accesses_[use.at].access(byte_comb(plan_, step, k), k >= outputs, s, after);
      } else {
        histories_[use.at].access(byte_range(plan_, step, k), k >= outputs, s, after);
      }
    }
  }

  const Plan& plan_;
  std::vector<Use> uses_;  // of each buffer
  std::vector<Accesses> accesses_;
  std::vector<History> histories_;
  std::vector<StepEdge> edges_;
};

}  // namespace

std::vector<StepEdge> dependencies_of(const Plan& plan) { return Edges(plan).take(); }

int depth_of(const Plan& plan) {
  if (plan.steps.empty()) return 0;
  std::vector<std::size_t> dispatch_of;
  std::size_t dispatches = 0;
  for (const Step& step : plan.steps) {
    if (dispatches == 0 || !step.joined) ++dispatches;
    dispatch_of.push_back(dispatches - 1);
  }
  // All edges to a dispatch stand before those that lead from it.
  std::vector<int> depth(dispatches, 1);
  for (const auto& [from, to] : dependencies_of(plan)) {
    const std::size_t a = dispatch_of[from], b = dispatch_of[to];
    if (a != b) depth[b] = std::max(depth[b], depth[a] + 1);
  }
  return *std::max_element(depth.begin(), depth.end());
}

}  // namespace caldera
