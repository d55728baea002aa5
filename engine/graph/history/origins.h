// Origins: from which nodes a computed value has come. A value that lets go of its inputs (Node::cut) keeps
// this little instead, so that differentiation can tell a value whose gradient it would lose from a constant.
//
// Only what a program holds can be differentiated with respect to, and what nobody holds at that time nobody
// will hold later. So it suffices to know the held nodes that gradients of the value would have come by. A
// gradient goes from a floating value to its floating inputs, and on; it ends at leaves and at operations
// without one (stop_gradient, floor). The walks are engine/graph/origins_walk.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/base/counted.h"
#include "engine/base/small_memory.h"

namespace caldera {

/// The name of a node in lists of origins: it outlives the node.
class OriginTag : public Counted<OriginTag>, public InSmallMemory<OriginTag> {
 public:
  bool is_alive() const { return alive_.load(std::memory_order_relaxed); }
  void die() { alive_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> alive_{true};
};
using OriginTagPtr = CountedPtr<OriginTag>;

class Origins;
using OriginsPtr = CountedPtr<Origins>;

/// The origins of one value, or of many that are close. Constant.
class Origins : public Counted<Origins>, public InSmallMemory<Origins> {
 public:
  /// `tags` in order of their addresses. All of `more` are origins too.
  Origins(std::vector<OriginTagPtr> tags, OriginsPtr more) : tags_(std::move(tags)), more_(std::move(more)) {}

  bool contains(const OriginTag& tag) const;
  /// Appends the tags of nodes that are alive, those of `more` included.
  void append_alive(std::vector<OriginTag*>& to) const;
  /// Returns the tags that `more` does not have, in order of their addresses.
  const std::vector<OriginTagPtr>& own() const { return tags_; }
  const OriginsPtr& more() const { return more_; }
  std::size_t size() const { return tags_.size() + (more_ ? more_->size() : 0); }

 private:
  std::vector<OriginTagPtr> tags_;
  OriginsPtr more_;
};

}  // namespace caldera
