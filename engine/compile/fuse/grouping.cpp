#include "engine/compile/fuse/grouping.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "engine/compile/fuse/join_groups.h"
#include "engine/compile/fuse/window.h"
#include "engine/compile/program/limits.h"

namespace caldera {
namespace {

using Id = Drafts::Id;

/// The rounds.
class Grouper {
 public:
  explicit Grouper(Drafts& drafts) : drafts_(drafts), joining_(drafts), placement_(drafts.placement()) {}

  void run() {
    absorb();
    std::size_t begin = 0;
    Window window(drafts_);
    const std::vector<std::size_t> ends = window_ends(drafts_);
    for (std::size_t end : ends) {
      window.move_to(begin, end);
      join_window(window);
      begin = end;
    }
    if (ends.size() > 1) join_far_rows(ends);
  }

 private:
  /// Round 1: readers first, so that what feeds an absorbed root follows it.
  void absorb() {
    const auto no_detour = [](Id, Id) { return false; };
    for (Id i = drafts_.root_count(); i-- > 0;) {
      const bool absorbable = drafts_.has_group(i) && placement_.is_expression(i) &&
                              placement_.node(i).op->kind != OpClass::reduce && !placement_.is_output(i);
      if (!absorbable || drafts_.is_awaited(i) || drafts_.readers(i).empty() ||
          !drafts_.has_group(drafts_.readers(i)[0]))
        continue;
      const Id reader = drafts_.group_of(drafts_.readers(i)[0]);
      const auto all = drafts_.readers(i);
      const bool only_one = std::all_of(all.begin(), all.end(), [&](Id r) {
        return drafts_.has_group(r) && drafts_.group_of(r) == reader;
      });
      if (!only_one || drafts_[reader].other != kNoRoot || follows_other_rows(i, drafts_[reader])) continue;
      if (follows_own_product(i) && reads_product(drafts_[reader])) continue;
      // A closed reduction may still be given its operands.
      const bool closed = drafts_[reader].closed;
      if (closed && !drafts_[reader].members.empty() &&
          drafts_.shape(i).numel() != drafts_[reader].space.numel()) {
        continue;
      }
      drafts_[reader].closed = false;
      joining_.try_join(reader, drafts_.group_of(i), no_detour);
      drafts_[reader].closed = closed;
    }
  }

  // A sum of many products, such as the gradient of a weight that several layers share, is not computed at
  // once when all of them are there: each addition is the epilogue of its own product, and only the sum so
  // far waits in memory.
  /// Whether i may be the epilogue of a contraction that nothing else reads.
  bool follows_own_product(Id i) const {
    bool found = false;
    drafts_.for_each_operand(i, [&](const Source& s) {
      if (!drafts_.is_product(s.root) || placement_.node(s.root).op->kind != OpClass::contract) return;
      const auto all = drafts_.readers(s.root);
      if (!std::all_of(all.begin(), all.end(), [&](Id reader) { return reader == i; })) return;
      const Draft& product = drafts_[drafts_.group_of(s.root)];
      const std::optional<Group> g = joining_.common_space(product, drafts_[drafts_.group_of(i)]);
      found = found || (g && joining_.edges_fit(*g, product, drafts_[drafts_.group_of(i)]));
    });
    return found;
  }
  bool reads_product(const Draft& reader) const {
    bool found = false;
    for (Id member : reader.members) {
      drafts_.for_each_operand(member, [&](const Source& s) {
        found =
            found || (drafts_.is_product(s.root) && placement_.node(s.root).op->kind == OpClass::contract);
      });
    }
    return found;
  }

  /// Whether an operand of i is a reduction over other rows than the group's: then i belongs with it.
  bool follows_other_rows(Id i, const Draft& reader) const {
    if (reader.reduced == 0) return false;
    bool found = false;
    drafts_.for_each_operand(i, [&](const Source& s) {
      if (!drafts_.has_group(s.root) || placement_.node(s.root).op->kind != OpClass::reduce) return;
      const Draft& d = drafts_[drafts_.group_of(s.root)];
      found = found || (!d.closed && (d.rows != reader.rows || d.columns != reader.columns));
    });
    return found;
  }

  /// Rounds 2 and 3.
  void join_window(Window& window) {
    for (Id draft = window.begin(); draft < window.end(); ++draft) {
      if (drafts_.is_joined(draft)) continue;
      window.enter(draft);
      join_producers(window, draft, false);
    }
    // Reductions to a few values come last: what they read rather belongs to larger groups.
    for (Id draft = window.begin(); draft < window.end(); ++draft) {
      const Draft& d = drafts_[draft];
      if (!drafts_.is_joined(draft) && d.reduced != 0 && d.rows < kEnoughRows)
        join_producers(window, draft, true);
    }
    join_siblings(window);
  }
  bool join(Window& window, Id a, Id b) {
    const bool joined = joining_.try_join(a, b, [&](Id x, Id y) { return window.has_detour(x, y); });
    if (joined) window.note_join(a, b);
    return joined;
  }

