#include "engine/compile/fuse/grouping.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "engine/compile/fuse/bit_set.h"

namespace caldera {
namespace {

using Id = std::uint32_t;

/// Groups that are considered together: reachability among them is kept as bit sets.
constexpr std::size_t kWindow = 2048;

/// Rows that one workgroup or core can walk several times: beyond, or where there are too few of them to keep
/// a device busy, a reduction stays alone and is computed in parts.
constexpr std::int64_t kLongestRow = std::int64_t{1} << 18;
constexpr std::int64_t kLongRow = std::int64_t{1} << 16;
constexpr std::int64_t kEnoughRows = 16;

/// A group under construction.
struct Draft : Group {
  bool open = false;    // may take part in joining at all
  bool closed = false;  // a reduction that nothing may follow
  Id parent = kNoRoot;  // the draft that it went into
};

class Grouper {
 public:
  Grouper(const Regions& regions, bool fusion)
      : regions_(regions), count_(static_cast<Id>(regions.program().nodes.size())) {
    draft_of_.assign(count_, kNoRoot);
    build_readers();
    make_drafts(fusion);
    if (fusion) {
      absorb();
      std::size_t begin = 0;
      for (std::size_t end : window_ends()) {
        join_window(begin, end);
        begin = end;
      }
    }
  }

  std::vector<Group> run() {
    std::vector<Id> alive;
    for (Id i = 0; i < drafts_.size(); ++i) {
      if (drafts_[i].parent != kNoRoot) continue;
      drafts_[i].outputs = outputs_of(i);
      alive.push_back(i);
    }
    std::vector<Group> out;
    out.reserve(alive.size());
    for (Id i : sorted(alive)) out.push_back(std::move(drafts_[i]));
    return out;
  }

 private:
  Id find(Id draft) const {
    while (drafts_[draft].parent != kNoRoot) draft = drafts_[draft].parent;
    return draft;
  }
  Id group_of(Id root) const { return find(draft_of_[root]); }
  const Shape& shape(Id i) const { return regions_.node(i).shape; }

  // ---- edges between roots ----

  template <class Visit>
  void for_each_operand(Id root, Visit visit) const {
    for (std::size_t k = 0; k < regions_.operand_count(root); ++k) visit(regions_.operand(root, k));
  }
  bool has_group(Id root) const { return draft_of_[root] != kNoRoot; }
  /// What has to be there before the root is computed: its operands, and what barriers on the way await.
  template <class Visit>
  void for_each_before(Id root, Visit visit) const {
    for (Id input : regions_.program().inputs_of(root)) {
      visit(regions_.source(input).root);
      regions_.for_each_awaited(input, visit);
    }
  }

  void build_readers() {
    first_reader_.assign(count_ + std::size_t{1}, 0);
    const auto each = [&](auto visit) {
      for (Id i = 0; i < count_; ++i) {
        if (!regions_.is_live(i) || regions_.is_free(i)) continue;
        for_each_operand(i, [&](const Source& s) { visit(s.root, i); });
      }
    };
    each([&](Id read, Id) { ++first_reader_[read + std::size_t{1}]; });
    for (std::size_t i = 0; i < count_; ++i) first_reader_[i + 1] += first_reader_[i];
    readers_.resize(first_reader_.back());
    std::vector<std::uint32_t> next(first_reader_.begin(), first_reader_.end() - 1);
    each([&](Id read, Id reader) { readers_[next[read]++] = reader; });
    is_awaited_.assign(count_, false);
    for (Id i = 0; i < count_; ++i) regions_.for_each_awaited(i, [&](Id root) { is_awaited_[root] = true; });
  }
  std::span<const Id> readers(Id root) const {
    return {readers_.data() + first_reader_[root],
            first_reader_[root + std::size_t{1}] - first_reader_[root]};
  }

  // ---- drafts ----

