// Drafts: groups under construction, and what the roots that they are made of read from one another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/compile/fuse/group.h"
#include "engine/compile/fuse/placement.h"

namespace caldera {

/// A group under construction.
struct Draft : Group {
  bool open = false;      // may take part in joining at all
  bool closed = false;    // a reduction that nothing may follow
  bool is_known = false;  // `reads` and `outputs` are those of its members
  /// Lists what its members read from elsewhere and is in memory, each view of a root once.
  std::vector<Source> reads;
};

/// All drafts of a program, by number: at first one for each root that has a kernel, in program order.
class Drafts {
 public:
  using Id = std::uint32_t;
  Drafts(const Placement& placement, bool fusion);

  const Placement& placement() const { return placement_; }
  Id root_count() const { return count_; }
  std::size_t size() const { return drafts_.size(); }
  Draft& operator[](Id draft) { return drafts_[draft]; }
  const Draft& operator[](Id draft) const { return drafts_[draft]; }
  const Shape& shape(Id root) const { return placement_.node(root).shape; }

  /// The draft that one has gone into, or itself.
  Id find(Id draft) const {
    while (parent_[draft] != draft) {
      parent_[draft] = parent_[parent_[draft]];
      draft = parent_[draft];
    }
    return draft;
  }
  bool is_joined(Id draft) const { return parent_[draft] != draft; }
  /// Draft `from` has gone into draft `into`.
  void note_join(Id into, Id from) { parent_[from] = into; }
  /// The draft with its `reads` and `outputs`.
  const Draft& known(Id draft);
  bool has_group(Id root) const { return draft_of_[root] != kNoRoot; }
  Id group_of(Id root) const { return find(draft_of_[root]); }
  /// Whether a root is no expression but has a kernel of its own kind.
  bool is_product(Id root) const { return has_group(root) && drafts_[draft_of_[root]].other == root; }

  template <class Visit>
  void for_each_operand(Id root, Visit visit) const {
    for (std::size_t k = 0; k < placement_.operand_count(root); ++k) visit(placement_.operand(root, k));
  }
  /// Visits what has to be there before the root is computed: its operands, and what barriers on the way
  /// await.
  template <class Visit>
  void for_each_before(Id root, Visit visit) const {
    for (Id input : placement_.program().inputs_of(root)) {
      visit(placement_.source(input).root);
      placement_.for_each_awaited(input, visit);
    }
  }
  /// Visits what has to be there before any root of a draft is computed.
  template <class Visit>
  void for_each_before_draft(Id draft, Visit visit) const {
    if (drafts_[draft].other != kNoRoot) for_each_before(drafts_[draft].other, visit);
    for (Id member : drafts_[draft].members) for_each_before(member, visit);
  }
  std::span<const Id> readers(Id root) const {
    return {readers_.data() + first_reader_[root],
            first_reader_[root + std::size_t{1}] - first_reader_[root]};
  }
  bool has_barriers() const { return has_barriers_; }
  /// Behind a barrier: what reads it may not take it in before the others are there.
  bool is_awaited(Id root) const { return is_awaited_[root]; }

  bool reads_from(Id root, Id group) const;
  /// Whether a member of one draft reads from the other.
  bool depends(Id reader, Id on);
  /// Whether the root is an output of the program, or read outside of both groups.
  bool needs_memory(Id root, Id a, Id b) const;

  /// The groups that are left, in an order in which they can run.
  std::vector<Group> finish();

 private:
  void build_readers();
  void make_drafts(bool fusion);
  void set_row(Draft& d, Id reduce);
  std::vector<Id> outputs_of(Id draft) const;
  std::vector<Id> sorted(const std::vector<Id>& alive) const;

  const Placement& placement_;
  Id count_;
  std::vector<Id> draft_of_;
  std::vector<Draft> drafts_;       // in the order of their roots
  mutable std::vector<Id> parent_;  // the draft that each has gone into, or one on the way there
  std::vector<std::uint32_t> first_reader_;
  std::vector<Id> readers_;  // of each root, by ranges
  std::vector<bool> is_awaited_;
  bool has_barriers_ = false;
};

}  // namespace caldera
