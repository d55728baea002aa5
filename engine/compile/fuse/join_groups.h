// Joining: which two groups may become one, and what they become.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/compile/fuse/drafts.h"

namespace caldera {

class Joining {
 public:
  using Id = Drafts::Id;
  explicit Joining(Drafts& drafts) : drafts_(drafts), placement_(drafts.placement()) {}

  /// Joins group b into group a if that is legal. `has_detour(a, b)`: some path leads from one to the other
  /// outside of both.
  bool try_join(Id a, Id b, const std::function<bool(Id, Id)>& has_detour);

  /// The space that two groups would share; nothing when there is none.
  std::optional<Group> common_space(const Draft& a, const Draft& b) const;
  /// Every value that goes from one group to the other is read where it is computed.
  bool edges_fit(const Group& g, const Draft& from, const Draft& to) const;

 private:
  /// Whether the member `reader` of a group like `g` reads the root exactly where the group computes it.
  bool is_aligned(const Group& g, Id reader, const Source& s) const;
  /// Whether all that `reader` reads of what `producer` computes is read there.
  bool is_aligned_with(const Group& g, Id reader, Id producer) const;
  /// Whether all that the members of `part` read from elsewhere can be read over the space of `whole`.
  bool operands_fit(const Group& whole, const Group& part) const;
  bool is_uniform(Id root) const;
  /// Whether a contraction can run over the space of its epilogue: rows may be split, columns may not.
  bool fits_product(const Group& g) const;
  /// Fills `reads_` with what the two read from elsewhere, each view of a root once, and `outputs_` with
  /// those of their roots that need memory.
  void find_joint(Id a, Id b);

  Drafts& drafts_;
  const Placement& placement_;
  std::vector<Source> reads_;
  std::vector<Id> outputs_;
};

}  // namespace caldera
