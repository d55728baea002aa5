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

/// The three rounds.
class Grouper {
 public:
  explicit Grouper(Drafts& drafts) : drafts_(drafts), joining_(drafts), placement_(drafts.placement()) {}

  void run() {
    absorb();
    std::size_t begin = 0;
    for (std::size_t end : window_ends(drafts_)) {
      join_window(Window(drafts_, begin, end));
      begin = end;
    }
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
      const std::optional<Draft> g = joining_.common_space(product, drafts_[drafts_.group_of(i)]);
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
  void join_window(Window window) {
    for (Id draft = window.begin(); draft < window.end(); ++draft) {
      if (drafts_[draft].parent != kNoRoot) continue;
      window.enter(draft);
      join_producers(window, draft, false);
    }
    // Reductions to a few values come last: what they read rather belongs to larger groups.
    for (Id draft = window.begin(); draft < window.end(); ++draft) {
      const Draft& d = drafts_[draft];
      if (d.parent == kNoRoot && d.reduced != 0 && d.rows < kEnoughRows) join_producers(window, draft, true);
    }
    join_siblings(window);
  }
  bool join(Window& window, Id a, Id b) {
    const bool joined = joining_.try_join(a, b, [&](Id x, Id y) { return window.has_detour(x, y); });
    if (joined) window.note_join(a, b);
    return joined;
  }

  void join_producers(Window& window, Id draft, bool late) {
    Id current = draft;
    const bool waits = !late && drafts_[draft].reduced != 0 && drafts_[draft].rows < kEnoughRows;
    std::vector<Id> producers;
    const auto add = [&](const Source& s) {
      if (!drafts_.has_group(s.root)) return;
      const Id g = drafts_.group_of(s.root);
      if (g != current && window.contains(g)) producers.push_back(g);
    };
    for (Id member : drafts_[current].members) drafts_.for_each_operand(member, add);
    std::sort(producers.begin(), producers.end(), std::greater<>());
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
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
  /// The groups of the window that read a tensor, or moved parts of it.
  void add_readers(const Window& window, Id root, std::vector<Id>& groups) const {
    for (Id reader : drafts_.readers(root)) {
      if (!drafts_.has_group(reader)) continue;
      if (is_moved_part(reader)) add_readers(window, reader, groups);
      const Id g = drafts_.group_of(reader);
      if (placement_.is_expression(reader) && window.contains(g) && drafts_[g].other == kNoRoot)
        groups.push_back(g);
    }
  }

  void join_siblings(Window& window) {
    const auto siblings = [&](Id root) {
      std::vector<Id> groups;
      add_readers(window, root, groups);
      std::sort(groups.begin(), groups.end());
      groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
      if (groups.size() < 2 || groups.size() > kMaxSiblings) return;
      for (std::size_t a = 0; a < groups.size(); ++a) {
        for (std::size_t b = a + 1; b < groups.size(); ++b) {
          const Id first = drafts_.find(groups[a]), second = drafts_.find(groups[b]);
          if (first == second || drafts_[first].space.numel() != drafts_[second].space.numel()) continue;
          if (drafts_.depends(first, second) || drafts_.depends(second, first)) continue;
          join(window, first, second);
        }
      }
    };
    // Every tensor that the window's groups read, once.
    std::vector<Id> read;
    for (Id i = window.begin(); i < window.end(); ++i) {
      if (drafts_[i].parent != kNoRoot) continue;
      for (Id member : drafts_[i].members) {
        drafts_.for_each_operand(member, [&](const Source& s) {
          if (!placement_.is_free(s.root) && !placement_.is_generated(s.root))
            read.push_back(whole_of(s.root));
        });
      }
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (Id root : read) siblings(root);
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
