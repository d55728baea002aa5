#include "engine/compile/fuse/drafts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "engine/compile/program/limits.h"

namespace caldera {

Drafts::Drafts(const Placement& placement, bool fusion)
    : placement_(placement), count_(static_cast<Id>(placement.program().nodes.size())) {
  draft_of_.assign(count_, kNoRoot);
  build_readers();
  make_drafts(fusion);
}

void Drafts::build_readers() {
  first_reader_.assign(count_ + std::size_t{1}, 0);
  const auto each = [&](auto visit) {
    for (Id i = 0; i < count_; ++i) {
      if (!placement_.is_live(i) || placement_.is_free(i)) continue;
      for_each_operand(i, [&](const Source& s) { visit(s.root, i); });
    }
  };
  each([&](Id read, Id) { ++first_reader_[read + std::size_t{1}]; });
  for (std::size_t i = 0; i < count_; ++i) first_reader_[i + 1] += first_reader_[i];
  readers_.resize(first_reader_.back());
  std::vector<std::uint32_t> next(first_reader_.begin(), first_reader_.end() - 1);
  each([&](Id read, Id reader) { readers_[next[read]++] = reader; });
  is_awaited_.assign(count_, false);
  for (Id i = 0; i < count_; ++i) {
    placement_.for_each_awaited(i, [&](Id root) { is_awaited_[root] = has_barriers_ = true; });
  }
}

void Drafts::make_drafts(bool fusion) {
  const auto has_kernel = [&](Id i) {
    return placement_.is_live(i) && placement_.node(i).op->kind != OpClass::data && !placement_.is_free(i) &&
           !placement_.is_generated(i);
  };
  std::size_t kernels = 0;
  for (Id i = 0; i < count_; ++i) kernels += has_kernel(i) ? 1 : 0;
  drafts_.reserve(kernels);
  parent_.resize(kernels);
  std::iota(parent_.begin(), parent_.end(), 0U);
  for (Id i = 0; i < count_; ++i) {
    const OpClass kind = placement_.node(i).op->kind;
    if (!has_kernel(i)) continue;
    draft_of_[i] = static_cast<Id>(drafts_.size());
    Draft& d = drafts_.emplace_back();
    d.space = iteration_shape(placement_, i);
    if (!placement_.is_expression(i)) {
      d.other = i;
      d.open = kind == OpClass::contract;
      continue;
    }
    d.members = {i};
    d.open = fusion;
    if (kind == OpClass::reduce) set_row(d, i);
  }
}

void Drafts::set_row(Draft& d, Id reduce) {
  d.reduced = placement_.node(reduce).attributes[0];
  d.rows = d.columns = 1;
  bool trailing = true;  // the row is innermost: extents of 1 do not matter
  bool inside = false;
  for (int axis = 0; axis < d.space.rank(); ++axis) {
    const bool is_row = (d.reduced >> axis & 1) != 0;
    (is_row ? d.columns : d.rows) *= d.space[axis];
    if (is_row) inside = true;
    if (inside && !is_row && d.space[axis] != 1) trailing = false;
  }
  const bool too_long = d.columns > kLongestRow || (d.rows < kEnoughRows && d.columns > kLongestOfFewRows);
  d.closed = !trailing || too_long || d.columns < 2 || d.rows < 1;
}

bool Drafts::reads_from(Id root, Id group) const {
  bool found = false;
  for_each_operand(
      root, [&](const Source& s) { found = found || (has_group(s.root) && group_of(s.root) == group); });
  return found;
}

bool Drafts::depends(Id reader, Id on) {
  const std::vector<Source>& reads = known(reader).reads;
  return std::any_of(reads.begin(), reads.end(),
                     [&](const Source& s) { return has_group(s.root) && group_of(s.root) == on; });
}

bool Drafts::needs_memory(Id root, Id a, Id b) const {
  if (placement_.is_output(root)) return true;
  const auto all = readers(root);
  return std::any_of(all.begin(), all.end(), [&](Id reader) {
    return !has_group(reader) || (group_of(reader) != a && group_of(reader) != b);
  });
}

const Draft& Drafts::known(Id i) {
  Draft& d = drafts_[i];
  if (d.is_known) return d;
  d.is_known = true;
  for (Id member : d.members) {
    for_each_operand(member, [&](const Source& s) {
      if (placement_.is_free(s.root) || placement_.is_generated(s.root)) return;
      if (has_group(s.root) && group_of(s.root) == i) return;
      const bool is_new = std::none_of(d.reads.begin(), d.reads.end(), [&](const Source& other) {
        return other.root == s.root && *other.view == *s.view;
      });
      if (is_new) d.reads.push_back(s);
    });
  }
  d.outputs = outputs_of(i);
  return d;
}

std::vector<Drafts::Id> Drafts::outputs_of(Id i) const {
  const Draft& d = drafts_[i];
  std::vector<Id> out;
  if (d.other != kNoRoot && needs_memory(d.other, i, i)) out.push_back(d.other);
  for (Id member : d.members) {
    if (needs_memory(member, i, i)) out.push_back(member);
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// Producers first; among those that are ready, the one that the program names first.
std::vector<Drafts::Id> Drafts::sorted(const std::vector<Id>& alive) const {
  std::vector<std::uint32_t> waiting(drafts_.size(), 0);
  // What follows each draft, in one array: counted, then filled.
  std::vector<std::pair<Id, Id>> edges;  // (producer, reader)
  std::vector<std::uint32_t> first(drafts_.size() + 1, 0);
  std::vector<Id> seen(drafts_.size(), kNoRoot);  // the last draft that was found to read each
  for (Id i : alive) {
    for_each_before_draft(i, [&](Id read) {
      if (!has_group(read)) return;
      const Id p = group_of(read);
      if (p == i || seen[p] == i) return;
      seen[p] = i;
      edges.emplace_back(p, i);
      ++waiting[i];
      ++first[p + std::size_t{1}];
    });
  }
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<Id> next(edges.size());
  std::vector<std::uint32_t> at(first.begin(), first.end() - 1);
  for (const auto& [producer, reader] : edges) next[at[producer]++] = reader;
  std::priority_queue<std::pair<Id, Id>, std::vector<std::pair<Id, Id>>, std::greater<>> ready;
  const auto last_root = [&](Id i) {
    return drafts_[i].members.empty() ? drafts_[i].other : drafts_[i].members.back();
  };
  for (Id i : alive) {
    if (waiting[i] == 0) ready.emplace(last_root(i), i);
  }
  std::vector<Id> out;
  while (!ready.empty()) {
    const Id i = ready.top().second;
    ready.pop();
    out.push_back(i);
    for (std::uint32_t k = first[i]; k < first[i + std::size_t{1}]; ++k) {
      const Id n = next[k];
      if (--waiting[n] == 0) ready.emplace(last_root(n), n);
    }
  }
  return out;
}

std::vector<Group> Drafts::finish() {
  std::vector<Id> alive;
  for (Id i = 0; i < drafts_.size(); ++i) {
    if (is_joined(i)) continue;
    drafts_[i].outputs = outputs_of(i);
    alive.push_back(i);
  }
  std::vector<Group> out;
  out.reserve(alive.size());
  for (Id i : sorted(alive)) out.push_back(std::move(drafts_[i]));
  return out;
}

}  // namespace caldera