  void make_drafts(bool fusion) {
    for (Id i = 0; i < count_; ++i) {
      const OpClass kind = regions_.node(i).op->kind;
      const bool has_kernel =
          regions_.is_live(i) && kind != OpClass::data && !regions_.is_free(i) && !regions_.is_generated(i);
      if (!has_kernel) continue;
      draft_of_[i] = static_cast<Id>(drafts_.size());
      order_.push_back(draft_of_[i]);
      Draft& d = drafts_.emplace_back();
      d.space = iteration_shape(regions_, i);
      if (!regions_.is_expression(i)) {
        d.other = i;
        d.open = kind == OpClass::contract;
        continue;
      }
      d.members = {i};
      d.open = fusion;
      if (kind == OpClass::reduce) set_row(d, i);
    }
  }

  void set_row(Draft& d, Id reduce) {
    d.reduced = regions_.node(reduce).attributes[0];
    d.rows = d.columns = 1;
    bool trailing = true;  // the row is innermost: extents of 1 do not matter
    bool inside = false;
    for (int axis = 0; axis < d.space.rank(); ++axis) {
      const bool is_row = (d.reduced >> axis & 1) != 0;
      (is_row ? d.columns : d.rows) *= d.space[axis];
      if (is_row) inside = true;
      if (inside && !is_row && d.space[axis] != 1) trailing = false;
    }
    const bool too_long = d.columns > kLongestRow || (d.rows < kEnoughRows && d.columns > kLongRow);
    d.closed = !trailing || too_long || d.columns < 2 || d.rows < 1;
  }

  // ---- what may join ----

  /// Whether the member `reader` of a group like `g` reads the root exactly where the group computes it.
  bool is_aligned(const Group& g, Id reader, const Source& s) const {
    const Shape& produced = shape(s.root);
    const Shape& seen = regions_.node(s.shape_of).shape;
    const bool reduces = regions_.node(reader).op->kind == OpClass::reduce;
    const Shape& at = reduces ? seen : shape(reader);
    const bool root_per_row = is_per_row(g, produced), reader_per_row = is_per_row(g, at);
    if (root_per_row == reader_per_row) {
      return produced.numel() == seen.numel() && is_dense(*s.view, seen);
    }
    if (reader_per_row) return false;
    // One value a row, read at every point of the row.
    std::int64_t inner = 1;
    std::int64_t stride = 1;
    for (int d = seen.rank(); d-- > 0;) {
      if (seen[d] == 1) continue;
      if (inner < g.columns) {
        inner *= seen[d];
        if (inner > g.columns || s.view->strides[d] != 0) return false;
      } else {
        if (s.view->strides[d] != stride) return false;
        stride *= seen[d];
      }
    }
    return s.view->offset == 0 && inner == g.columns && stride == g.rows;
  }

  /// Whether all that the members of `part` read from elsewhere can be read over the space of `whole`.
  bool operands_fit(const Group& whole, const Group& part) const {
    for (Id member : part.members) {
      const Program::Node& n = regions_.node(member);
      const bool per_row = is_per_row(whole, n.shape) && n.op->kind != OpClass::reduce;
      if (n.op->kind == OpClass::random) {
        if (per_row || !view_in_group(whole, n.shape, dense_view(n.shape), n.shape)) return false;
        continue;
      }
      for (std::size_t k = 0; k < regions_.operand_count(member); ++k) {
        const Source s = regions_.operand(member, k);
        if (regions_.node(s.root).op->kind == OpClass::scalar) continue;
        const Shape& seen = regions_.node(s.shape_of).shape;
        const bool generated = regions_.is_free(s.root) || regions_.is_generated(s.root);
        if (per_row && generated && !is_uniform(s.root)) return false;
        const auto view = view_in_group(whole, n.op->kind == OpClass::reduce ? seen : n.shape, *s.view, seen);
        if (!view) return false;
        if (generated && !regions_.can_generate(s.root, *view, whole.space)) return false;
      }
    }
    return true;
  }
  bool is_uniform(Id root) const {
    if (regions_.node(root).op->kind == OpClass::scalar) return true;
    if (!regions_.is_generated(root)) return false;
    bool uniform = true;
    for_each_operand(root, [&](const Source& s) { uniform = uniform && is_uniform(s.root); });
    return uniform;
  }

