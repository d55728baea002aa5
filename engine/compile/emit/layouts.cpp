#include "engine/compile/emit/layouts.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "engine/compile/emit/layout_change.h"

namespace caldera {
namespace {

using Factors = std::vector<std::vector<LayoutChange::Factor>>;

/// The step with each dimension cut into factors of these extents.
void split_dims(Step& step, const Factors& factors) {
  Dims dims;
  for (const auto& own : factors)
    for (const auto& factor : own) dims.push_back(factor.extent);
  for (Operand& operand : step.operands) {
    Dims strides;
    for (int d = 0; d < step.dims.rank(); ++d) {
      const auto& own = factors[static_cast<std::size_t>(d)];
      std::int64_t apart = operand.strides[d];
      for (const auto& factor : own) apart *= factor.extent;
      for (const auto& factor : own) strides.push_back(apart /= factor.extent);
    }
    operand.strides = strides;
  }
  auto& region = step.as<RegionStep>();
  const int kept = step.dims.rank() - region.reduce_rank;
  for (int d = kept; d < step.dims.rank(); ++d)
    region.reduce_rank = static_cast<std::int8_t>(
        region.reduce_rank + static_cast<int>(factors[static_cast<std::size_t>(d)].size()) - 1);
  step.dims = Shape(dims);
}

/// The step with what it does to the first buffer of the change done to the second; false if that cannot be.
bool change_layout(Step& step, const LayoutChange& change) {
  const bool may_split = step.is<RegionStep>();
  if (!may_split && !step.is<ContractStep>() && !step.is<AttentionStep>()) return false;
  std::vector<std::pair<std::size_t, LayoutChange::Mapped>> operands;
  Factors all;  // of the step's dimensions
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    if (step.operands[k].buffer != change.from()) continue;
    std::optional<LayoutChange::Mapped> mapped = change.map(step.operands[k], step.operand_dims(k));
    if (!mapped) return false;
    if (all.empty()) all = mapped->dims;
    for (std::size_t d = 0; d < all.size(); ++d) {
      if (mapped->dims[d].size() > all[d].size()) all[d] = mapped->dims[d];
    }
    operands.emplace_back(k, std::move(*mapped));
  }
  std::size_t rank = 0;
  for (std::size_t d = 0; d < all.size(); ++d) {
    rank += all[d].size();
    if (all[d].size() > 1 && !may_split) return false;
    for (const auto& [k, mapped] : operands) {
      const auto& own = mapped.dims[d];
      const bool stands = own.size() == 1 && own[0].stride == 0;
      if (!stands &&
          !std::ranges::equal(own, all[d], {}, &LayoutChange::Factor::extent, &LayoutChange::Factor::extent))
        return false;
    }
  }
  if (rank > static_cast<std::size_t>(kMaxRank)) return false;
  if (rank > all.size()) split_dims(step, all);
  for (const auto& [k, mapped] : operands) {
    Operand& operand = step.operands[k];
    operand.buffer = change.to();
    operand.offset = mapped.offset;
    int at = 0;
    for (std::size_t d = 0; d < all.size(); ++d) {
      const auto& own = mapped.dims[d];
      for (std::size_t f = 0; f < all[d].size(); ++f)
        operand.strides[at++] = own.size() == all[d].size() ? own[f].stride : 0;
    }
  }
  return true;
}

/// Tries one copy after the other.
class Layouts {
 public:
  explicit Layouts(Plan& plan) : plan_(plan) {}

  void run() {
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const std::optional<LayoutChange> change = LayoutChange::of(plan_, plan_.steps[s]);
      if (!change) continue;
      if (touched_by_.empty()) find_touched();
      if (try_change(s, *change)) gone_.push_back(s);
    }
    if (!gone_.empty()) clean_up();
  }

 private:
  std::vector<std::uint32_t>& touching(std::int32_t buffer) {
    return touched_by_[static_cast<std::size_t>(buffer)];
  }
  void find_touched() {
    touched_by_.resize(plan_.buffers.size());
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      for (const Operand& operand : plan_.steps[s].operands) {
        if (operand.buffer < plan_.input_count + plan_.output_count) continue;
        auto& steps = touching(operand.buffer);
        if (steps.empty() || steps.back() != s) steps.push_back(s);
      }
    }
  }
  bool writes(std::uint32_t s, std::int32_t buffer) const {
    const Step& step = plan_.steps[s];
    return std::any_of(step.operands.begin() + static_cast<std::ptrdiff_t>(step.first_output()),
                       step.operands.end(), [&](const Operand& o) { return o.buffer == buffer; });
  }

  bool try_change(std::uint32_t copy, const LayoutChange& change) {
    // From the copy on nobody may write either of the two, so that they stay equal.
    for (std::uint32_t s : touching(change.to())) {
      if (s != copy && (s < copy || writes(s, change.to()))) return false;
    }
    std::vector<std::pair<std::uint32_t, Step>> changed;
    std::uint32_t writer = copy;
    for (std::uint32_t s : touching(change.from())) {
      if (s == copy) continue;
      if (writes(s, change.from())) {
        if (s > copy) return false;
        writer = s;
      }
      changed.emplace_back(s, plan_.steps[s]);
      if (!change_layout(changed.back().second, change)) return false;
    }
    if (writer == copy) return false;
    for (auto& [s, step] : changed) plan_.steps[s] = std::move(step);
    auto& nodes = plan_.steps[writer].nodes;
    nodes.insert(nodes.end(), plan_.steps[copy].nodes.begin(), plan_.steps[copy].nodes.end());
    std::vector<std::uint32_t> both;
    std::ranges::set_union(touching(change.from()), touching(change.to()), std::back_inserter(both));
    std::erase(both, copy);
    touching(change.from()).clear();
    touching(change.to()) = std::move(both);
    return true;
  }

  /// Leaves out the copies, and the buffers that nobody touches any more.
  void clean_up() {
    std::vector<std::int32_t> number(plan_.buffers.size());
    std::vector<PlanBuffer> buffers;
    for (std::size_t b = 0; b < number.size(); ++b) {
      const bool is_gone = plan_.buffers[b].role == BufferRole::arena && touched_by_[b].empty();
      number[b] = is_gone ? -1 : static_cast<std::int32_t>(buffers.size());
      if (!is_gone) buffers.push_back(plan_.buffers[b]);
    }
    plan_.buffers = std::move(buffers);
    std::vector<Step> steps;
    steps.reserve(plan_.steps.size() - gone_.size());
    std::size_t next = 0;
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      if (next < gone_.size() && gone_[next] == s) {
        ++next;
        continue;
      }
      steps.push_back(std::move(plan_.steps[s]));
      for (Operand& operand : steps.back().operands)
        if (operand.buffer >= 0) operand.buffer = number[static_cast<std::size_t>(operand.buffer)];
    }
    plan_.steps = std::move(steps);
    std::erase_if(plan_.stored_values, [&](const StoredValue& v) { return number[v.value] < 0; });
    for (StoredValue& v : plan_.stored_values) v.value = static_cast<std::uint32_t>(number[v.value]);
  }

  Plan& plan_;
  std::vector<std::vector<std::uint32_t>> touched_by_;  // steps, for each buffer of the arena
  std::vector<std::uint32_t> gone_;                     // copies
};

}  // namespace

void choose_layouts(Plan& plan) { Layouts(plan).run(); }

}  // namespace caldera
