// Window: a part of the program whose groups are considered together, and which of them depend on which.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/compile/fuse/bit_set.h"
#include "engine/compile/fuse/drafts.h"

namespace caldera {

/// The drafts with numbers from `begin` to `end`. Reachability among them is kept as bit sets.
class Window {
 public:
  using Id = Drafts::Id;
  Window(const Drafts& drafts, std::size_t begin, std::size_t end)
      : drafts_(drafts), begin_(begin), end_(end), covers_(end - begin, BitSet(end - begin)) {}

  Id begin() const { return static_cast<Id>(begin_); }
  Id end() const { return static_cast<Id>(end_); }
  bool contains(Id draft) const { return draft >= begin_ && draft < end_; }

  /// Takes the next draft in: what it depends on has been.
  void enter(Id draft);
  /// Whether a third group is on a path from one to the other: something that b reads, outside of a, depends
  /// on a; or the other way about.
  bool has_detour(Id a, Id b) const { return leads(a, b) || leads(b, a); }
  /// After two have joined: everything that depends on one half depends on both.
  void note_join(Id a, Id b);

 private:
  std::size_t position(Id draft) const { return draft - begin_; }
  bool leads(Id from, Id to) const;

  const Drafts& drafts_;
  std::size_t begin_, end_;
  std::vector<BitSet> covers_;  // of each draft: those that it is made of or depends on
  std::vector<Id> entered_;
};

/// Where windows end: late, at places that few values cross.
std::vector<std::size_t> window_ends(const Drafts& drafts);

}  // namespace caldera