  /// The space that two groups would share; nothing when there is none.
  std::optional<Draft> common_space(const Draft& a, const Draft& b) const {
    Draft g;
    const bool product = a.other != kNoRoot || b.other != kNoRoot;
    const Draft& model = b.reduced != 0 ? b : a;
    const Draft& guest = b.reduced != 0 ? a : b;
    if (product && (a.reduced != 0 || b.reduced != 0)) return {};
    if (model.reduced != 0 && guest.reduced != 0) {
      if (model.rows != guest.rows || model.columns != guest.columns) return {};
    } else if (guest.space.numel() != model.space.numel() &&
               (model.reduced == 0 || guest.space.numel() != model.rows)) {
      return {};
    }
    g.space = product ? (a.other != kNoRoot ? b : a).space : model.space;
    g.reduced = model.reduced;
    g.rows = model.rows;
    g.columns = model.columns;
    g.other = a.other != kNoRoot ? a.other : b.other;
    if (product && !fits_product(g)) return {};
    return g;
  }
  /// Whether a contraction can run over the space of its epilogue: rows may be split, columns may not.
  bool fits_product(const Draft& g) const {
    const Shape& own = shape(g.other);
    if (g.space.rank() < 2 || g.space.rank() >= kMaxRank || own.numel() == 0) return false;
    if (g.space.back() != own.back()) return false;
    return own.rank() == 2 || g.space == own;
  }

  /// Joins group b into group a if that is legal. `has_detour(a, b)`: some path leads from one to the other
  /// outside of both.
  bool try_join(Id a, Id b, const std::function<bool(Id, Id)>& has_detour) {
    Draft& into = drafts_[a];
    Draft& from = drafts_[b];
    if (!into.open || !from.open || into.closed || from.closed) return false;
    if (into.other != kNoRoot && from.other != kNoRoot) return false;
    if (into.members.size() + from.members.size() > kMaxGroupNodes) return false;
    std::optional<Draft> g = common_space(into, from);
    if (!g || !edges_fit(*g, into, from) || !edges_fit(*g, from, into)) return false;
    if (!operands_fit(*g, into) || !operands_fit(*g, from)) return false;
    if (has_detour(a, b)) return false;
    g->members.resize(into.members.size() + from.members.size());
    std::merge(into.members.begin(), into.members.end(), from.members.begin(), from.members.end(),
               g->members.begin());
    if (distinct_reads(*g, a, b) > kMaxGroupInputs || count_outputs(*g, a, b) > kMaxGroupOutputs)
      return false;
    g->open = true;
    from.parent = a;
    from.members.clear();
    into = std::move(*g);
    return true;
  }

  /// Every value that goes from one group to the other is read where it is computed.
  bool edges_fit(const Group& g, const Draft& from, const Draft& to) const {
    const Id producer = from.members.empty() ? group_of(from.other) : group_of(from.members[0]);
    for (Id reader : to.members) {
      for (std::size_t k = 0; k < regions_.operand_count(reader); ++k) {
        const Source s = regions_.operand(reader, k);
        if (has_group(s.root) && group_of(s.root) == producer && !is_aligned(g, reader, s)) return false;
      }
    }
    // A contraction's operands must be in memory before it runs.
    return to.other == kNoRoot || !reads_from(to.other, producer);
  }
  bool reads_from(Id root, Id group) const {
    bool found = false;
    for_each_operand(
        root, [&](const Source& s) { found = found || (has_group(s.root) && group_of(s.root) == group); });
    return found;
  }

  std::size_t distinct_reads(const Group& g, Id a, Id b) const {
    std::vector<Source> reads;
    for (Id member : g.members) {
      for_each_operand(member, [&](const Source& s) {
        if (regions_.is_free(s.root) || regions_.is_generated(s.root)) return;
        if (has_group(s.root) && (group_of(s.root) == a || group_of(s.root) == b)) return;
        const bool known = std::any_of(reads.begin(), reads.end(), [&](const Source& other) {
          return other.root == s.root && *other.view == *s.view;
        });
        if (!known) reads.push_back(s);
      });
    }
    return reads.size();
  }

