#include "engine/graph/history/origins.h"

#include <algorithm>

namespace caldera {

bool Origins::contains(const OriginTag& tag) const {
  for (const Origins* at = this; at != nullptr; at = at->more_.get()) {
    const auto found =
        std::lower_bound(at->tags_.begin(), at->tags_.end(), &tag,
                         [](const OriginTagPtr& a, const OriginTag* b) { return a.get() < b; });
    if (found != at->tags_.end() && found->get() == &tag) return true;
  }
  return false;
}

void Origins::append_alive(std::vector<OriginTag*>& to) const {
  for (const Origins* at = this; at != nullptr; at = at->more_.get()) {
    for (const OriginTagPtr& tag : at->tags_) {
      if (tag->is_alive()) to.push_back(tag.get());
    }
  }
}

}  // namespace caldera
