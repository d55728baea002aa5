#include "engine/compile/emit/layouts.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
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
  if (step.is<RegionStep>()) {
    auto& region = step.as<RegionStep>();
    const int kept = step.dims.rank() - region.reduce_rank;
    for (int d = kept; d < step.dims.rank(); ++d)
      region.reduce_rank = static_cast<std::int8_t>(
          region.reduce_rank + static_cast<int>(factors[static_cast<std::size_t>(d)].size()) - 1);
  }
  step.dims = Shape(dims);
}

/// Whether a contraction of these factors is one of the same matrices side by side: columns of a single row,
/// where an epilogue puts each element. Then `split_dims` leaves the row behind the first of them.
bool may_split_columns(const Step& step, const Factors& factors) {
  const auto* contract = step.if_a<ContractStep>();
  const auto row = static_cast<std::size_t>(step.dims.rank() - 3);
  if (contract == nullptr || !contract->epilogue || step.dims[static_cast<int>(row)] != 1) return false;
  for (std::size_t d = 0; d < factors.size(); ++d) {
    if (factors[d].size() > (d == row + 1 ? 2U : 1U)) return false;
  }
  return true;
}

/// Exchanges the row of a contraction and what is ahead of its columns now: batch..., N / n, 1, n, K.
void move_row_inside(Step& step) {
  const int row = step.dims.rank() - 4;
  const auto exchange = [&](auto& dims) {
    const std::int64_t first = dims[row];
    dims[row] = dims[row + 1];
    dims[row + 1] = first;
  };
  exchange(step.dims);
  for (Operand& operand : step.operands) exchange(operand.strides);
}

/// The step with what it does to the first buffer of the change done to the second; false if that cannot be.
bool change_layout(Step& step, const LayoutChange& change) {
  if (!step.is<RegionStep>() && !step.is<ContractStep>() && !step.is<AttentionStep>()) return false;
  // Rows of stored keys are found by more than strides.
  const auto* attention = step.if_a<AttentionStep>();
  const bool stored = attention != nullptr && !attention->stored.is_plain();
  for (std::size_t k = 1; stored && k < 3; ++k)
    if (step.operands[k].buffer == change.from()) return false;
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
  const bool may_split = step.is<RegionStep>() || may_split_columns(step, all);
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
    operand.position = change.position();
    int at = 0;
    for (std::size_t d = 0; d < all.size(); ++d) {
      const auto& own = mapped.dims[d];
      for (std::size_t f = 0; f < all[d].size(); ++f)
        operand.strides[at++] = own.size() == all[d].size() ? own[f].stride : 0;
    }
  }
  if (rank > all.size() && step.is<ContractStep>()) move_row_inside(step);
  return true;
}

/// Whether no place that the position moves these operands to has an element of another place: what a step
/// writes through them can be told apart then, if it can where they stand.
bool have_places_apart(const Plan& plan, const Step& step, const std::vector<std::size_t>& operands,
                       std::int32_t position) {
  for (const Position::Term& term : plan.positions[static_cast<std::size_t>(position)].terms) {
    // Where the elements of all operands are along the axis that the position moves.
    std::int64_t low = std::numeric_limits<std::int64_t>::max(),
                 high = std::numeric_limits<std::int64_t>::min();
    for (const std::size_t k : operands) {
      const Operand& operand = step.operands[k];
      const Shape extents = step.operand_dims(k);
      std::int64_t first = operand.offset, last = operand.offset;
      for (int d = 0; d < extents.rank(); ++d) {
        const std::int64_t reach = operand.strides[d] * (extents[d] - 1);
        if (std::abs(operand.strides[d]) < term.stride * (term.limit + 1))
          (reach < 0 ? first : last) += reach;
      }
      low = std::min(low, first);
      high = std::max(high, last);
    }
    if (high - low >= term.stride) return false;
  }
  return true;
}

/// Steps between a result and its copy that are looked at.
constexpr std::uint32_t kMostBetween = 64;
/// Steps that may touch a buffer whose layout changes: each of them is tried again with every copy of it.
constexpr std::size_t kMostTouching = 256;

/// Tries one copy after the other.
class Layouts {
 public:
  explicit Layouts(Plan& plan) : plan_(plan) {}

