#include "engine/compile/fuse/join_groups.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/compile/program/limits.h"

namespace caldera {

bool Joining::is_aligned(const Group& g, Id reader, const Source& s) const {
  const Shape& produced = drafts_.shape(s.root);
  const Shape& seen = placement_.node(s.shape_of).shape;
  const bool reduces = placement_.node(reader).op->kind == OpClass::reduce;
  const Shape& at = reduces ? seen : drafts_.shape(reader);
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

bool Joining::operands_fit(const Group& whole, const Group& part) const {
  // They fit the space that they are in already.
  if (part.reduced == whole.reduced && part.rows == whole.rows && part.space == whole.space) return true;
  for (Id member : part.members) {
    const Program::Node& n = placement_.node(member);
    const bool per_row = is_per_row(whole, n.shape) && n.op->kind != OpClass::reduce;
    if (n.op->kind == OpClass::random) {
      if (per_row || !view_in_group(whole, n.shape, dense_view(n.shape), n.shape)) return false;
      continue;
    }
    for (std::size_t k = 0; k < placement_.operand_count(member); ++k) {
      const Source s = placement_.operand(member, k);
      if (placement_.node(s.root).op->kind == OpClass::scalar) continue;
      const Shape& seen = placement_.node(s.shape_of).shape;
      const bool generated = placement_.is_free(s.root) || placement_.is_generated(s.root);
      if (per_row && generated && !is_uniform(s.root)) return false;
      const auto view =
          view_in_group(whole, n.op->kind == OpClass::reduce ? seen : n.shape.get(), *s.view, seen);
      if (!view) return false;
      if (generated && !placement_.can_generate(s.root, *view, whole.space)) return false;
    }
  }
  return true;
}

bool Joining::is_uniform(Id root) const {
  if (placement_.node(root).op->kind == OpClass::scalar) return true;
  if (!placement_.is_generated(root)) return false;
  bool uniform = true;
  drafts_.for_each_operand(root, [&](const Source& s) { uniform = uniform && is_uniform(s.root); });
  return uniform;
}

std::optional<Group> Joining::common_space(const Draft& a, const Draft& b) const {
  Group g;
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

bool Joining::fits_product(const Group& g) const {
  const Shape& own = drafts_.shape(g.other);
  if (g.space.rank() < 2 || g.space.rank() >= kMaxRank || own.numel() == 0) return false;
  if (g.space.back() != own.back()) return false;
  return own.rank() == 2 || g.space == own;
}

bool Joining::try_join(Id a, Id b, const std::function<bool(Id, Id)>& has_detour) {
  Draft& into = drafts_[a];
  Draft& from = drafts_[b];
  if (!into.open || !from.open || into.closed || from.closed) return false;
  if (into.other != kNoRoot && from.other != kNoRoot) return false;
  if (into.members.size() + from.members.size() > kMaxGroupNodes) return false;
  std::optional<Group> g = common_space(into, from);
  if (!g || !edges_fit(*g, into, from) || !edges_fit(*g, from, into)) return false;
  if (!operands_fit(*g, into) || !operands_fit(*g, from)) return false;
  drafts_.known(a);
  drafts_.known(b);
  find_joint(a, b);
  if (reads_.size() > kMaxGroupInputs || outputs_.size() > kMaxGroupOutputs || has_detour(a, b)) return false;
  const auto middle = static_cast<std::ptrdiff_t>(into.members.size());
  into.members.insert(into.members.end(), from.members.begin(), from.members.end());
  std::inplace_merge(into.members.begin(), into.members.begin() + middle, into.members.end());
  into.other = g->other;
  into.space = g->space;
  into.reduced = g->reduced;
  into.rows = g->rows;
  into.columns = g->columns;
  into.reads.assign(reads_.begin(), reads_.end());
  into.outputs.assign(outputs_.begin(), outputs_.end());
  drafts_.note_join(a, b);
  from.members = {};
  from.reads = {};
  from.outputs = {};
  return true;
}

bool Joining::is_aligned_with(const Group& g, Id reader, Id producer) const {
  for (std::size_t k = 0; k < placement_.operand_count(reader); ++k) {
    const Source s = placement_.operand(reader, k);
    if (!drafts_.has_group(s.root) || drafts_.group_of(s.root) != producer) continue;
    // What is read behind a barrier is not computed with its reader, which has others to wait for.
    if (placement_.is_behind_barrier(s.shape_of) || !is_aligned(g, reader, s)) return false;
  }
  return true;
}

bool Joining::edges_fit(const Group& g, const Draft& from, const Draft& to) const {
  const auto id_of = [&](const Draft& d) {
    return drafts_.group_of(d.members.empty() ? d.other : d.members[0]);
  };
  const Id producer = id_of(from);
  // A contraction's operands must be in memory before it runs.
  if (to.other != kNoRoot && drafts_.reads_from(to.other, producer)) return false;
  // Whichever are fewer: what reads the one, or the members of the other.
  if (from.members.size() <= 1 && from.other == kNoRoot) {
    const auto readers = drafts_.readers(from.members[0]);
    if (readers.size() < to.members.size()) {
      const Id consumer = id_of(to);
      return std::all_of(readers.begin(), readers.end(), [&](Id reader) {
        return !drafts_.has_group(reader) || drafts_.group_of(reader) != consumer ||
               is_aligned_with(g, reader, producer);
      });
    }
  }
  return std::all_of(to.members.begin(), to.members.end(),
                     [&](Id reader) { return is_aligned_with(g, reader, producer); });
}

void Joining::find_joint(Id a, Id b) {
  reads_.clear();
  outputs_.clear();
  for (const Id draft : {a, b}) {
    const std::size_t before = draft == a ? 0 : reads_.size();
    for (const Source& s : drafts_[draft].reads) {
      if (drafts_.has_group(s.root)) {
        const Id g = drafts_.group_of(s.root);
        if (g == a || g == b) continue;
      }
      const auto end = reads_.begin() + static_cast<std::ptrdiff_t>(before);
      const bool is_new = std::none_of(reads_.begin(), end, [&](const Source& other) {
        return other.root == s.root && *other.view == *s.view;
      });
      if (is_new) reads_.push_back(s);
    }
    for (Id root : drafts_[draft].outputs) {
      if (drafts_.needs_memory(root, a, b)) outputs_.push_back(root);
    }
  }
}

}  // namespace caldera