  /// The groups that a group reads and that are meant, the last first.
  template <class Meant>
  std::vector<Id> producers_of(Id draft, Meant is_meant) {
    std::vector<Id> producers;
    for (const Source& s : drafts_.known(draft).reads) {
      if (!drafts_.has_group(s.root)) continue;
      const Id g = drafts_.group_of(s.root);
      if (g != draft && is_meant(g)) producers.push_back(g);
    }
    std::sort(producers.begin(), producers.end(), std::greater<>());
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
    return producers;
  }

  void join_producers(Window& window, Id draft, bool late) {
    Id current = draft;
    const bool waits = !late && drafts_[draft].reduced != 0 && drafts_[draft].rows < kEnoughRows;
    const std::vector<Id> producers = producers_of(current, [&](Id g) { return window.contains(g); });
    // Expressions first; then at most one contraction takes the whole as its epilogue.
    for (bool products : {false, true}) {
      for (Id p : producers) {
        const Id producer = drafts_.find(p);
        if (producer == current || (drafts_[producer].other != kNoRoot) != products) continue;
        if (waits && drafts_[producer].reduced == 0) continue;
        if (join(window, producer, current)) {
          current = producer;
        }
      }
    }
  }

  bool is_moved_part(Id root) const { return placement_.node(root).op->kind == OpClass::dynamic_slice; }
  /// The tensor that a part which numbers move is read from.
  Id whole_of(Id root) const {
    while (is_moved_part(root)) root = placement_.operand(root, 0).root;
    return root;
  }
  void join_siblings(Window& window) {
    // What each tensor that the window's groups read is read by, in order of the tensors.
    std::vector<std::pair<Id, Id>> read;
    for (Id i = window.begin(); i < window.end(); ++i) {
      if (drafts_.is_joined(i) || drafts_[i].other != kNoRoot) continue;
      for (const Source& s : drafts_.known(i).reads) read.emplace_back(whole_of(s.root), i);
    }
    std::sort(read.begin(), read.end());
    std::vector<Id> groups;
    for (auto next = read.begin(); next != read.end();) {
      groups.clear();
      const Id root = next->first;
      for (; next != read.end() && next->first == root; ++next) groups.push_back(drafts_.find(next->second));
      std::sort(groups.begin(), groups.end());
      groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
      join_all(window, groups);
    }
  }
  void join_all(Window& window, const std::vector<Id>& groups) {
    if (groups.size() < 2 || groups.size() > kMaxSiblings) return;
    for (std::size_t a = 0; a < groups.size(); ++a) {
      for (std::size_t b = a + 1; b < groups.size(); ++b) {
        const Id first = drafts_.find(groups[a]), second = drafts_.find(groups[b]);
        if (first == second || drafts_[first].space.numel() != drafts_[second].space.numel()) continue;
        if (drafts_.depends(first, second) || drafts_.depends(second, first)) continue;
        join(window, first, second);
      }
    }
  }

  /// Round 4: rows join those that they read in an earlier window. Of a step of training that is the loss,
  /// which nothing but the report of it needs and which so comes last: what its rows have in common with
  /// their gradient need not be stored then.
  void join_far_rows(const std::vector<std::size_t>& ends) {
    const auto window_of = [&](Id draft) { return std::ranges::upper_bound(ends, draft) - ends.begin(); };
    std::size_t searches = 0;
    for (Id draft = 0; draft < drafts_.size() && searches < kMaxFarSearches; ++draft) {
      if (drafts_.is_joined(draft) || drafts_[draft].reduced == 0) continue;
      const auto is_far = [&](Id g) {
        return drafts_[g].reduced != 0 && drafts_[g].rows >= kEnoughRows && window_of(g) != window_of(draft);
      };
      Id current = draft;
      for (const Id p : producers_of(draft, is_far)) {
        const Id producer = drafts_.find(p);
        const bool joined = joining_.try_join(producer, current, [&](Id a, Id b) {
          ++searches;
          return leads(a, b) || leads(b, a);
        });
        if (joined) current = producer;
      }
    }
  }

  /// Whether something that `to` reads, outside of `from`, depends on `from`; by a search, in any window.
  bool leads(Id from, Id to) {
    std::vector<bool> seen(drafts_.size());
    std::vector<Id> open;
    bool found = false;
    const auto read_by = [&](Id draft) {
      drafts_.for_each_before_draft(draft, [&](Id root) {
        if (!drafts_.has_group(root)) return;
        const Id g = drafts_.group_of(root);
        if (g == draft || seen[g]) return;
        if (g == from) {
          found = found || draft != to;
          return;
        }
        seen[g] = true;
        open.push_back(g);
      });
    };
    for (read_by(to); !found && !open.empty();) {
      const Id next = open.back();
      open.pop_back();
      read_by(next);
    }
    return found;
  }

  Drafts& drafts_;
  Joining joining_;
  const Placement& placement_;
};

}  // namespace

std::vector<Group> group(const Placement& placement, bool fusion) {
  Drafts drafts(placement, fusion);
  if (fusion) Grouper(drafts).run();
  return drafts.finish();
}

}  // namespace caldera