  bool needs_memory(Id root, Id a, Id b) const {
    if (regions_.is_output(root)) return true;
    const auto all = readers(root);
    return std::any_of(all.begin(), all.end(), [&](Id reader) {
      return !has_group(reader) || (group_of(reader) != a && group_of(reader) != b);
    });
  }
  std::size_t count_outputs(const Group& g, Id a, Id b) const {
    std::size_t count = g.other != kNoRoot && needs_memory(g.other, a, b) ? 1 : 0;
    for (Id member : g.members) count += needs_memory(member, a, b) ? 1 : 0;
    return count;
  }
  std::vector<Id> outputs_of(Id i) const {
    const Draft& d = drafts_[i];
    std::vector<Id> out;
    if (d.other != kNoRoot && needs_memory(d.other, i, i)) out.push_back(d.other);
    for (Id member : d.members) {
      if (needs_memory(member, i, i)) out.push_back(member);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  // ---- the rounds ----

  /// Round 1: readers first, so that what feeds an absorbed root follows it.
  void absorb() {
    const auto no_detour = [](Id, Id) { return false; };
    for (Id i = count_; i-- > 0;) {
      const bool absorbable = has_group(i) && regions_.is_expression(i) &&
                              regions_.node(i).op->kind != OpClass::reduce && !regions_.is_output(i);
      if (!absorbable || is_awaited_[i] || readers(i).empty() || !has_group(readers(i)[0])) continue;
      const Id reader = group_of(readers(i)[0]);
      const auto all = readers(i);
      const bool only_one =
          std::all_of(all.begin(), all.end(), [&](Id r) { return has_group(r) && group_of(r) == reader; });
      if (!only_one || drafts_[reader].other != kNoRoot || follows_other_rows(i, drafts_[reader])) continue;
      if (follows_own_product(i) && reads_product(drafts_[reader])) continue;
      // A closed reduction may still be given its operands.
      const bool closed = drafts_[reader].closed;
      if (closed && !drafts_[reader].members.empty() && shape(i).numel() != drafts_[reader].space.numel()) {
        continue;
      }
      drafts_[reader].closed = false;
      try_join(reader, group_of(i), no_detour);
      drafts_[reader].closed = closed;
    }
  }

  // A sum of many products, such as the gradient of a weight that several layers share, is not computed at
  // once when all of them are there: each addition is the epilogue of its own product, and only the sum so
  // far waits in memory.
  bool is_product(Id root) const { return has_group(root) && drafts_[draft_of_[root]].other == root; }
  /// Whether i may be the epilogue of a contraction that nothing else reads.
  bool follows_own_product(Id i) const {
    bool found = false;
    for_each_operand(i, [&](const Source& s) {
      if (!is_product(s.root) || regions_.node(s.root).op->kind != OpClass::contract) return;
      const auto all = readers(s.root);
      if (!std::all_of(all.begin(), all.end(), [&](Id reader) { return reader == i; })) return;
      const Draft& product = drafts_[group_of(s.root)];
      const std::optional<Draft> g = common_space(product, drafts_[group_of(i)]);
      found = found || (g && edges_fit(*g, product, drafts_[group_of(i)]));
    });
    return found;
  }
  bool reads_product(const Draft& reader) const {
    bool found = false;
    for (Id member : reader.members) {
      for_each_operand(member, [&](const Source& s) {
        found = found || (is_product(s.root) && regions_.node(s.root).op->kind == OpClass::contract);
      });
    }
    return found;
  }

  /// Whether an operand of i is a reduction over other rows than the group's: then i belongs with it.
  bool follows_other_rows(Id i, const Draft& reader) const {
    if (reader.reduced == 0) return false;
    bool found = false;
    for_each_operand(i, [&](const Source& s) {
      if (!has_group(s.root) || regions_.node(s.root).op->kind != OpClass::reduce) return;
      const Draft& d = drafts_[group_of(s.root)];
      found = found || (!d.closed && (d.rows != reader.rows || d.columns != reader.columns));
    });
    return found;
  }

  /// Where windows end: late, at places that few values cross.
  std::vector<std::size_t> window_ends() const {
    const std::size_t count = order_.size();
    std::vector<std::size_t> ends;
    if (count > kWindow) {
      std::vector<std::int32_t> change(count + 1, 0);  // of the number of values that cross a place
      for (Id i = 0; i < count_; ++i) {
        if (!has_group(i)) continue;
        Id last = group_of(i);
        for (Id reader : readers(i)) {
          if (has_group(reader)) last = std::max(last, group_of(reader));
        }
        if (last <= group_of(i)) continue;
        ++change[group_of(i) + std::size_t{1}];
        --change[last + std::size_t{1}];
      }
      for (std::size_t i = 1; i <= count; ++i) change[i] += change[i - 1];
      for (std::size_t begin = 0; begin + kWindow < count; begin = ends.back()) {
        std::size_t best = begin + kWindow;
        for (std::size_t at = best; at > begin + kWindow * 3 / 4; --at) {
          if (change[at] < change[best]) best = at;
        }
        ends.push_back(best);
      }
    }
    ends.push_back(count);
    return ends;
  }

  /// Rounds 2 and 3 for a stretch of the program.
  void join_window(std::size_t begin, std::size_t end) {
    const std::size_t size = end - begin;
    // covers[i]: the drafts of this window that draft order_[begin + i] is made of or depends on.
    std::vector<BitSet> covers(size, BitSet(size));
    const auto position = [&](Id draft) { return draft - begin; };  // drafts are numbered in program order
    const auto in_window = [&](Id draft) { return draft >= begin && draft < end; };
    const auto collect = [&](Id draft, BitSet& to) {
      const auto visit = [&](Id root) {
        for_each_before(root, [&](Id read) {
          if (!has_group(read)) return;
          const Id g = group_of(read);
          if (in_window(g) && g != draft) to.add(covers[position(g)]);
        });
      };
      if (drafts_[draft].other != kNoRoot) visit(drafts_[draft].other);
      for (Id member : drafts_[draft].members) visit(member);
    };
    // A third group on a path from one to the other: something that b reads, outside of a, depends on a.
    const auto has_detour = [&](Id a, Id b) {
      const auto leads = [&](Id from, Id to) {
        bool found = false;
        const auto visit = [&](Id root) {
          for_each_before(root, [&](Id read) {
            if (found || !has_group(read)) return;
            const Id g = group_of(read);
            found = g != from && g != to && in_window(g) && covers[position(g)].test(position(from));
          });
        };
        if (drafts_[to].other != kNoRoot) visit(drafts_[to].other);
        for (Id member : drafts_[to].members) visit(member);
        return found;
      };
      return leads(a, b) || leads(b, a);
    };
    std::vector<Id> processed;
    // After a join everything that depends on one half depends on both.
    const auto update = [&](Id a, Id b) {
      BitSet both = covers[position(a)];
      both.add(covers[position(b)]);
      for (Id d : processed) {
        BitSet& cover = covers[position(d)];
        if (cover.test(position(a)) || cover.test(position(b))) cover.add(both);
      }
      covers[position(a)] = both;
      covers[position(b)] = both;
    };
    for (std::size_t i = begin; i < end; ++i) {
      const Id draft = order_[i];
      if (drafts_[draft].parent != kNoRoot) continue;
      collect(draft, covers[position(draft)]);
      covers[position(draft)].set(position(draft));
      processed.push_back(draft);
      join_producers(draft, in_window, has_detour, update, false);
    }
    // Reductions to a few values come last: what they read rather belongs to larger groups.
    for (std::size_t i = begin; i < end; ++i) {
      const Draft& d = drafts_[order_[i]];
      if (d.parent == kNoRoot && d.reduced != 0 && d.rows < kEnoughRows) {
        join_producers(order_[i], in_window, has_detour, update, true);
      }
    }
    join_siblings(begin, end, in_window, has_detour, update);
  }

  template <class InWindow, class Detour, class Update>
  void join_producers(Id draft, InWindow in_window, Detour has_detour, Update update, bool late) {
    Id current = draft;
    const bool waits = !late && drafts_[draft].reduced != 0 && drafts_[draft].rows < kEnoughRows;
    std::vector<Id> producers;
    const auto add = [&](const Source& s) {
      if (!has_group(s.root)) return;
      const Id g = group_of(s.root);
      if (g != current && in_window(g)) producers.push_back(g);
    };
    for (Id member : drafts_[current].members) for_each_operand(member, add);
    std::sort(producers.begin(), producers.end(), std::greater<>());
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
    // Expressions first; then at most one contraction takes the whole as its epilogue.
    for (bool products : {false, true}) {
      for (Id p : producers) {
        const Id producer = find(p);
        if (producer == current || (drafts_[producer].other != kNoRoot) != products) continue;
        if (waits && drafts_[producer].reduced == 0) continue;
        if (try_join(producer, current, has_detour)) {
          update(producer, current);
          current = producer;
        }
      }
    }
  }

  template <class InWindow, class Detour, class Update>
  void join_siblings(std::size_t begin, std::size_t end, InWindow in_window, Detour has_detour,
                     Update update) {
    constexpr std::size_t kMostReaders = 16;
    const auto siblings = [&](Id root) {
      std::vector<Id> groups;
      for (Id reader : readers(root)) {
        if (!has_group(reader) || !regions_.is_expression(reader)) continue;
        const Id g = group_of(reader);
        if (in_window(g) && drafts_[g].other == kNoRoot) groups.push_back(g);
      }
      std::sort(groups.begin(), groups.end());
      groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
      if (groups.size() < 2 || groups.size() > kMostReaders) return;
      for (std::size_t a = 0; a < groups.size(); ++a) {
        for (std::size_t b = a + 1; b < groups.size(); ++b) {
          const Id first = find(groups[a]), second = find(groups[b]);
          if (first == second || drafts_[first].space.numel() != drafts_[second].space.numel()) continue;
          if (depends(first, second) || depends(second, first)) continue;
          if (try_join(first, second, has_detour)) update(first, second);
        }
      }
    };
    // Every tensor that the window's groups read, once.
    std::vector<Id> read;
    for (std::size_t i = begin; i < end; ++i) {
      if (drafts_[order_[i]].parent != kNoRoot) continue;
      for (Id member : drafts_[order_[i]].members) {
        for_each_operand(member, [&](const Source& s) {
          if (!regions_.is_free(s.root) && !regions_.is_generated(s.root)) read.push_back(s.root);
        });
      }
    }
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (Id root : read) siblings(root);
  }
  bool depends(Id reader, Id on) const {
    const Draft& d = drafts_[reader];
    return std::any_of(d.members.begin(), d.members.end(), [&](Id member) { return reads_from(member, on); });
  }

  // ---- order ----

  /// Producers first; among those that are ready, the one that the program names first.
  std::vector<Id> sorted(const std::vector<Id>& alive) const {
    std::vector<std::uint32_t> waiting(drafts_.size(), 0);
    std::vector<std::vector<Id>> next(drafts_.size());
    for (Id i : alive) {
      std::vector<Id> producers;
      const auto add = [&](Id read) {
        if (has_group(read) && group_of(read) != i) producers.push_back(group_of(read));
      };
      if (drafts_[i].other != kNoRoot) for_each_before(drafts_[i].other, add);
      for (Id member : drafts_[i].members) for_each_before(member, add);
      std::sort(producers.begin(), producers.end());
      producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
      waiting[i] = static_cast<std::uint32_t>(producers.size());
      for (Id p : producers) next[p].push_back(i);
    }
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
      for (Id n : next[i]) {
        if (--waiting[n] == 0) ready.emplace(last_root(n), n);
      }
    }
    return out;
  }

  const Regions& regions_;
  Id count_;
  std::vector<Id> draft_of_;
  std::vector<Draft> drafts_;  // in the order of their roots
  std::vector<Id> order_;
  std::vector<std::uint32_t> first_reader_;
  std::vector<Id> readers_;  // of each root, by ranges
  /// Behind a barrier: what reads it may not take it in before the others are there.
  std::vector<bool> is_awaited_;
};

}  // namespace

std::vector<Group> group(const Regions& regions, bool fusion) { return Grouper(regions, fusion).run(); }

}  // namespace caldera
