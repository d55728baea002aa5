#include "engine/compile/order/join_steps.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/compile/program/limits.h"
#include "engine/plan/byte_range.h"

namespace caldera {
namespace {

/// Of a region.
Hash128 kernel_of(const Step& step) { return step.as<RegionStep>().kernel->hash; }

class Joiner {
 public:
  explicit Joiner(Plan& plan) : plan_(plan), pending_of_(plan.buffers.size()) {}

  void run() {
    find_last_readers();
    std::unordered_map<Hash128, int> counts;
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      waits_.push_back(may_wait(i));
      if (waits_[i]) ++counts[kernel_of(plan_.steps[i])];
    }
    std::vector<Step> steps = std::move(plan_.steps);
    plan_.steps.clear();
    plan_.steps.reserve(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Step& step = steps[i];
      flush_what_it_needs(step);
      if (waits_[i] && counts[kernel_of(step)] > 1) {
        defer(std::move(step));
      } else {
        plan_.steps.push_back(std::move(step));
      }
    }
    while (!batches_.empty()) flush(0);
  }

 private:
  struct Use {
    Hash128 kernel;
    bool writes;
    ByteRange range;
  };

  struct Batch {
    Hash128 kernel;
    std::vector<Step> steps;
  };

  void find_last_readers() {
    last_reader_.assign(plan_.buffers.size(), 0);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      for (const Operand& operand : plan_.steps[i].operands) {
        if (operand.buffer >= 0) last_reader_[static_cast<std::size_t>(operand.buffer)] = i;
      }
    }
  }
  /// Whether step i may run later: while it waits, what it alone still reads lives on, and what it writes
  /// does not live yet.
  bool may_wait(std::size_t i) const {
    const Step& step = plan_.steps[i];
    if (!step.is<RegionStep>()) return false;
    const std::size_t first_output = step.first_output();
    std::int64_t freed = 0, taken = 0;
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      if (!in_memory(step.operands[k])) continue;
      const auto b = static_cast<std::size_t>(step.operands[k].buffer);
      if (k >= first_output)
        taken += plan_.buffers[b].bytes;
      else if (last_reader_[b] == i && plan_.buffers[b].role == BufferRole::arena)
        freed += plan_.buffers[b].bytes;
    }
    return freed <= taken + kMaxBytesHeldBack;
  }
  bool in_memory(const Operand& operand) const {
    return operand.buffer >= 0 &&
           plan_.buffers[static_cast<std::size_t>(operand.buffer)].role != BufferRole::input;
  }

  /// Batches that write what the step touches, or read what it writes, run first.
  void flush_what_it_needs(const Step& step) {
    const std::size_t first_output = step.first_output();
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      const Operand& operand = step.operands[k];
      if (!in_memory(operand)) continue;
      const Use own{{}, k >= first_output, byte_range(plan_, step, k)};
      while (const Batch* batch = conflicting(operand.buffer, own)) {
        flush(static_cast<std::size_t>(batch - batches_.data()));
      }
    }
  }
  const Batch* conflicting(std::int32_t buffer, const Use& own) const {
    for (const Use& use : pending_of_[static_cast<std::size_t>(buffer)]) {
      if (!use.writes && !own.writes) continue;
      // Parts of one buffer (a concatenation) may wait together.
      if (use.range.begin >= own.range.end || own.range.begin >= use.range.end) continue;
      for (const Batch& batch : batches_) {
        if (batch.kernel == use.kernel) return &batch;
      }
    }
    return nullptr;
  }

  void defer(Step step) {
    const Hash128 kernel = kernel_of(step);
    auto batch =
        std::find_if(batches_.begin(), batches_.end(), [&](const Batch& b) { return b.kernel == kernel; });
    if (batch == batches_.end()) batch = batches_.insert(batches_.end(), Batch{kernel, {}});
    const std::size_t first_output = step.first_output();
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      if (!in_memory(step.operands[k])) continue;
      pending_of_[static_cast<std::size_t>(step.operands[k].buffer)].push_back(
          {kernel, k >= first_output, byte_range(plan_, step, k)});
    }
    batch->steps.push_back(std::move(step));
    if (batch->steps.size() >= kMaxJoinedSteps) flush(static_cast<std::size_t>(batch - batches_.begin()));
  }

  void flush(std::size_t which) {
    Batch batch = std::move(batches_[which]);
    batches_.erase(batches_.begin() + static_cast<std::ptrdiff_t>(which));
    bool first = true;
    for (Step& step : batch.steps) {
      for (const Operand& operand : step.operands) {
        if (!in_memory(operand)) continue;
        auto& uses = pending_of_[static_cast<std::size_t>(operand.buffer)];
        std::erase_if(uses, [&](const Use& use) { return use.kernel == batch.kernel; });
      }
      step.joined = !first;
      first = false;
      plan_.steps.push_back(std::move(step));
    }
  }

  Plan& plan_;
  std::vector<std::size_t> last_reader_;      // of each buffer: the last step that touches it
  std::vector<bool> waits_;                   // of each step
  std::vector<Batch> batches_;                // in the order of their first steps
  std::vector<std::vector<Use>> pending_of_;  // of each buffer: what waiting steps do with it
};

}  // namespace

void join_steps(Plan& plan) { Joiner(plan).run(); }

}  // namespace caldera