  void run() {
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const std::optional<LayoutChange> change = LayoutChange::of(plan_, plan_.steps[s]);
      if (!change) continue;
      if (touched_by_.empty()) find_touched();
      if (!change->is_whole()) {
        try_write_part(s, *change);
      } else if (try_change(s, *change)) {
        gone_.push_back(s);
      }
    }
    std::ranges::sort(gone_);
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

  bool touches(const Step& step, std::int32_t buffer) const {
    return std::ranges::any_of(step.operands, [&](const Operand& o) { return o.buffer == buffer; });
  }

  /// Whether a step may run behind those up to `end`: none of them needs what it writes, or writes what it
  /// reads.
  bool may_wait(std::uint32_t s, std::uint32_t end) const {
    const Step& step = plan_.steps[s];
    for (std::uint32_t other = s + 1; other < end; ++other) {
      for (std::size_t k = 0; k < step.operands.size(); ++k) {
        const std::int32_t buffer = step.operands[k].buffer;
        if (buffer < 0) continue;
        if (k < step.first_output() ? writes(other, buffer) : touches(plan_.steps[other], buffer))
          return false;
      }
    }
    return true;
  }

  bool can_be_told_apart(const Step& step, const LayoutChange& change) const {
    std::vector<std::size_t> parts;
    for (std::size_t k = step.first_output(); k < step.operands.size(); ++k) {
      if (step.operands[k].buffer == change.to()) parts.push_back(k);
    }
    return change.position() < 0 || parts.size() < 2 ||
           have_places_apart(plan_, step, parts, change.position());
  }

  /// Whether another step up to `end` reads an input that the step reads: it may be the last to do so, and
  /// write over it, only if the other one comes first.
  bool shares_input(std::uint32_t s, std::uint32_t end) const {
    const Step& step = plan_.steps[s];
    for (std::size_t k = 0; k < step.first_output(); ++k) {
      const std::int32_t buffer = step.operands[k].buffer;
      if (buffer < 0 || buffer >= plan_.input_count) continue;
      for (std::uint32_t other = s + 1; other < end; ++other)
        if (touches(plan_.steps[other], buffer)) return true;
    }
    return false;
  }

  /// The one step that writes what is copied writes the part itself, in the place of the copy.
  void try_write_part(std::uint32_t copy, const LayoutChange& change) {
    const std::vector<std::uint32_t>& touching_it = touching(change.from());
    if (touching_it.size() != 2 || touching_it[1] != copy) return;
    const std::uint32_t writer = touching_it[0];
    if (copy - writer > kMostBetween || !writes(writer, change.from()) || plan_.steps[writer].accumulates() ||
        touches(plan_.steps[writer], change.to()) || !may_wait(writer, copy) || shares_input(writer, copy))
      return;
    Step step = plan_.steps[writer];
    for (std::size_t k = 0; k < step.first_output(); ++k) {
      if (step.operands[k].buffer == change.from()) return;
    }
    if (!change_layout(step, change) || !can_be_told_apart(step, change)) return;
    step.nodes.insert(step.nodes.end(), plan_.steps[copy].nodes.begin(), plan_.steps[copy].nodes.end());
    plan_.steps[copy] = std::move(step);
    touching(change.from()).clear();
    for (const Operand& operand : plan_.steps[copy].operands) {
      if (operand.buffer >= plan_.input_count + plan_.output_count)
        put_off(touching(operand.buffer), writer, copy);
    }
    gone_.push_back(writer);
  }

  /// What the writer touched is touched in the copy's place now. Moves no more entries than there are steps
  /// from one to the other, however many touch the buffer. The buffer that is copied to has the copy already.
  static void put_off(std::vector<std::uint32_t>& steps, std::uint32_t writer, std::uint32_t copy) {
    const auto at = std::ranges::lower_bound(steps, writer);
    if (at == steps.end() || *at != writer) return;
    const auto end = std::lower_bound(at, steps.end(), copy);
    std::move(at + 1, end, at);
    *(end - 1) = copy;
  }

  bool try_change(std::uint32_t copy, const LayoutChange& change) {
    if (touching(change.from()).size() > kMostTouching) return false;
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
