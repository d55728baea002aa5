// Window: a part of the program whose groups are considered together, and which of them depend on which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/compile/fuse/drafts.h"

namespace caldera {

/// The drafts with numbers from one to another. Reachability among those that have gone into no other yet is
/// kept as two matrices of bits: a row of `covers_` says what a draft is made of or depends on, a row of
/// `covered_by_` what depends on it. The second follows the first 64 drafts at a time.
class Window {
 public:
  using Id = Drafts::Id;
  explicit Window(Drafts& drafts) : drafts_(drafts) {}

  /// Starts again with the drafts from `begin` to `end`; what was allocated stays.
  void move_to(std::size_t begin, std::size_t end);

  Id begin() const { return static_cast<Id>(begin_); }
  Id end() const { return static_cast<Id>(end_); }
  bool contains(Id draft) const { return draft >= begin_ && draft < end_; }

  /// Takes the next draft in: what it depends on has been.
  void enter(Id draft);
  /// Whether a third group is on a path from one to the other: something that b reads, outside of a, depends
  /// on a; or the other way about.
  bool has_detour(Id a, Id b) { return leads(a, b) || leads(b, a); }
  /// After two have joined: everything that depends on one half depends on both.
  void note_join(Id a, Id b);

 private:
  using Word = std::uint64_t;

  std::size_t position(Id draft) const { return position_[draft - begin_]; }
  Word* row(std::vector<Word>& matrix, std::size_t at) { return matrix.data() + at * words_; }
  bool covers(std::size_t at, std::size_t what) const {
    return (covers_[at * words_ + what / 64] >> (what % 64) & 1) != 0;
  }
  /// Calls visit(group) for each group of the window but the draft's own that it reads.
  template <class Visit>
  void for_each_group_before(Id draft, Visit visit);
  bool leads(Id from, Id to);
  /// Brings `covered_by_` up to the positions before `end`, a multiple of 64.
  void follow(std::size_t end);

  Drafts& drafts_;
  std::size_t begin_ = 0, end_ = 0;
  std::vector<std::uint32_t> position_;  // in the matrices, of each draft that has one
  std::size_t rows_ = 0;
  std::size_t words_ = 0;  // in a row
  std::vector<Word> covers_, covered_by_, dependent_;
  std::vector<std::pair<std::size_t, Word>>
      changed_;               // words of a row that a join changes, with what they become
  std::size_t followed_ = 0;  // positions that covered_by_ knows
  std::size_t entered_ = 0;   // positions up to the last that was taken in
};

/// Finds where windows end: late, at places that few values cross.
std::vector<std::size_t> window_ends(const Drafts& drafts);

}  // namespace caldera
