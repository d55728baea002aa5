// Hazards: a barrier stands before a dispatch only if it conflicts with one since the last barrier.
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "engine/compile/compile.h"
#include "engine/compile/span_of.h"

namespace caldera {
namespace {

/// Bytes by address space: 0 is the arena, output buffers have one each. Inputs are never written and need
/// none.
struct Access {
  std::int32_t space;
  ByteRange range;
};

/// A set of byte ranges, merged where they touch.
class RangeSet {
 public:
  bool intersects(const Access& a) const {
    auto next = ranges_.lower_bound({a.space, a.range.begin});
    if (next != ranges_.end() && next->first.first == a.space && next->first.second < a.range.end)
      return true;
    if (next == ranges_.begin()) return false;
    --next;
    return next->first.first == a.space && next->second > a.range.begin;
  }

  void insert(const Access& a) {
    std::int64_t begin = a.range.begin;
    std::int64_t end = a.range.end;
    auto at = ranges_.lower_bound({a.space, begin});
    if (at != ranges_.begin()) {
      const auto before = std::prev(at);
      if (before->first.first == a.space && before->second >= begin) at = before;
    }
    while (at != ranges_.end() && at->first.first == a.space && at->first.second <= end) {
      begin = std::min(begin, at->first.second);
      end = std::max(end, at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace(std::pair{a.space, begin}, end);
  }

  void clear() { ranges_.clear(); }

 private:
  std::map<std::pair<std::int32_t, std::int64_t>, std::int64_t> ranges_;
};

/// What one dispatch touches: a step and those joined to it.
struct Accesses {
  std::vector<Access> reads;
  std::vector<Access> writes;

  void clear() {
    reads.clear();
    writes.clear();
  }
  void add(const Plan& plan, const Step& step) {
    const std::size_t first_output = step.operands.size() - static_cast<std::size_t>(step.output_count());
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      const Operand& operand = step.operands[k];
      if (operand.buffer < 0) continue;
      const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(operand.buffer)];
      if (buffer.role == BufferRole::input) continue;
      Access access{0, byte_range(plan, step, operand)};
      if (access.range.empty()) continue;
      if (buffer.role == BufferRole::output) {
        access.space = operand.buffer + 1;
      } else {
        access.range.begin += buffer.arena_offset;
        access.range.end += buffer.arena_offset;
      }
      if (k >= first_output) writes.push_back(access);
      if (k < first_output || step.kind == StepKind::scatter_add) reads.push_back(access);
    }
  }
};

}  // namespace

void plan_barriers(Plan& plan) {
  RangeSet read;
  RangeSet written;
  Accesses dispatch;
  for (std::size_t first = 0; first < plan.steps.size();) {
    dispatch.clear();
    dispatch.add(plan, plan.steps[first]);
    std::size_t end = first + 1;
    for (; end < plan.steps.size() && plan.steps[end].joined; ++end) {
      plan.steps[end].barrier_before = false;
      dispatch.add(plan, plan.steps[end]);
    }
    bool conflict = false;
    for (const Access& a : dispatch.reads) conflict = conflict || written.intersects(a);
    for (const Access& a : dispatch.writes)
      conflict = conflict || written.intersects(a) || read.intersects(a);
    plan.steps[first].barrier_before = conflict;
    if (conflict) {
      read.clear();
      written.clear();
    }
    for (const Access& a : dispatch.reads) read.insert(a);
    for (const Access& a : dispatch.writes) written.insert(a);
    first = end;
  }
}

}  // namespace caldera
