#include "engine/compile/order/hazards.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "engine/plan/byte_range.h"

namespace caldera {
namespace {

/// Bytes by address space: 0 is the arena, output buffers have one each. Inputs are never written and need
/// none.
struct Access {
  std::int32_t space;
  ByteComb bytes;
};

/// What has been touched since the last barrier: hulls, merged where they touch, and each access by itself
/// for those whose hull meets another's.
class Touched {
 public:
  bool meets(const Access& a) const {
    constexpr std::size_t kMany = 512;  // to compare with one by one
    if (!hull_meets(a)) return false;
    if (a.bytes.period == 0 || accesses_.size() > kMany) return true;
    return std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& other) {
      return other.space == a.space && !a.bytes.apart_from(other.bytes);
    });
  }

  void insert(const Access& a) {
    accesses_.push_back(a);
    std::int64_t begin = a.bytes.hull.begin;
    std::int64_t end = a.bytes.hull.end;
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

  void clear() {
    ranges_.clear();
    accesses_.clear();
  }

 private:
  bool hull_meets(const Access& a) const {
    const ByteRange& hull = a.bytes.hull;
    auto next = ranges_.lower_bound({a.space, hull.begin});
    if (next != ranges_.end() && next->first.first == a.space && next->first.second < hull.end) return true;
    if (next == ranges_.begin()) return false;
    --next;
    return next->first.first == a.space && next->second > hull.begin;
  }

  std::vector<Access> accesses_;
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
    const std::size_t first_output = step.first_output();
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      const Operand& operand = step.operands[k];
      if (operand.buffer < 0) continue;
      const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(operand.buffer)];
      if (buffer.role == BufferRole::input) continue;
      Access access{0, byte_comb(plan, step, k)};
      if (access.bytes.hull.empty()) continue;
      if (buffer.role == BufferRole::output) {
        access.space = operand.buffer + 1;
      } else {
        access.bytes.hull.begin += buffer.arena_offset;
        access.bytes.hull.end += buffer.arena_offset;
      }
      if (k >= first_output) writes.push_back(access);
      if (k < first_output || step.accumulates()) reads.push_back(access);
    }
  }
};

}  // namespace

void plan_barriers(Plan& plan) {
  Touched read;
  Touched written;
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
    for (const Access& a : dispatch.reads) conflict = conflict || written.meets(a);
    for (const Access& a : dispatch.writes) conflict = conflict || written.meets(a) || read.meets(a);
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
